//! Requests for a load generator.

use crate::zipf::Zipf;
use crate::{Operation, Request, key_of};

/// A prime (of xxHash) beyond every number of keys, so multiplying by it modulo that number permutes them.
const PRIME: u64 = 0x9e37_79b1_85eb_ca87;

/// The most bytes of a PUT's value.
const VALUE_BYTES_MAX: usize = 1024;

/// Which keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyChoice {
    /// All alike.
    Uniform,
    /// A few more often than others: the k-th most popular with probability proportional to 1 / k^θ.
    /// Popular keys are spread over the key space.
    Zipf {
        /// θ, above 0 and below 1; YCSB uses 0.99.
        theta: f64,
    },
}

/// Writes the bodies of requests on a store filled by `Store::fill`.
///
/// The body of a request depends on the seed, its class and its index only, so a run can be repeated.
#[derive(Debug, Clone)]
pub struct KvWorkload {
    keys: u64,
    operations: Vec<Operation>,
    scan_entries: u32,
    value_len: usize,
    zipf: Option<Zipf>,
    seed: u64,
}

/// A class of a workload is named after no operation.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "class {name:?} is no operation of the key-value service; name it GET, SCAN, PUT or DELETE"
)]
pub struct UnknownOperation {
    /// The class's name.
    pub name: String,
}

headway_words::debug_is_display!(UnknownOperation);

impl KvWorkload {
    /// Keys to choose from, unless the store has another number.
    pub const DEFAULT_KEYS: u64 = 100_000;

    /// Uniform requests on `keys` keys: class 0 is GET, 1 SCAN (of 100 entries), 2 PUT (of 100 bytes),
    /// 3 DELETE.
    ///
    /// # Panics
    /// When there are no keys.
    #[must_use]
    pub fn new(keys: u64, seed: u64) -> Self {
        assert!(keys > 0, "there must be keys to choose from");
        Self {
            keys,
            operations: Operation::ALL.to_vec(),
            scan_entries: 100,
            value_len: 100,
            zipf: None,
            seed,
        }
    }

