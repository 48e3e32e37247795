//! Which classes are long: by hints, or by what a worker measured where nobody says it.

use crate::server::shape::TIMES_THE_SHORTEST;
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// A class counts as measured after so many requests: fewer may be the outliers of a class of shorts.
pub const ENOUGH: u32 = 16;

/// The weight of the newest sample is at least one in so many: means follow a service that changes.
const WINDOW: u32 = 64;

/// All classes are compared every so many requests, since a comparison looks at each of them.
const REVIEW: u32 = 32;

/// A class that was found long stays so until its mean is below so many times the shortest's: one near the bound does not flip.
const TIMES_TO_STAY: f64 = TIMES_THE_SHORTEST / 2.0;

/// The mean service time of a class.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct MeanService {
    samples: u32,
    mean_ns: f64,
}

impl MeanService {
    fn add(&mut self, service_ns: u64) {
        self.samples = self.samples.saturating_add(1);
        self.mean_ns += (service_ns as f64 - self.mean_ns) / f64::from(self.samples.min(WINDOW));
    }

    /// The mean, once there are samples enough.
    fn mean_ns(&self) -> Option<f64> {
        (self.samples >= ENOUGH).then_some(self.mean_ns)
    }
}

/// The long classes as one worker knows them: some by hints, which hold for ever, the others by the requests that it finished.
#[derive(Clone, PartialEq, Debug)]
pub struct Lengths {
    hinted: BitSet,
    /// The classes that are found long or short by measuring.
    learned: BitSet,
    /// One of each declared class; none where nothing is learned.
    measured: Vec<MeanService>,
    /// Hinted longs, and those of the learned classes.
    longs: BitSet,
    /// Requests until all classes are compared again.
    until_review: u32,
}

impl Lengths {
    /// `hinted` are long by hints. Of the `learned` classes, which are among the `classes` declared ones, it is to be found out; where there are none, nothing is measured.
    #[must_use]
    pub fn new(hinted: BitSet, learned: BitSet, classes: usize) -> Self {
        let classes = if learned.is_empty() { 0 } else { classes };
        Self {
            hinted,
            learned,
            measured: vec![MeanService::default(); classes],
            longs: hinted,
            until_review: REVIEW,
        }
    }

    /// Whether the class is long as far as is known. UNKNOWN is not.
    #[inline]
    #[must_use]
    pub fn is_long(&self, class: ClassId) -> bool {
        self.longs.contains(class.index())
    }

    /// The classes that are long as far as is known.
    #[must_use]
    pub fn longs(&self) -> BitSet {
        self.longs
    }

    /// A request of the class took so long. The long classes, where they are others from now on.
    #[inline]
    pub fn record(&mut self, class: ClassId, service_ns: u64) -> Option<BitSet> {
        let measured = self.measured.get_mut(class.index())?;
        measured.add(service_ns);
        let is_new = measured.samples == ENOUGH;
        self.until_review -= 1;
        if self.until_review > 0 && !is_new {
            return None;
        }
        self.until_review = REVIEW;
        self.review()
    }

