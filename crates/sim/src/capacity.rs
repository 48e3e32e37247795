//! The highest load that meets an SLO.

use crate::{Experiment, Offered, Outcome, SimError};
use headway_report::LoadRange;
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
    /// What runs of other seeds carry, where [they were asked](CapacitySearch::find_repeated) and carry less.
    pub other_seeds: Option<LoadRange>,
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
        let mut attempt = |load: f64| {
            let found = attempt(experiment, slo, load)?;
            if found.is_some() || !experiment.is_cut_off() {
                tried(load, found.is_some());
            }
            Ok::<_, CapacityError>(found)
        };
        let Some(mut best) = attempt(self.lowest)? else {
            return Ok(Found {
                load: 0.0,
                rate_rps: 0.0,
                outcome: None,
                unshown: None,
                cut_off: experiment.is_cut_off(),
                other_seeds: None,
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

    /// As [`find`](Self::find), and asks runs of three other seeds whether they carry that load too, but for the tolerance. If one does not, each of them is
    /// searched.
    ///
    /// How many requests lie beyond a percentile does not tell how well a run knows it. Near saturation the requests of a busy period are late together:
    /// thousands of requests are a few busy periods, and a short run ends before its queue has grown. Another seed shows both.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_repeated(
        &self,
        experiment: &Experiment,
        slo: &Slo,
    ) -> Result<Found, CapacityError> {
        let mut found = self.find(experiment, slo, |_, _| {})?;
        if found.outcome.is_none() || found.unshown.is_some() || found.cut_off {
            return Ok(found);
        }
        let surely = (found.load - self.tolerance).max(self.lowest);
        let others = experiment.other_seeds();
        let mut all_carry = true;
        for other in &others {
            all_carry = all_carry && attempt(other, slo, surely)?.is_some();
        }
        if !all_carry {
            let mut loads = Vec::new();
            for other in &others {
                loads.push(self.find(other, slo, |_, _| {})?.load);
            }
            found.other_seeds = Some(LoadRange::of(&loads));
        }
        found.cut_off = experiment.is_cut_off();
        if found.cut_off {
            found.other_seeds = None;
        }
        Ok(found)
    }
}

/// The run at that load, if it breaks no bound. None also where it was cut off.
fn attempt(experiment: &Experiment, slo: &Slo, load: f64) -> Result<Option<Found>, CapacityError> {
    let at = at_load(experiment, load);
    let outcome = at.run()?;
    if outcome.run.extras.cut_off {
        return Ok(None);
    }
    // What a run at a low load cannot show, a run at a higher one may, which has more requests in the same time.
    let unshown = match slo.evaluate(&outcome.run)? {
        Verdict::Unshown(few) => Some(few),
        Verdict::Met => None,
        Verdict::Missed(_) | Verdict::Overloaded | Verdict::Lossy(_) => return Ok(None),
    };
    Ok(Some(Found {
        load,
        rate_rps: outcome.run.meta.offered_rps,
        outcome: Some(outcome),
        unshown,
        cut_off: false,
        other_seeds: None,
    }))
}

fn at_load(experiment: &Experiment, load: f64) -> Experiment {
    let workers = experiment.load_cores();
    experiment.clone().offered(Offered::Load { load, workers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::Workload;

    /// Thirty requests lie beyond p99 of each run, and all seeds but the first few say that it carries less.
    #[test]
    fn a_capacity_that_one_seed_alone_carries_is_told_from_others() {
        let workload = Workload::named("fixed-1us").unwrap();
        let experiment = Experiment::new(workload, "c-fcfs".parse().unwrap()).workers(4);
        let slo = "overall.slowdown.p99<=10".parse().unwrap();
        let search = CapacitySearch::default();
        let find = |requests| {
            let experiment = experiment.clone().requests(requests);
            search.find_repeated(&experiment, &slo).unwrap()
        };
        let long = find(200_000);
        let short = find(3_000);
        let others = short.other_seeds.expect("other seeds carry less");
        assert!(
            short.load > long.load + 0.03,
            "{} {}",
            short.load,
            long.load
        );
        assert!(others.lowest < short.load - search.tolerance, "{others:?}");
        assert!(others.lowest <= others.highest, "{others:?}");
        // Long runs agree, so that the note means something.
        let others = long.other_seeds;
        assert!(
            others.is_none_or(|range| (range.lowest - long.load).abs() < 0.02),
            "{others:?}"
        );
    }

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
