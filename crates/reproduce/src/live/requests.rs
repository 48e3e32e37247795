//! The clients' requests: classes in the order of the wire header's types, and keys.

use headway_policy::Rng;
use headway_workload::{Class, ServiceDistribution, Workload};
use serde::Deserialize;

/// A class of requests; its place in the file is its type in the wire header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestClass {
    /// Name in the results.
    pub name: String,
    /// The fraction of the requests, 0 to 1; 0 for a type that no client sends.
    pub share: f64,
    /// The key that follows the wire header; without it, a request has no body.
    pub key: Option<UniformKey>,
}

/// A uniformly drawn key: `prefix`, then a number below `below`, padded to `digits` digits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniformKey {
    /// The prefix of every key.
    pub prefix: String,
    /// Number of digits; shorter numbers get leading zeroes.
    pub digits: usize,
    /// Number of keys.
    pub below: usize,
}

/// All classes, and the seed of their keys.
#[derive(Clone, Debug)]
pub(crate) struct RequestMix {
    classes: Vec<RequestClass>,
    seed: u64,
}

impl RequestMix {
    pub(crate) fn new(classes: &[RequestClass], seed: u64) -> Self {
        Self {
            classes: classes.to_vec(),
            seed,
        }
    }

    /// The classes that are sent.
    pub(crate) fn sent(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&class| self.classes[class].share > 0.0)
    }

    pub(crate) fn name(&self, class: usize) -> &str {
        self.classes
            .get(class)
            .map_or("unknown", |class| &class.name)
    }

    /// Writes the body of request `index`, and returns its length. The body is a function of seed, class and index.
    pub(crate) fn body(&self, class: u8, index: u32, room: &mut [u8]) -> usize {
        let Some(key) = &self.classes[usize::from(class)].key else {
            return 0;
        };
        let mut number = Rng::new(self.seed ^ u64::from(index) << 20).below(key.below);
        let length = key.length();
        room[..key.prefix.len()].copy_from_slice(key.prefix.as_bytes());
        for digit in room[key.prefix.len()..length].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        length
    }

    /// Draws a class by the classes' shares.
    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        const PARTS: usize = 1 << 20;
        let at = rng.below(PARTS) as f64 / PARTS as f64;
        let mut below = 0.0;
        let found = self.sent().find(|&class| {
            below += self.classes[class].share;
            at < below
        });
        found
            .or_else(|| self.sent().last())
            .expect("some class is sent")
    }

    /// The workload of these classes with their measured service times, ns.
    pub(crate) fn workload(&self, name: &str, service_ns: &[u64]) -> Workload {
        Workload::new(
            name,
            self.classes
                .iter()
                .zip(service_ns)
                .map(|(class, &ns): (&RequestClass, &u64)| {
                    Class::new(
                        &class.name,
                        class.share,
                        ServiceDistribution::Constant { mean_ns: ns.max(1) },
                    )
                })
                .collect(),
        )
    }
}

impl UniformKey {
    /// Length of a key, bytes.
    pub(crate) fn length(&self) -> usize {
        self.prefix.len() + self.digits
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// GET with a key and SCAN, with a type between them that no client sends.
    pub(crate) fn mix() -> RequestMix {
        let class = |name: &str, share, key| RequestClass {
            name: name.into(),
            share,
            key,
        };
        let key = UniformKey {
            prefix: "key".into(),
            digits: 5,
            below: 15_000,
        };
        let classes = [
            class("GET", 0.75, Some(key)),
            class("PUT", 0.0, None),
            class("SCAN", 0.25, None),
        ];
        RequestMix::new(&classes, 7)
    }

    #[test]
    fn keys_are_those_of_the_store_and_depend_on_the_index_alone() {
        let mix = mix();
        let key = |index| {
            let mut room = [0; 64];
            let length = mix.body(0, index, &mut room);
            String::from_utf8(room[..length].to_vec()).unwrap()
        };
        let keys: BTreeSet<String> = (0..5_000).map(key).collect();
        assert!(keys.len() > 4_000, "{} of 5 000 differ", keys.len());
        for key in &keys {
            let number: usize = key.strip_prefix("key").unwrap().parse().unwrap();
            assert!(key.len() == 8 && number < 15_000, "{key}");
        }
        assert_eq!(key(17), key(17));
        assert_eq!(mix.body(2, 0, &mut [0; 64]), 0);
    }

    #[test]
    fn classes_are_drawn_as_often_as_they_are_asked_for() {
        let mix = mix();
        let mut rng = Rng::new(1);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[mix.draw(&mut rng)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((7_300..7_700).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn the_workload_keeps_the_types() {
        let workload = mix().workload("store", &[2_000, 1, 900_000]);
        assert_eq!(workload.class_names(), ["GET", "PUT", "SCAN"]);
        let mean_ns = workload.mean_service_ns();
        assert!((mean_ns - (0.75 * 2_000.0 + 0.25 * 900_000.0)).abs() < 1.0);
        workload.check().unwrap();
    }
}
