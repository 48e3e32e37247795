//! A histogram of times that a job's path can afford: a count of leading zeros and an addition.
//!
//! [`SharedTimes`] is the same for a thread that counts while others read.
//!
//! It counts to one part in 16 of the time, in 8 KiB; `headway_report::Histogram`, which results are made of, to one in 1 024, in 440 KiB.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets per power of two, as a power of two.
const STEPS_BITS: u32 = 4;
/// Times below this, ns, have a bucket each.
const EXACT: u64 = 2 << STEPS_BITS;
const BUCKETS: usize = bucket_of(u64::MAX) + 1;
/// The powers of two, ns, at which [`TimeHistogram::octaves`] cuts: from a microsecond to 17 s.
const OCTAVES: std::ops::RangeInclusive<u32> = 10..=34;

/// The bucket that counts `ns`.
#[inline]
const fn bucket_of(ns: u64) -> usize {
    let shift = (EXACT - 1).leading_zeros() - (ns | (EXACT - 1)).leading_zeros();
    ((shift as usize) << STEPS_BITS) + (ns >> shift) as usize
}

/// The longest time that the bucket counts, ns.
const fn longest_of(bucket: usize) -> u64 {
    let shift = (bucket >> STEPS_BITS).saturating_sub(1);
    let step = (bucket - (shift << STEPS_BITS)) as u64;
    // Of the last bucket the end is 2⁶⁴, which wraps to 0.
    ((step + 1) << shift).wrapping_sub(1)
}

/// Counts of times, each to one part in 16.
///
/// ```
/// use headway_machine::histogram::TimeHistogram;
///
/// let mut times = TimeHistogram::default();
/// (1..=1000).for_each(|us| times.record(us * 1_000));
/// assert_eq!(times.mean_ns(), Some(500_500.0));
/// let p99_ns = times.quantile_ns(0.99).unwrap();
/// assert!((990_000..=990_000 * 17 / 16).contains(&p99_ns));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TimeHistogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }
}

impl std::fmt::Debug for TimeHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} times, {} ns at most", self.count, self.max_ns)
    }
}

impl TimeHistogram {
    /// Counts a time, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket_of(ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.wrapping_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Takes over another one's counts, in the memory that is there.
    pub fn copy_from(&mut self, other: &Self) {
        self.counts.copy_from_slice(&*other.counts);
        (self.count, self.sum_ns, self.max_ns) = (other.count, other.sum_ns, other.max_ns);
    }

    /// Adds what a thread has counted so far.
    pub fn add(&mut self, times: &SharedTimes) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        for (count, shared) in self.counts.iter_mut().zip(&*times.counts) {
            let more = read(shared);
            *count += more;
            self.count += more;
        }
        self.sum_ns = self.sum_ns.wrapping_add(read(&times.sum_ns));
        self.max_ns = self.max_ns.max(read(&times.max_ns));
    }

    /// How many times were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The longest, ns; `None` before the first.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The mean, ns; `None` before the first.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The shortest time that at least this part of them (0 to 1) does not exceed, ns, rounded up by one part in 16 at most; `None` before the first.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> Option<u64> {
        let rank = ((part * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut before = 0;
        let bucket = self.counts.iter().position(|count| {
            before += count;
            before >= rank
        })?;
        Some(longest_of(bucket).min(self.max_ns))
    }

    /// How many are below each of the powers of two from a microsecond on, and not below the one before: bound, ns, and count.
    pub fn octaves(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut from = 0;
        OCTAVES.map(move |bits| {
            let below_ns = 1 << bits;
            let to = bucket_of(below_ns);
            let count = self.counts[from..to].iter().sum();
            from = to;
            (below_ns, count)
        })
    }

    /// How many are in none of the [octaves](Self::octaves).
    #[must_use]
    pub fn beyond_octaves(&self) -> u64 {
        self.counts[bucket_of(1 << OCTAVES.end())..].iter().sum()
    }
}

/// Times that one thread counts and others read meanwhile, without a locked instruction. Its counts, sum and longest are read one after the other, so they agree exactly
/// only while nothing is counted.
#[derive(Debug)]
pub struct SharedTimes {
    counts: Box<[AtomicU64; BUCKETS]>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for SharedTimes {
    fn default() -> Self {
        Self {
            counts: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl SharedTimes {
    /// Counts a time, ns. One thread does.
    #[inline]
    pub fn record(&self, ns: u64) {
        let add = |number: &AtomicU64, more: u64| {
            let sum = number.load(Ordering::Relaxed).wrapping_add(more);
            number.store(sum, Ordering::Relaxed);
        };
        add(&self.counts[bucket_of(ns)], 1);
        add(&self.sum_ns, ns);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// The sum of the times counted so far, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_adds_up_to_one_histogram() {
        let (mut all, mut added) = (TimeHistogram::default(), TimeHistogram::default());
        for thread in 0..3_u64 {
            let shared = SharedTimes::default();
            for ns in (0..40).map(|bits| (thread + 1) << bits) {
                shared.record(ns);
                all.record(ns);
            }
            added.add(&shared);
        }
        assert!(added == all, "{added:?} is {all:?}");
    }

    #[test]
    fn buckets_touch_and_hold_one_part_in_sixteen() {
        let mut from = 0_u64;
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(from), bucket);
            let longest = longest_of(bucket);
            assert_eq!(bucket_of(longest), bucket);
            assert!(longest - from <= from / 16, "{from} to {longest}");
            from = longest.wrapping_add(1);
        }
        assert_eq!(from, 0, "the last one ends at the end");
    }

    #[test]
    fn every_time_is_in_one_octave_or_beyond() {
        let mut times = TimeHistogram::default();
        let all = [0, 1_023, 1_024, 5_000, 1 << 33, 1 << 34, u64::MAX];
        all.iter().for_each(|&ns| times.record(ns));
        let counted: u64 = times.octaves().map(|(_, count)| count).sum();
        assert_eq!((counted, times.beyond_octaves()), (5, 2));
        let first = times.octaves().next();
        assert_eq!(first, Some((1_024, 2)));
    }

    #[test]
    fn quantiles_of_nothing_are_none() {
        let times = TimeHistogram::default();
        assert_eq!(
            (times.quantile_ns(0.5), times.mean_ns(), times.max_ns()),
            (None, None, None)
        );
    }
}
