//! The shares of types among the requests of the last second: a look of the control plane sees a few milliseconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time whose requests count.
const SPAN: Duration = Duration::from_secs(1);
/// Time between two samples.
const EVERY: Duration = Duration::from_millis(100);

/// Counts of requests by type, at moments of the last second and one before.
#[derive(Default)]
pub(super) struct RecentRequests(VecDeque<(Instant, Vec<u64>)>);

impl RecentRequests {
    /// Takes a sample of the counts so far, unless the last one is recent.
    pub(super) fn note(&mut self, now: Instant, counts: impl Iterator<Item = u64>) {
        let last = self.0.back();
        if last.is_some_and(|(at, _)| now.duration_since(*at) < EVERY) {
            return;
        }
        self.0.push_back((now, counts.collect()));
        let is_old = |(at, _): &(Instant, Vec<u64>)| now.duration_since(*at) >= SPAN;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
    }

    /// Each type's share of the requests since a second ago, or since the first sample; none without a request.
    pub(super) fn shares(&self, counts: &[u64]) -> Option<Vec<f64>> {
        let (_, before) = self.0.front()?;
        let come = counts.iter().zip(before);
        let come: Vec<u64> = come.map(|(now, then)| now.saturating_sub(*then)).collect();
        let all: u64 = come.iter().sum();
        (all > 0).then(|| {
            come.iter()
                .map(|&count| count as f64 / all as f64)
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_comes_in_bursts_has_its_share_of_a_second() {
        let begin = Instant::now();
        let mut recent = RecentRequests::default();
        assert_eq!(recent.shares(&[0, 0]), None);
        let mut counts = [1_000_000, 0];
        // 90 requests of one type in each tenth of a second, and 100 of the other in every tenth of these.
        for tenth in 0..40 {
            recent.note(begin + tenth * EVERY, counts.into_iter());
            counts[0] += 90;
            counts[1] += if tenth % 10 == 3 { 100 } else { 0 };
        }
        let shares = recent.shares(&counts).unwrap();
        assert!((shares[1] - 0.1).abs() < 0.02, "{shares:?}");
        assert_eq!(recent.shares(&[0, 0]), None, "a switch that began anew");
    }
}
