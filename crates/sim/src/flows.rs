//! The requests' flows, where a few clients send all requests.

use crate::error::{SimError, in_range};
use headway_policy::Rng;
use headway_policy::server::placements::flow_hash;
use std::fmt::{self, Display};
use std::str::FromStr;

/// The number of flows, and the skew of their shares.
///
/// As text `8`, or `8,zipf:0.99` for flows of which few send most. Where the network steers, a flow's hash names the worker of all its
/// requests: few flows load the workers unevenly, whatever the policy.
///
/// ```
/// use headway_sim::Flows;
///
/// let flows: Flows = "8,zipf:0.99".parse()?;
/// assert_eq!(flows, Flows { count: 8, skew: 0.99 });
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flows {
    /// Number of flows: 1 to 65 536.
    pub count: u32,
    /// The exponent of Zipf's law, 0 to 10: the flow of rank `r` sends in proportion to `r` to the power of `-skew`. At 0 all flows have
    /// equal shares.
    pub skew: f64,
}

/// The most flows.
const MOST_FLOWS: u32 = 1 << 16;

impl Flows {
    /// Flows of equal shares.
    #[must_use]
    pub fn even(count: u32) -> Self {
        Self { count, skew: 0.0 }
    }

    pub(crate) fn check(self) -> Result<(), SimError> {
        let (count, most) = (f64::from(self.count), f64::from(MOST_FLOWS));
        in_range("the number of flows", count, 1.0, most)?;
        in_range("the exponent of the flows' shares", self.skew, 0.0, 10.0)
    }

    /// The flows with their shares and hashes, drawn from `seed`. Flows of equal shares have the hashes of a policy's `flows=N` under the
    /// same seed.
    #[must_use]
    pub fn drawn(self, seed: u64) -> DrawnFlows {
        DrawnFlows {
            ends: self.ends(seed),
            hashes: (0..self.count)
                .map(|flow| flow_hash(flow.into(), seed))
                .collect(),
        }
    }

    /// For each flow, the end of its range of 32-bit words.
    fn ends(self, seed: u64) -> Box<[u64]> {
        const WORDS: u64 = 1 << 32;
        let count = u64::from(self.count);
        if self.skew == 0.0 {
            return (1..=count)
                .map(|end| (end * WORDS).div_ceil(count))
                .collect();
        }
        let weights: Vec<f64> = ranks(self.count, seed)
            .iter()
            .map(|&rank| libm::pow(f64::from(rank), -self.skew))
            .collect();
        let sum: f64 = weights.iter().sum();
        let mut below = 0.0;
        let mut ends: Box<[u64]> = weights
            .iter()
            .map(|weight: &f64| {
                below += weight;
                (below / sum * WORDS as f64) as u64
            })
            .collect();
        ends[self.count as usize - 1] = WORDS;
        ends
    }
}

/// Each flow's rank, from 1 on, in an order drawn from the seed.
fn ranks(count: u32, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed ^ 0x5EED_0F1A_0775_0001);
    let mut ranks: Vec<u32> = (1..=count).collect();
    for left in (1..ranks.len()).rev() {
        ranks.swap(left, rng.below(left + 1));
    }
    ranks
}

/// Flows whose shares and hashes are drawn.
#[derive(Clone, Debug)]
pub struct DrawnFlows {
    ends: Box<[u64]>,
    hashes: Box<[u32]>,
}

impl DrawnFlows {
    /// The hash of the flow whose range contains a uniformly drawn word.
    #[must_use]
    #[inline]
    pub fn hash(&self, word: u32) -> u32 {
        let flow = self.ends.partition_point(|&end| end <= u64::from(word));
        self.hashes[flow]
    }
}

impl FromStr for Flows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is neither a number of flows, such as 8, nor with their shares, such as 8,zipf:0.99"
            )
        };
        let (count, skew) = match text.split_once(',') {
            None => (text, "0"),
            Some((count, shares)) => (count, shares.strip_prefix("zipf:").ok_or_else(wrong)?),
        };
        let flows = Self {
            count: count.parse().map_err(|_| wrong())?,
            skew: skew.parse().map_err(|_| wrong())?,
        };
        flows.check().map_err(|error| error.to_string())?;
        Ok(flows)
    }
}

impl Display for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        if self.skew > 0.0 {
            write!(f, ",zipf:{}", self.skew)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::server::placements::Hashed;
    use std::collections::HashMap;

    /// For each flow, the number of evenly spaced words in its range.
    fn shares(flows: &DrawnFlows) -> Vec<u64> {
        const WORDS: u64 = 1 << 20;
        let mut counts = HashMap::new();
        for word in 0..WORDS {
            *counts.entry(flows.hash((word << 12) as u32)).or_insert(0) += 1;
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable();
        counts
    }

    #[test]
    fn even_flows_are_those_of_a_policy_that_draws_as_many() {
        for (count, seed) in [(1, 1), (8, 1), (8, 7), (513, 3)] {
            let drawn = Flows::even(count).drawn(seed);
            let (policys, card) = (Hashed::new(count.into(), seed), Hashed::default());
            for word in (0..u32::MAX).step_by(99_991) {
                let hash = drawn.hash(word);
                assert_eq!(
                    card.queue(hash, 14),
                    policys.queue(word, 14),
                    "{count} {word}"
                );
            }
        }
    }

    #[test]
    fn shares_follow_zipfs_law_in_an_order_that_the_seed_draws() {
        let even = shares(&Flows::even(4).drawn(1));
        assert_eq!(even, [1 << 18; 4]);
        let flows = Flows {
            count: 4,
            skew: 1.0,
        };
        // 1 + 1/2 + 1/3 + 1/4 = 25/12.
        let expected = [0.12, 0.16, 0.24, 0.48];
        for (share, expected) in shares(&flows.drawn(1)).iter().zip(expected) {
            assert!((*share as f64 / f64::from(1 << 20) - expected).abs() < 1e-4);
        }
        assert_ne!(flows.ends(1), flows.ends(2));
    }

    #[test]
    fn text_is_read_as_it_is_written() {
        for text in ["1", "8", "512,zipf:0.99"] {
            assert_eq!(text.parse::<Flows>().unwrap().to_string(), text);
        }
        for (text, why) in [
            ("", "neither a number of flows"),
            ("8,0.99", "such as 8,zipf:0.99"),
            ("8,zipf:x", "such as 8,zipf:0.99"),
            ("0", "1 to 65536"),
            ("65537", "1 to 65536"),
            ("8,zipf:-1", "0 to 10"),
            ("8,zipf:NaN", "0 to 10"),
        ] {
            let said = text.parse::<Flows>().unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
