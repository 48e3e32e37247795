//! The highest load that meets an SLO.

use crate::{Experiment, Offered, Outcome, SimError};
use headway_report::slo::{FewSamples, Slo, SloError, Verdict};

/// A search between two loads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CapacitySearch {
    /// Lowest load tried.
    pub lowest: f64,
    /// Highest load tried.
    pub highest: f64,
    /// The largest error of the load found.
    pub tolerance: f64,
}

impl Default for CapacitySearch {
    fn default() -> Self {
        Self {
            lowest: 0.02,
            highest: 1.0,
            tolerance: 0.005,
        }
    }
}

/// The result of a capacity search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The highest load that met the SLO, 0 when the lowest did not.
    pub load: f64,
    /// The same, requests per second.
    pub rate_rps: f64,
    /// The run at that load.
    pub outcome: Option<Outcome>,
    /// The bounded figure that this run is too short to show: it broke no bound, which proves nothing.
    pub unshown: Option<FewSamples>,
    /// Whether the search was [cut off](Experiment::cutoff): the policy may carry more.
    pub cut_off: bool,
}

/// Why a search failed.
#[derive(thiserror::Error)]
pub enum CapacityError {
    /// The runs.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The SLO.
    #[error(transparent)]
    Slo(#[from] SloError),
}

headway_words::debug_is_display!(CapacityError);

impl CapacitySearch {
    /// Bisects: tails grow with load, so a policy that fails at a load fails above it. `tried` is
    /// called with every load and whether it met the SLO. A search that is cut off gives what it found by then.
    ///
    /// # Errors
    /// When the experiment or the SLO is not valid.
    pub fn find(
        &self,
        experiment: &Experiment,
        slo: &Slo,
        mut tried: impl FnMut(f64, bool),
    ) -> Result<Found, CapacityError> {
        let mut attempt = |load: f64| -> Result<Option<Found>, CapacityError> {
            let at = at_load(experiment, load);
            let outcome = at.run()?;
            if outcome.run.extras.cut_off {
                return Ok(None);
            }
            let verdict = slo.evaluate(&outcome.run)?;
            // What a run at a low load cannot show, a run at a higher one may, which has more requests in the same time.
            let unshown = match verdict {
                Verdict::Unshown(few) => Some(few),
                Verdict::Met => None,
                Verdict::Missed(_) | Verdict::Overloaded | Verdict::Lossy(_) => {
                    tried(load, false);
                    return Ok(None);
                }
            };
            tried(load, true);
            Ok(Some(Found {
                load,
                rate_rps: at.rate_rps(),
                outcome: Some(outcome),
                unshown,
                cut_off: false,
            }))
        };
        let nothing = Found {
            load: 0.0,
            rate_rps: 0.0,
            outcome: None,
            unshown: None,
            cut_off: false,
        };
        let Some(mut best) = attempt(self.lowest)? else {
            return Ok(Found {
                cut_off: experiment.is_cut_off(),
                ..nothing
            });
        };
        let (mut met, mut missed) = (self.lowest, self.highest);
        while missed - met > self.tolerance {
            let middle = f64::midpoint(met, missed);
            match attempt(middle)? {
                None if experiment.is_cut_off() => {
                    best.cut_off = true;
                    break;
                }
                Some(found) => (best, met) = (found, middle),
                None => missed = middle,
            }
        }
        Ok(best)
    }
}

fn at_load(experiment: &Experiment, load: f64) -> Experiment {
    let workers = experiment.load_cores();
    experiment.clone().offered(Offered::Load { load, workers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::Workload;

    #[test]
    fn a_capacity_that_rests_on_no_request_is_none() {
        let workload = Workload::named("high-bimodal").unwrap();
        let experiment = Experiment::new(workload, "c-fcfs".parse().unwrap());
        let slo = "class.*.slowdown.p999<=10".parse().unwrap();
        let search = CapacitySearch::default();
        // 225 requests of a class: the largest stands for p99.9, and 0.996 was the answer.
        let short = search.find(&experiment.clone().requests(500), &slo, |_, _| {});
        let few = short.unwrap().unshown.expect("nothing was shown");
        assert!(few.requests > 0.1 && few.is_nothing(), "{few}");
        let found = search.find(&experiment.requests(20_000), &slo, |_, _| {});
        let found = found.unwrap();
        assert!(
            found.load < 0.5 && found.unshown.is_none(),
            "{}",
            found.load
        );
    }
}
