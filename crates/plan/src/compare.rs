//! The statistical comparison of the last round's candidates with the best.
//!
//! The same runs choose the best and compare it, so any two candidates may come to be compared. With `k` candidates
//! these are `k − 1` statements out of `k (k − 1) ÷ 2` possible ones. At 95 % each, two plans of five would find a
//! difference among six equally good candidates. The intervals here hold together with the requested confidence: each of
//! the `m` pairs gets an `m`-th of the error (Bonferroni; Law, *Simulation Modeling and Analysis*, § 9.7, § 10.3). The
//! method allows any dependence between them, such as that of common random numbers. An interval that excludes 1 shows a
//! difference.
//!
//! The earlier rounds use other seeds. Otherwise their choice would favour candidates that were lucky in
//! the same runs, and the intervals would miss that.

use headway_report::stats::{ConfidenceInterval, ratio_interval};

/// Ratios to the best, with simultaneous confidence.
pub(crate) struct RatiosToBest {
    /// Pairs that could have been compared.
    pub(crate) pairs: usize,
    /// Each candidate's value ÷ that of the best, paired by replication; `None` where one of the two has
    /// no value, or with too few replications.
    pub(crate) of_best: Vec<Option<ConfidenceInterval>>,
}

/// Compares each candidate, given as one value per replication, with the best. All intervals together contain their true
/// ratios with a probability of about `confidence`, whichever candidate turned out best. This assumes that the
/// logarithms of the ratios are nearly normal.
pub(crate) fn with_best(values: &[Option<Vec<f64>>], best: usize, confidence: f64) -> RatiosToBest {
    let comparable = values.iter().flatten().count();
    let pairs = comparable * comparable.saturating_sub(1) / 2;
    let each = 1.0 - (1.0 - confidence) / pairs.max(1) as f64;
    let of_best = |mine: &Option<Vec<f64>>| {
        let mine = mine.as_ref()?.iter().copied();
        let theirs = values[best].as_ref()?.iter().copied();
        ratio_interval(&mine.zip(theirs).collect::<Vec<_>>(), each).ok()
    };
    RatiosToBest {
        pairs,
        of_best: values.iter().map(of_best).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::Rng;
    use headway_sim::{CONFIDENCE, Experiment, Offered};
    use headway_workload::Workload;

    const SYSTEMS: usize = 6;
    const REPLICATIONS: usize = 5;

    /// How often a comparison separates some system from the apparent best: with the plan's correction, and
    /// without it.
    fn told_apart(trials: usize, mut value: impl FnMut() -> f64) -> (f64, f64) {
        let (mut together, mut alone) = (0, 0);
        for _ in 0..trials {
            let values: Vec<_> = (0..SYSTEMS)
                .map(|_| Some((0..REPLICATIONS).map(|_| value()).collect::<Vec<f64>>()))
                .collect();
            let mean_log = |at: &usize| -> f64 {
                let values = values[*at].iter().flatten();
                values.map(|value| libm::log(*value)).sum()
            };
            let best = (0..SYSTEMS).min_by(|a, b| mean_log(a).total_cmp(&mean_log(b)));
            let differs = |confidence: f64| {
                let found = with_best(&values, best.unwrap(), confidence);
                let mut ratios = found.of_best.iter().flatten();
                usize::from(ratios.any(|ratio| ratio.distinguishable_from(1.0)))
            };
            together += differs(CONFIDENCE);
            // A confidence that almost cancels the correction.
            let pairs = (SYSTEMS * (SYSTEMS - 1) / 2) as f64;
            alone += differs(1.0 - (1.0 - CONFIDENCE) * pairs);
        }
        (
            together as f64 / trials as f64,
            alone as f64 / trials as f64,
        )
    }

    /// A sum of twelve uniform numbers is near enough to normal.
    fn normal(rng: &mut Rng) -> f64 {
        let uniforms = (0..12).map(|_| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64);
        uniforms.sum::<f64>() - 6.0
    }

    #[test]
    fn equal_normal_systems_are_told_apart_about_as_often_as_said() {
        let mut rng = Rng::new(11);
        let (together, alone) = told_apart(2_000, || libm::exp(0.3 * normal(&mut rng)));
        // Of a rate of 5 % two thousand trials show 0.5 % more or less. Bonferroni errs on the safe side.
        assert!((0.015..=0.06).contains(&together), "{together}");
        assert!(alone > 0.2, "the test would not notice: {alone}");
    }

    #[test]
    fn one_policy_under_many_seeds_is_told_apart_from_itself_about_as_often_as_said() {
        let workload = Workload::named("high-bimodal").unwrap();
        let offered = Offered::Load {
            load: 0.7,
            workers: 4,
        };
        let mut seed = 0;
        let (together, alone) = told_apart(250, || {
            seed += 1;
            let experiment = Experiment::new(workload.clone(), "c-fcfs".parse().unwrap());
            let experiment = experiment.workers(4).offered(offered).requests(1_500);
            let run = experiment.seed(seed).run().unwrap().run;
            run.overall.slowdown.p99
        });
        // Two standard errors above 5 %.
        assert!(together <= 0.078, "{together}");
        assert!(alone > 0.2, "the test would not notice: {alone}");
    }

    #[test]
    fn a_clear_difference_is_seen_and_pairs_are_those_with_values() {
        let level = |at: f64| Some([1.0, 1.01, 0.99, 1.02, 0.98].map(|v| at * v).to_vec());
        let values = [level(1.0), level(2.0), None, level(1.0)];
        let found = with_best(&values, 0, 0.95);
        assert_eq!(found.pairs, 3);
        assert!(found.of_best[1].unwrap().distinguishable_from(1.0));
        assert!(!found.of_best[3].unwrap().distinguishable_from(1.0));
        assert_eq!(found.of_best[2], None);
        let each = found.of_best[1].unwrap().confidence;
        assert!((each - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    }
}
