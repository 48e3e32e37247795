//! A switch's counts beside an SLO: answered requests, and those of them that took longer than a bound allows.
//!
//! A percentile keeps its bound exactly if no larger share of the requests exceeds it, so that two counters take the place of a histogram: the
//! p99 is at most 250 µs if at most 1 % of the requests took longer.

use headway_policy::ClassId;
use headway_report::slo::{Bound, Measure};
use headway_report::{Slo, nearest_rank};

/// Why a switch cannot watch an SLO.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum SloWatchError {
    /// A mean is not a share of requests.
    #[error(
        "a switch counts the requests beyond a bound, and cannot tell '{0}' by that: bound p50, p90, p99, p999 or max"
    )]
    Mean(Bound),
}

headway_words::debug_is_display!(SloWatchError);

/// A bound as each response is compared with it.
#[derive(Clone, Copy, Debug)]
enum Limit {
    LatencyNs(u64),
    /// A multiple of the execution time that the server measured.
    Slowdown(f64),
}

impl Limit {
    fn of(bound: &Bound) -> Self {
        match bound.measure {
            // A duration that exceeds the range bounds nothing; the cast saturates.
            Measure::Latency => Self::LatencyNs((bound.at_most * 1e3) as u64),
            Measure::Slowdown => Self::Slowdown(bound.at_most),
        }
    }

    #[inline]
    fn is_exceeded(self, latency_ns: u64, execution_ns: u32) -> bool {
        match self {
            Self::LatencyNs(at_most_ns) => latency_ns > at_most_ns,
            // A server's clock may read 0 ns for a short request.
            Self::Slowdown(at_most) => latency_ns as f64 > at_most * f64::from(execution_ns.max(1)),
        }
    }
}

/// Counts by type and bound, since the switch began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SloCounts {
    answered: Vec<u64>,
    /// By type, then by bound.
    exceeded: Vec<u64>,
    bounds: usize,
}

impl SloCounts {
    /// Becomes equal to `other` without allocating where it has the same types and bounds.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.answered.clone_from(&other.answered);
        self.exceeded.clone_from(&other.exceeded);
        self.bounds = other.bounds;
    }

    /// Answered requests of a type.
    ///
    /// # Panics
    /// When there is no such type.
    #[must_use]
    pub fn answered(&self, class: ClassId) -> u64 {
        self.answered[class.index()]
    }

    /// Those of them that exceeded a bound, whatever its scope; bounds count in the order of [`Slo::bounds`].
    ///
    /// # Panics
    /// When there is no such type or bound.
    #[must_use]
    pub fn exceeded(&self, class: ClassId, bound: usize) -> u64 {
        assert!(bound < self.bounds, "there are {} bounds", self.bounds);
        self.exceeded[class.index() * self.bounds + bound]
    }
}

/// Compares each response with an SLO's bounds. A latency here is the time between the arrival of a request and that of its response, both at the
/// switch; a slowdown divides it by the execution time in the response.
#[derive(Clone, Debug)]
pub struct SloWatch {
    limits: Box<[Limit]>,
    counts: SloCounts,
}

impl SloWatch {
    /// Watches this many types, UNKNOWN included.
    ///
    /// # Errors
    /// When a bound is of a mean.
    pub fn new(slo: &Slo, types: usize) -> Result<Self, SloWatchError> {
        let bounds = slo.bounds();
        if let Some(mean) = bounds
            .iter()
            .find(|bound| bound.statistic.quantile().is_none())
        {
            return Err(SloWatchError::Mean(mean.clone()));
        }
        Ok(Self {
            limits: bounds.iter().map(Limit::of).collect(),
            counts: SloCounts {
                answered: vec![0; types],
                exceeded: vec![0; types * bounds.len()],
                bounds: bounds.len(),
            },
        })
    }

    /// Counts a response that goes on to its client.
    #[inline]
    pub(crate) fn answered(&mut self, class: ClassId, latency_ns: u64, execution_ns: u32) {
        let counts = &mut self.counts;
        counts.answered[class.index()] += 1;
        let first = class.index() * counts.bounds;
        let exceeded = &mut counts.exceeded[first..first + counts.bounds];
        for (limit, exceeded) in self.limits.iter().zip(exceeded) {
            *exceeded += u64::from(limit.is_exceeded(latency_ns, execution_ns));
        }
    }

    /// The number of types, UNKNOWN included.
    #[must_use]
    pub fn types(&self) -> usize {
        self.counts.answered.len()
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> &SloCounts {
        &self.counts
    }
}

/// Whether a bound was kept by so many answered requests, of which so many exceeded it; `None` before the first, and for a mean.
#[must_use]
pub fn keeps(bound: &Bound, answered: u64, exceeded: u64) -> Option<bool> {
    let quantile = bound.statistic.quantile()?;
    // Requests beyond the percentile's rank may exceed the bound.
    (answered > 0).then(|| exceeded <= answered - nearest_rank(answered, quantile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_report::slo::Statistic;
    use proptest::prelude::*;

    fn watch(slo: &str) -> SloWatch {
        SloWatch::new(&slo.parse().unwrap(), 2).unwrap()
    }

    #[test]
    fn each_response_counts_for_its_type_and_the_bounds_that_it_exceeds() {
        let mut watch = watch("class.*.latency.p99<=10us,overall.slowdown.p50<=2");
        watch.answered(ClassId(0), 10_000, 5_000);
        watch.answered(ClassId(0), 10_001, 5_000);
        watch.answered(ClassId(1), 2, 0);
        watch.answered(ClassId(1), 3, 0);
        let counts = watch.counts();
        let of = |class| {
            let class = ClassId(class);
            [
                counts.answered(class),
                counts.exceeded(class, 0),
                counts.exceeded(class, 1),
            ]
        };
        assert_eq!([of(0), of(1)], [[2, 1, 1], [2, 0, 1]]);
    }

    #[test]
    fn a_mean_is_refused() {
        let error = SloWatch::new(&"overall.latency.mean<=10us".parse().unwrap(), 1).unwrap_err();
        assert!(
            error.to_string().contains("'overall.latency.mean<=10us'"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn a_percentile_keeps_its_bound_exactly_if_no_larger_share_exceeds_it(
            mut latencies_us in prop::collection::vec(0_u64..1000, 1..3000),
            bound_us in 1_u64..1000,
            statistic in prop::sample::select(vec![Statistic::P50, Statistic::P90, Statistic::P99, Statistic::P999, Statistic::Max]),
        ) {
            let slo: Slo = format!("overall.latency.{statistic}<={bound_us}us").parse().unwrap();
            let mut watch = SloWatch::new(&slo, 1).unwrap();
            for latency_us in &latencies_us {
                watch.answered(ClassId(0), latency_us * 1000, 1);
            }
            latencies_us.sort_unstable();
            let rank = nearest_rank(latencies_us.len() as u64, statistic.quantile().unwrap());
            let is_kept = latencies_us[rank as usize - 1] <= bound_us;
            let (answered, exceeded) = (watch.counts().answered(ClassId(0)), watch.counts().exceeded(ClassId(0), 0));
            prop_assert_eq!(keeps(&slo.bounds()[0], answered, exceeded), Some(is_kept));
        }
    }
}
