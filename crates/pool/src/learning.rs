//! Classes learnt from keys: jobs whose keys have similar service times share a class.
//!
//! Each learnt class is a band of service times, and a key belongs to the band of its mean. So a key whose service time changes moves to another
//! class within a few jobs, and a class means the same to the policy at all times.

use std::collections::HashMap;

use headway_policy::ClassId;

/// The bands cover service times from this one, ns: all shorter ones are in the first.
const SHORTEST_NS: f64 = 1_000.0;

/// To this one, ns: all longer ones are in the last.
const LONGEST_NS: f64 = 1e9;

/// A key moves to a neighbouring band only if its mean is beyond the border by this factor: else it would move to and fro.
const BEYOND: f64 = 1.2;

/// One job in so many moves a key's mean, once it had as many.
const MEAN_OVER: f64 = 8.0;

/// The most keys that are kept; further ones stay of the unknown class.
const MOST_KEYS: usize = 16_384;

/// What is known of a key.
struct KeyMean {
    mean_ns: f64,
    jobs: f64,
    band: usize,
}

/// See the [module](self).
pub(crate) struct KeyLearner {
    keys: HashMap<u64, KeyMean>,
    /// The first learnt class.
    first: usize,
    bands: usize,
    unknown: ClassId,
}

impl KeyLearner {
    pub(crate) fn new(first: usize, bands: usize, unknown: ClassId) -> Self {
        Self {
            keys: HashMap::new(),
            first,
            bands,
            unknown,
        }
    }

    /// The mean service time of a learnt class's jobs before the first, ns: the middle of its band.
    pub(crate) fn middle_ns(band: usize, bands: usize) -> f64 {
        SHORTEST_NS * factor(bands).powf(band as f64 + 0.5)
    }

    /// The class of a key's next job.
    pub(crate) fn class_of(&self, key: u64) -> ClassId {
        let known = self.keys.get(&key);
        known.map_or(self.unknown, |known| {
            ClassId((self.first + known.band) as u16)
        })
    }

    /// A job of the key took so long, ns.
    pub(crate) fn ran(&mut self, key: u64, service_ns: u64) {
        if self.keys.len() >= MOST_KEYS && !self.keys.contains_key(&key) {
            return;
        }
        let bands = self.bands;
        let service_ns = service_ns.max(1) as f64;
        let known = self.keys.entry(key).or_insert_with(|| KeyMean {
            mean_ns: service_ns,
            jobs: 0.0,
            band: band(service_ns, bands),
        });
        known.jobs = (known.jobs + 1.0).min(MEAN_OVER);
        known.mean_ns += (service_ns - known.mean_ns) / known.jobs;
        let lower = band(known.mean_ns / BEYOND, bands);
        let upper = band(known.mean_ns * BEYOND, bands);
        known.band = known.band.clamp(lower, upper);
    }
}

/// The ratio of a band's ends.
fn factor(bands: usize) -> f64 {
    (LONGEST_NS / SHORTEST_NS).powf(1.0 / bands as f64)
}

fn band(service_ns: f64, bands: usize) -> usize {
    let at = (service_ns / SHORTEST_NS).max(1.0).ln() / factor(bands).ln();
    (at as usize).min(bands - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_similar_length_share_a_class_and_move_when_they_change() {
        let unknown = ClassId(15);
        let mut learner = KeyLearner::new(3, 12, unknown);
        assert_eq!(learner.class_of(1), unknown);
        for _ in 0..20 {
            learner.ran(1, 10_000);
            learner.ran(2, 11_000);
            learner.ran(3, 20_000_000);
        }
        assert_eq!(learner.class_of(1), learner.class_of(2));
        assert!(learner.class_of(3) > learner.class_of(1));
        let long = learner.class_of(3);
        for _ in 0..40 {
            learner.ran(1, 20_000_000);
        }
        assert_eq!(learner.class_of(1), long);
    }

    #[test]
    fn a_key_at_a_border_stays_where_it_is() {
        let mut learner = KeyLearner::new(0, 6, ClassId(6));
        let border_ns = SHORTEST_NS * factor(6);
        learner.ran(1, border_ns as u64 - 1);
        let before = learner.class_of(1);
        for turn in 0..100 {
            learner.ran(
                1,
                if turn % 2 == 0 {
                    border_ns as u64 + 100
                } else {
                    border_ns as u64 - 100
                },
            );
            assert_eq!(learner.class_of(1), before);
        }
    }

    #[test]
    fn every_length_has_a_band() {
        for bands in 1..=15 {
            for service_ns in [1, 999, 1_000, 1_000_000, 999_999_999, u64::MAX] {
                assert!(band(service_ns as f64, bands) < bands);
            }
            assert!((0..bands).all(|at| band(KeyLearner::middle_ns(at, bands), bands) == at));
        }
    }
}
