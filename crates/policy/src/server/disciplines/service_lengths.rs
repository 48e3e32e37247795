//! How long requests of a class take, as far as those that completed tell, and what that says of one that has run for a while: the Gittins index.

use alloc::boxed::Box;

/// Ages below this are one bucket, ns.
const SHORTEST_NS: u64 = 1 << SHORTEST_BITS;
const SHORTEST_BITS: u32 = 7;

/// Each doubling of the age is four buckets, so a length is known to a fifth of itself.
const PER_DOUBLING_BITS: u32 = 2;
const PER_DOUBLING: u64 = 1 << PER_DOUBLING_BITS;

/// The last one begins at half a minute.
const DOUBLINGS: u64 = 28;

/// Buckets of ages.
pub(super) const BUCKETS: usize = (1 + DOUBLINGS * PER_DOUBLING) as usize;

/// From so many completions on the older ones count half, so the last 512 at least count in full: a class that changes is followed.
const MEMORY: f64 = 1_024.0;

/// The indices are computed anew after so many completions at the latest.
const REVIEW: f64 = 64.0;

/// In which bucket a request of this age is.
#[inline]
pub(super) fn bucket(age_ns: u64) -> usize {
    if age_ns < SHORTEST_NS {
        return 0;
    }
    let doubling = age_ns.ilog2();
    let within = (age_ns >> (doubling - PER_DOUBLING_BITS)) & (PER_DOUBLING - 1);
    let bucket = 1 + u64::from(doubling - SHORTEST_BITS) * PER_DOUBLING + within;
    (bucket as usize).min(BUCKETS - 1)
}

/// The age at which a bucket ends, ns; never for the last.
#[inline]
pub(super) fn end_ns(bucket: usize) -> u64 {
    if bucket == BUCKETS - 1 {
        u64::MAX
    } else {
        begin_ns(bucket + 1)
    }
}

/// The age at which a bucket begins, and the one before it ends, ns.
const fn begin_ns(bucket: usize) -> u64 {
    let Some(after_first) = (bucket as u64).checked_sub(1) else {
        return 0;
    };
    let (doubling, within) = (after_first / PER_DOUBLING, after_first % PER_DOUBLING);
    (PER_DOUBLING + within) << doubling << (SHORTEST_BITS - PER_DOUBLING_BITS)
}

/// Of each bucket, 1 over the age at which it begins; 0 of the first, where none is needed, and behind the last, where no age is.
const PER_BEGIN: [f64; BUCKETS + 1] = {
    let mut per_begin = [0.0; BUCKETS + 1];
    let mut bucket = 1;
    while bucket < BUCKETS {
        per_begin[bucket] = 1.0 / begin_ns(bucket) as f64;
        bucket += 1;
    }
    per_begin
};

/// The service times of a class's completed requests by bucket, and the index of each age.
#[derive(Clone)]
pub(super) struct ServiceLengths {
    /// Completions by bucket; older ones count less.
    completions: Box<[f64; BUCKETS]>,
    total: f64,
    /// Completions since the indices were computed.
    unreviewed: f64,
    index_ns: Box<[u64; BUCKETS]>,
}

impl ServiceLengths {
    /// Of a class of which this is known, ns; 0 for nothing. It counts as one completion.
    pub(super) fn declared(mean_ns: f64) -> Self {
        let mut lengths = Self {
            completions: Box::new([0.0; BUCKETS]),
            total: 0.0,
            unreviewed: 0.0,
            index_ns: Box::new([0; BUCKETS]),
        };
        if mean_ns > 0.0 {
            lengths.count(mean_ns as u64);
        }
        lengths.review();
        lengths
    }

    /// A request took so long in all. Whether indices changed.
    #[inline]
    pub(super) fn completed(&mut self, service_ns: u64) -> bool {
        self.count(service_ns);
        // Soon where little is known: a quarter of all that counts.
        let due = self.unreviewed >= REVIEW || self.unreviewed * 4.0 >= self.total;
        if due {
            self.review();
        }
        due
    }

    #[inline]
    fn count(&mut self, service_ns: u64) {
        self.completions[bucket(service_ns)] += 1.0;
        self.total += 1.0;
        self.unreviewed += 1.0;
    }

    /// The service that a request in this bucket of ages is expected to take for each completion, ns, were it served for as long as that is least: the
    /// inverse of Gittins's index, so what has less comes first. It is known to a fifth, as lengths are: classes that are as long have the same.
    #[inline]
    pub(super) fn index_ns(&self, bucket: usize) -> u64 {
        self.index_ns[bucket]
    }

    #[cold]
    fn review(&mut self) {
        self.unreviewed = 0.0;
        if self.total >= MEMORY {
            self.completions.iter_mut().for_each(|count| *count /= 2.0);
            self.total /= 2.0;
        }
        indices(&self.with_longer_ones(), &mut self.index_ns);
        for index_ns in self.index_ns.iter_mut() {
            *index_ns = begin_ns(bucket(*index_ns));
        }
    }

    /// What completed, and one more request that took longer than all of it: how much longer nobody knows, so twice as long is half as likely (a Pareto
    /// tail of index 1, under which who has run for less comes first). Where nothing completed, this is all there is.
    fn with_longer_ones(&self) -> [f64; BUCKETS] {
        let mut masses = *self.completions;
        let longest = masses.iter().rposition(|&count| count > 0.0);
        let first = longest.map_or(1, |bucket| bucket + 1).min(BUCKETS - 1);
        let from_ns = begin_ns(first) as f64;
        for (bucket, mass) in masses.iter_mut().enumerate().skip(first) {
            *mass += from_ns * (PER_BEGIN[bucket] - PER_BEGIN[bucket + 1]);
        }
        masses
    }
}