    /// The same with operations for classes by their names, in the order of the classes.
    ///
    /// # Errors
    /// [`UnknownOperation`] for the first that is none.
    pub fn with_classes(
        mut self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, UnknownOperation> {
        let operation = |name: &str| {
            Operation::named(name).ok_or_else(|| UnknownOperation { name: name.into() })
        };
        let operations = names.into_iter().map(|name| operation(name.as_ref()));
        self.operations = operations.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The same with SCANs of this many entries. They start where that many are left, if there are.
    #[must_use]
    pub fn with_scan_entries(mut self, scan_entries: u32) -> Self {
        self.scan_entries = scan_entries;
        self
    }

    /// The same with PUTs of values this long.
    ///
    /// # Panics
    /// When it is more than 1 024 bytes, which a datagram may not have room for.
    #[must_use]
    pub fn with_value_len(mut self, value_len: usize) -> Self {
        assert!(
            value_len <= VALUE_BYTES_MAX,
            "values have at most {VALUE_BYTES_MAX} bytes, not {value_len}"
        );
        self.value_len = value_len;
        self
    }

    /// The same with keys chosen so. A Zipf choice takes time proportional to the number of keys to
    /// prepare.
    ///
    /// # Panics
    /// When θ is not above 0 and below 1.
    #[must_use]
    pub fn with_choice(mut self, choice: KeyChoice) -> Self {
        self.zipf = match choice {
            KeyChoice::Uniform => None,
            KeyChoice::Zipf { theta } => Some(Zipf::new(self.keys, theta)),
        };
        self
    }

    /// Writes the body of request `index`, of `class`, and returns its length. Takes some 20 ns, with a
    /// Zipf choice some 100; allocates nothing.
    ///
    /// # Panics
    /// When the class has no operation, or `room` is less than 1 100 bytes.
    #[inline]
    pub fn body(&self, class: u8, index: u32, room: &mut [u8]) -> usize {
        let random = mix(self.seed.wrapping_add(mix(u64::from(index))));
        match self.operations[usize::from(class)] {
            Operation::Get => {
                let key = &key_of(self.key(random));
                encoded(Request::Get { key }, room)
            }
            Operation::Delete => {
                let key = &key_of(self.key(random));
                encoded(Request::Delete { key }, room)
            }
            Operation::Scan => {
                let (first, count) = (&key_of(self.scan_start(random)), self.scan_entries);
                encoded(Request::Scan { first, count }, room)
            }
            Operation::Put => {
                let key = &key_of(self.key(random));
                let value = &[random as u8; VALUE_BYTES_MAX][..self.value_len];
                encoded(Request::Put { key, value }, room)
            }
        }
    }

    /// The number of the key that request `index` asks for, below the number of keys, for bodies written elsewhere. Allocates nothing.
    #[inline]
    #[must_use]
    pub fn key_number(&self, index: u32) -> u64 {
        self.key(mix(self.seed.wrapping_add(mix(u64::from(index)))))
    }

    /// The operation of each class.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    fn key(&self, random: u64) -> u64 {
        match &self.zipf {
            None => below(random, self.keys),
            Some(zipf) => scatter(zipf.rank(uniform(random)), self.keys),
        }
    }

    /// The chosen key, or the last one with enough entries after it.
    fn scan_start(&self, random: u64) -> u64 {
        let starts = self.keys.saturating_sub(u64::from(self.scan_entries)) + 1;
        match self.zipf {
            None => below(random, starts),
            Some(_) => self.key(random).min(starts - 1),
        }
        .min(self.keys - 1)
    }
}

fn encoded(request: Request<'_>, room: &mut [u8]) -> usize {
    let fits = request.encode(room);
    fits.unwrap_or_else(|no_room| panic!("{no_room}"))
}

/// The finaliser of SplitMix64: a permutation whose outputs look random.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// From 0 to below 1.
fn uniform(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number below `n`: multiplying takes a fraction of a division.
fn below(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

/// Number `i` of a fixed order of `0..n` that looks random; `i` counts modulo `n`.
pub(crate) fn scatter(i: u64, n: u64) -> u64 {
    (u128::from(i) * u128::from(PRIME) % u128::from(n)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: u64 = 10_000;

    fn bodies(workload: &KvWorkload, class: u8) -> Vec<Vec<u8>> {
        (0..2_000)
            .map(|index| {
                let mut room = [0; 2048];
                let len = workload.body(class, index, &mut room);
                room[..len].to_vec()
            })
            .collect()
    }

    #[test]
    fn scattering_is_a_permutation() {
        for n in [1, 2, 1_000, 4_096, 9_973] {
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|i| seen[scatter(i, n) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "{n}");
        }
    }

    #[test]
    fn classes_are_operations_by_number_or_by_name() {
        let workload = KvWorkload::new(KEYS, 1);
        for operation in Operation::ALL {
            let body = &bodies(&workload, operation as u8)[0];
            assert_eq!(Request::decode(body).unwrap().operation(), operation);
        }
        let named = workload.clone().with_classes(["scan", "GET"]).unwrap();
        assert_eq!(bodies(&named, 0), bodies(&workload, Operation::Scan as u8));
        let error = workload.with_classes(["GET", "POKE"]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("class \"POKE\" is no operation")
        );
    }

    #[test]
    fn a_key_by_number_is_the_one_of_the_body() {
        for choice in [KeyChoice::Uniform, KeyChoice::Zipf { theta: 0.9 }] {
            let workload = KvWorkload::new(KEYS, 1).with_choice(choice);
            for (index, body) in (0..).zip(bodies(&workload, 0)) {
                let key = &key_of(workload.key_number(index));
                assert_eq!(Request::decode(&body).unwrap(), Request::Get { key });
            }
        }
    }

    #[test]
    fn the_seed_decides_every_body() {
        let workload = KvWorkload::new(KEYS, 1);
        assert_eq!(bodies(&workload, 0), bodies(&workload.clone(), 0));
        assert_ne!(bodies(&workload, 0), bodies(&KvWorkload::new(KEYS, 2), 0));
    }

    #[test]
    fn scans_start_where_enough_entries_are_left() {
        for choice in [KeyChoice::Uniform, KeyChoice::Zipf { theta: 0.9 }] {
            let workload = KvWorkload::new(KEYS, 1).with_scan_entries(9_990);
            for body in bodies(&workload.with_choice(choice), 1) {
                let Request::Scan { first, count } = Request::decode(&body).unwrap() else {
                    panic!("not a SCAN");
                };
                assert_eq!(count, 9_990);
                assert!(first <= &key_of(10)[..]);
            }
        }
    }

    #[test]
    fn scans_longer_than_the_store_start_at_its_first_key() {
        let workload = KvWorkload::new(10, 1).with_scan_entries(100);
        let body = &bodies(&workload, 1)[0];
        let first = &key_of(0);
        assert_eq!(
            Request::decode(body).unwrap(),
            Request::Scan { first, count: 100 }
        );
    }

    #[test]
    fn popular_keys_are_asked_for_more_often() {
        let distinct = |choice| {
            let workload = KvWorkload::new(KEYS, 1).with_choice(choice);
            let bodies: std::collections::HashSet<_> = bodies(&workload, 0).into_iter().collect();
            bodies.len()
        };
        let (uniform, zipf) = (
            distinct(KeyChoice::Uniform),
            distinct(KeyChoice::Zipf { theta: 0.99 }),
        );
        assert!(2 * zipf < 3 * uniform / 2, "{zipf} of {uniform}");
    }
}
