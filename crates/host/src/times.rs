//! Durations, counted in buckets of a quarter of an octave.

/// Buckets per doubling.
const PARTS: u32 = 4;
/// The last bucket ends at 2^40 ns, 18 minutes, and also counts longer durations.
const OCTAVES: u32 = 40;
const BUCKETS: usize = (PARTS * OCTAVES) as usize;

/// A histogram of durations.
#[derive(Clone, Debug)]
pub struct Times {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }
}

impl Times {
    /// Counts one duration.
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The longest one, ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The quantile at this share, 0 to 1, in ns, accurate to a fifth; 0 without durations.
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let rank = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (index, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return upper_ns(index).min(self.max_ns);
            }
        }
        0
    }

    /// The cumulative counts for bounds that double from 1 µs, as Prometheus expects them.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        (10..=26)
            .map(|octave: u32| {
                let end = (PARTS * octave) as usize;
                (1 << octave, self.counts[..end].iter().sum())
            })
            .collect()
    }
}

fn bucket(ns: u64) -> usize {
    let octave = ns.max(1).ilog2();
    if octave >= OCTAVES {
        return BUCKETS - 1;
    }
    let within = if octave >= 2 {
        (ns >> (octave - 2)) & 3
    } else {
        0
    };
    (octave * PARTS) as usize + within as usize
}

/// The longest duration of a bucket.
fn upper_ns(index: usize) -> u64 {
    let (octave, part) = (index as u32 / PARTS, index as u64 % u64::from(PARTS));
    if octave < 2 {
        return (2 << octave) - 1;
    }
    ((4 + part + 1) << (octave - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_fifth() {
        let mut times = Times::default();
        (1..=10_000).for_each(|ns| times.record(ns));
        for part in [0.1, 0.5, 0.99, 1.0] {
            let (exact, found) = (part * 10_000.0, times.quantile_ns(part) as f64);
            assert!(found >= exact && found <= exact * 1.25, "{part}: {found}");
        }
        assert_eq!((times.count(), times.max_ns()), (10_000, 10_000));
        assert_eq!(Times::default().quantile_ns(0.5), 0);
    }

    #[test]
    fn every_duration_has_a_bucket_below_its_bound() {
        for ns in (0..63).flat_map(|shift| [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + 1]) {
            let index = bucket(ns);
            assert!(index < BUCKETS);
            assert!(ns >= 1 << OCTAVES || ns <= upper_ns(index), "{ns}");
        }
    }
}
