//! Rounds: the order of their runs, the runs that count, and medians over them.

use std::ops::ControlFlow;

use headway_report::Histogram;
use serde::Serialize;

/// A request that leaves later than this is late. A tenth of the shortest service time would be too strict: a sleep's own delay reaches it.
pub(crate) const LATE_NS: u64 = 1_000_000;
/// The fraction of a run's requests that may be late.
const LATE_FRACTION_MAX: f64 = 0.01;

/// A planned run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRun {
    pub(crate) round: usize,
    /// Index of the load.
    pub(crate) load: usize,
    /// Index of the system.
    pub(crate) system: usize,
}

impl PlannedRun {
    /// Seed of the arrivals: the same for all systems at one load of a round, different for each round and load.
    pub(crate) fn seed(self) -> u64 {
        (self.round as u64) << 32 | self.load as u64
    }
}

/// Plans every system at every load in every round. Systems at the same load run one after the other, so that slow changes of the machine
/// affect all of them. The first system changes from load to load and from round to round.
pub(crate) fn planned_runs(rounds: usize, loads: usize, systems: &[usize]) -> Vec<PlannedRun> {
    let mut planned = Vec::new();
    for round in 0..rounds {
        for load in 0..loads {
            for place in 0..systems.len() {
                planned.push(PlannedRun {
                    round,
                    load,
                    system: systems[(place + round + load) % systems.len()],
                });
            }
        }
    }
    planned
}

/// The rounds of a plan that were complete.
pub(crate) struct CompleteRounds<R> {
    /// Their runs, in the order of the plan.
    pub(crate) runs: Vec<R>,
    pub(crate) rounds: usize,
}

/// Makes the runs of a plan of `rounds` rounds. Asks before each of them whether it goes on, with its place in the plan. Where it does not, the runs of a round that is not
/// complete are left out, and so is a run that failed: its processes may have been ended with this one. `None` where no round was complete.
pub(crate) fn complete_rounds<R, E>(
    plan: &[PlannedRun],
    rounds: usize,
    mut go_on: impl FnMut(usize, PlannedRun) -> ControlFlow<()>,
    mut run: impl FnMut(PlannedRun) -> Result<R, E>,
) -> Result<Option<CompleteRounds<R>>, E> {
    let mut runs = Vec::with_capacity(plan.len());
    for (place, &planned) in plan.iter().enumerate() {
        if go_on(place, planned).is_break() {
            break;
        }
        match run(planned) {
            Err(_) if go_on(place, planned).is_break() => break,
            made => runs.push(made?),
        }
    }
    let of_round = plan.len() / rounds.max(1);
    let complete = runs.len() / of_round.max(1);
    runs.truncate(complete * of_round);
    Ok((complete > 0).then_some(CompleteRounds {
        runs,
        rounds: complete,
    }))
}

/// Sending delays at the client, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lag {
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// The fraction of the requests that left more than 1 ms late.
    pub late_fraction: f64,
}

impl Lag {
    pub(crate) fn of(lag_ns: &Histogram) -> Self {
        let quantile = |quantile| lag_ns.quantile(quantile).unwrap_or(0) as f64 / 1e3;
        Self {
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            max_us: lag_ns.max().unwrap_or(0) as f64 / 1e3,
            late_fraction: lag_ns.count_above(LATE_NS) as f64 / lag_ns.count().max(1) as f64,
        }
    }

    /// Whether too many requests were late, so that the run measured a client without processor time.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late_fraction > LATE_FRACTION_MAX
    }
}

/// The median of the finite values; of an even number of them, the mean of the middle two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_system_runs_at_every_load_in_every_round_and_each_is_first_at_times() {
        let systems = [0, 2, 3];
        let planned = planned_runs(3, 2, &systems);
        assert_eq!(planned.len(), 18);
        for group in planned.chunks(3) {
            let mut met: Vec<usize> = group.iter().map(|run| run.system).collect();
            met.sort_unstable();
            assert_eq!(met, systems);
            assert!(group.iter().all(|run| run.seed() == group[0].seed()));
        }
        let firsts: BTreeSet<usize> = planned.chunks(3).map(|group| group[0].system).collect();
        assert_eq!(firsts.len(), 3);
        let seeds: BTreeSet<u64> = planned.iter().map(|run| run.seed()).collect();
        assert_eq!(seeds.len(), 6);
    }

    #[test]
    fn a_plan_that_is_cut_off_keeps_its_complete_rounds() {
        let plan = planned_runs(4, 2, &[0, 1]);
        let until = |end: usize, failing: usize| {
            let mut made = 0;
            let complete = complete_rounds(
                &plan,
                4,
                |place, _| match place {
                    place if place < end => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                },
                |planned| {
                    made += 1;
                    if made > failing {
                        Err("it failed")
                    } else {
                        Ok(planned)
                    }
                },
            );
            complete.map(|complete| complete.map(|it| (it.rounds, it.runs)))
        };
        let all = plan.len();
        assert_eq!(until(all, all), Ok(Some((4, plan.clone()))));
        assert_eq!(until(11, all), Ok(Some((2, plan[..8].to_vec()))));
        assert_eq!(until(3, all), Ok(None));
        assert_eq!(until(all, 5), Err("it failed"));
    }

    #[test]
    fn a_run_that_ctrl_c_ended_is_no_failure() {
        let plan = planned_runs(3, 1, &[0, 1]);
        let pressed = std::cell::Cell::new(false);
        let complete = complete_rounds(
            &plan,
            3,
            |_, _| match pressed.get() {
                false => ControlFlow::Continue(()),
                true => ControlFlow::Break(()),
            },
            |planned| {
                pressed.set(planned.round == 2);
                if pressed.get() {
                    Err("its server is gone")
                } else {
                    Ok(planned)
                }
            },
        );
        assert_eq!(complete.unwrap().map(|it| it.rounds), Some(2));
    }

    #[test]
    fn lateness_is_that_of_more_than_one_in_a_hundred() {
        let lag = |late: usize| {
            let mut lag_ns = Histogram::new();
            (0..1000 - late).for_each(|_| lag_ns.record(20_000));
            (0..late).for_each(|_| lag_ns.record(3_000_000));
            Lag::of(&lag_ns)
        };
        assert!(!lag(10).is_late() && lag(11).is_late());
        assert!((lag(10).p50_us - 20.0).abs() < 0.5 && lag(10).max_us >= 2_900.0);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        assert_eq!(median([3.0, f64::NAN, 1.0].into_iter()), 2.0);
        assert_eq!(median([5.0, 1.0, 3.0].into_iter()), 3.0);
        assert!(median(std::iter::empty()).is_nan());
    }
}