    /// Compares the classes as [`Shape::longs`](crate::server::Shape::longs) compares hints.
    fn review(&mut self) -> Option<BitSet> {
        let means = self.measured.iter().filter_map(MeanService::mean_ns);
        let shortest_ns = means.fold(f64::INFINITY, f64::min);
        let before = self.longs;
        for class in self.learned.iter() {
            let Some(mean_ns) = self.measured[class].mean_ns() else {
                continue;
            };
            let times = if before.contains(class) {
                TIMES_TO_STAY
            } else {
                TIMES_THE_SHORTEST
            };
            // A mean of 0 is that of services below the clock's tick: the shortest there is.
            self.longs
                .set(class, mean_ns > 0.0 && mean_ns >= times * shortest_ns);
        }
        debug_assert_eq!(self.longs.intersection(&self.hinted), self.hinted);
        (self.longs != before).then_some(self.longs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Shape;
    use proptest::prelude::*;

    fn learning(classes: usize) -> Lengths {
        Lengths::new(BitSet::EMPTY, BitSet::range(0, classes), classes)
    }

    /// What was told of the last change.
    fn told(lengths: &mut Lengths, requests: impl Iterator<Item = (usize, u64)>) -> BitSet {
        requests
            .filter_map(|(class, ns)| lengths.record(ClassId(class as u16), ns))
            .last()
            .unwrap_or_default()
    }

    #[test]
    fn a_class_is_long_once_enough_of_it_and_of_a_shorter_one_was_seen() {
        let mut lengths = learning(2);
        let alone = told(&mut lengths, (0..1_000).map(|_| (1, 100_000)));
        assert!(alone.is_empty(), "nothing is shorter");
        for sample in 1..=ENOUGH {
            let told = lengths.record(ClassId(0), 1_000);
            let expected = (sample == ENOUGH).then(|| [1].into_iter().collect());
            assert_eq!(told, expected, "sample {sample}");
        }
        assert!(lengths.is_long(ClassId(1)) && !lengths.is_long(ClassId(0)));
    }

    /// Twelve times the shortest, then eight, twelve, eight: long all the time. Four times: no more.
    #[test]
    fn what_is_near_the_bound_does_not_flip() {
        let mut lengths = learning(2);
        let found = [8, 12, 8, 12, 8, 4, 8, 12].map(|times: u64| {
            let requests = (0..1_000).flat_map(|_| [(0, 1_000), (1, times * 1_000)]);
            told(&mut lengths, requests);
            lengths.is_long(ClassId(1))
        });
        assert_eq!(found, [false, true, true, true, true, false, false, true]);
    }

    #[test]
    fn hints_hold_whatever_is_measured() {
        let hinted: BitSet = [0].into_iter().collect();
        let mut lengths = Lengths::new(hinted, [2].into_iter().collect(), 3);
        let requests = (0..1_000).flat_map(|_| [(0, 1_000), (1, 50_000), (2, 50_000), (3, 1)]);
        told(&mut lengths, requests);
        let longs = [0, 1, 2, 3].map(|class| lengths.is_long(ClassId(class)));
        assert_eq!(longs, [true, false, true, false], "UNKNOWN is the last");
    }

    proptest! {
        /// Of two kinds of requests whose services spread by half, in any number of classes and shares, it finds those that hints would name.
        #[test]
        fn it_converges_to_what_hints_would_say(
            short_ns in 200_u64..20_000,
            times in prop_oneof![1.0..6.0_f64, 15.0..1_000.0],
            kinds in prop::collection::vec(any::<bool>(), 2..12),
            seed in any::<u64>(),
        ) {
            let mut kinds = kinds;
            kinds[0] = false;
            let mean_ns = |long: bool| (short_ns as f64 * if long { times } else { 1.0 }) as u64;
            let shape = kinds.iter().fold(Shape::new(1), |shape, &long| shape.class(mean_ns(long), 0.5));
            let mut lengths = learning(kinds.len());
            let mut rng = crate::Rng::new(seed);
            for request in 0..200 * kinds.len() {
                // All classes come; some more often.
                let drawn = rng.below(kinds.len());
                let class = if request % 2 == 0 { request / 2 % kinds.len() } else { drawn };
                let mean = mean_ns(kinds[class]);
                let service_ns = mean / 2 + rng.below(mean as usize + 1) as u64;
                lengths.record(ClassId(class as u16), service_ns);
                prop_assert!(!lengths.is_long(ClassId(kinds.len() as u16)), "UNKNOWN");
            }
            lengths.review();
            for class in 0..kinds.len() {
                prop_assert_eq!(lengths.is_long(ClassId(class as u16)), shape.longs().contains(class), "class {}", class);
            }
        }

        /// Whatever comes, the class of the least mean among those measured is not long, nor is one that was seen too rarely.
        #[test]
        fn the_shortest_is_never_long(requests in prop::collection::vec((0_usize..5, 0_u64..1_000_000), 1..600)) {
            let mut lengths = learning(5);
            for &(class, service_ns) in &requests {
                lengths.record(ClassId(class as u16), service_ns);
                lengths.review();
                let shortest = lengths.measured.iter().enumerate()
                    .filter_map(|(class, measured)| Some((class, measured.mean_ns()?)))
                    .min_by(|a, b| a.1.total_cmp(&b.1));
                if let Some((class, _)) = shortest {
                    prop_assert!(!lengths.is_long(ClassId(class as u16)));
                }
                for (class, measured) in lengths.measured.iter().enumerate() {
                    prop_assert!(measured.samples >= ENOUGH || !lengths.is_long(ClassId(class as u16)));
                }
            }
        }
    }
}