/// Where a request may be stopped: how likely it has completed by then, and how much service it has had on average.
#[derive(Clone, Copy, Default)]
struct StoppingAge {
    completed: f64,
    served_ns: f64,
}

impl StoppingAge {
    /// Service for each completion between here and a later stop.
    #[inline]
    fn service_until(self, later: Self) -> f64 {
        (later.served_ns - self.served_ns) / (later.completed - self.completed)
    }
}

/// For each bucket, the least service for each completion over all later stops (Gittins, J. R. Stat. Soc. B 41, 1979; Scully, Harchol-Balter and
/// Scheller-Wolf, SIGMETRICS 2018, § 2): requests end at the ends of buckets, with these masses. From the last stop to the first, those on the lower convex
/// hull are kept, and the next one on it is the best.
fn indices(masses: &[f64; BUCKETS], index_ns: &mut [u64; BUCKETS]) {
    let total: f64 = masses.iter().sum();
    let mut stops = [StoppingAge::default(); BUCKETS + 1];
    for bucket in 0..BUCKETS {
        let from = stops[bucket];
        let lasts_ns = (begin_ns(bucket + 1) - begin_ns(bucket)) as f64;
        stops[bucket + 1] = StoppingAge {
            completed: from.completed + masses[bucket],
            served_ns: from.served_ns + (total - from.completed).max(0.0) * lasts_ns,
        };
    }
    // Each with its service for a completion until the one before it here.
    let mut hull = [(stops[BUCKETS], f64::INFINITY); BUCKETS + 1];
    let mut last = 0;
    for bucket in (0..BUCKETS).rev() {
        let from = stops[bucket];
        let mut service_ns = from.service_until(hull[last].0);
        while last > 0 && service_ns >= hull[last].1 {
            last -= 1;
            service_ns = from.service_until(hull[last].0);
        }
        index_ns[bucket] = service_ns as u64;
        last += 1;
        hull[last] = (from, service_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, ServiceLengths, begin_ns, bucket, indices};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_and_are_a_fifth_wide_at_most() {
        for at in 1..BUCKETS {
            let (begin, end) = (begin_ns(at), begin_ns(at + 1));
            assert_eq!((bucket(begin - 1), bucket(begin)), (at - 1, at));
            assert!(end * 4 <= begin * 5, "{begin} to {end}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    fn learnt(lengths_ns: impl IntoIterator<Item = u64>) -> ServiceLengths {
        let mut lengths = ServiceLengths::declared(0.0);
        for service_ns in lengths_ns {
            lengths.completed(service_ns);
        }
        lengths.review();
        lengths
    }

    fn index_at(lengths: &ServiceLengths, age_ns: u64) -> f64 {
        lengths.index_ns(bucket(age_ns)) as f64
    }

    /// Least remaining service first.
    #[test]
    fn where_all_take_as_long_the_index_is_what_remains() {
        let lengths = learnt([100_000; 500]);
        for age_ns in [0, 1_000, 50_000, 90_000] {
            let remains_ns = begin_ns(bucket(100_000) + 1) - begin_ns(bucket(age_ns));
            let off = index_at(&lengths, age_ns) / remains_ns as f64;
            assert!((0.8..1.01).contains(&off), "{age_ns}: {off}");
        }
        assert!(
            index_at(&lengths, 130_000) > 100_000.0,
            "who outlives its class is unknown"
        );
    }

    /// The example of every text on it: one in two takes 1 µs, the others 100 µs. Two microseconds a completion at first, then what remains.
    #[test]
    fn one_that_may_be_short_is_tried_first() {
        let lengths = learnt((0..500).map(|request| [1_000, 100_000][request % 2]));
        assert!((1_700.0..2_500.0).contains(&index_at(&lengths, 0)));
        assert!(index_at(&lengths, 1_200) > 90_000.0);
    }

    /// Who has run for less comes first, of what nothing is known of.
    #[test]
    fn where_nothing_is_known_the_index_grows_with_the_age() {
        let lengths = ServiceLengths::declared(0.0);
        let ages_ns = (10..30).map(|doubling| 1 << doubling);
        let indices: Vec<f64> = ages_ns.map(|age_ns| index_at(&lengths, age_ns)).collect();
        assert!(
            indices.is_sorted_by(|before, after| before < after),
            "{indices:?}"
        );
    }

    #[test]
    fn a_class_that_changes_is_followed() {
        let mut lengths = learnt([100_000; 5_000]);
        for _ in 0..6_000 {
            lengths.completed(1_000);
        }
        let index_ns = index_at(&lengths, 0);
        assert!((800.0..1_400.0).contains(&index_ns), "{index_ns}");
    }

    proptest! {
        /// The definition, each later stop tried.
        #[test]
        fn the_index_is_the_least_over_all_later_stops(
            drawn in prop::collection::vec((0..BUCKETS, 0.01f64..10.0), 1..20),
        ) {
            let mut masses = [0.0; BUCKETS];
            drawn.iter().for_each(|&(bucket, mass)| masses[bucket] += mass);
            masses[BUCKETS - 1] += 1.0;
            let mut found = [0; BUCKETS];
            indices(&masses, &mut found);
            for (from, &found) in found.iter().enumerate() {
                let (mut served, mut completed, mut least) = (0.0, 0.0, f64::INFINITY);
                for at in from..BUCKETS {
                    let alive: f64 = masses[at..].iter().sum();
                    served += alive * (begin_ns(at + 1) - begin_ns(at)) as f64;
                    completed += masses[at];
                    least = least.min(served / completed);
                }
                let off_ns = (found as f64 - least).abs();
                prop_assert!(off_ns <= 1.0 + least * 1e-6, "{from}: {} and {least}", found);
            }
        }
    }
}
