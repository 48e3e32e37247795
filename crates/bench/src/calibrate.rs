//! What the machinery costs on this machine, in the simulator's terms.
//!
//! Four measurements on one worker give the four costs; each is repeated and the median taken: what the machinery costs here
//! as a rule, its neighbours included, not what it could cost at best:
//!
//! | measured | is, in the simulator |
//! |---|---|
//! | latency − service at low load | dispatch + handoff + overhead |
//! | time per request − service, saturated, one request at a worker at a time | overhead + completion + handoff |
//! | the same, a queue at the worker | overhead |
//! | time per request, saturated, a queue at the worker, no service | the larger of dispatch and overhead |

use crate::{Trial, TrialError};
use headway_report::Run;
use headway_runtime::Layout;
use headway_sim::{Costs, Experiment, Offered};
use headway_workload::{Arrivals, Class, Service, Workload};
use serde::{Deserialize, Serialize};

/// Requests of a saturated run: they must fit into the live queue.
const BURST: u64 = 15_000;
const SERVICE_NS: u64 = 2_000;
const REPEATS: usize = 7;

/// Costs, and what they rest on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// In the simulator's terms.
    pub costs: Costs,
    /// Where they were measured.
    pub machine: String,
    /// Inline or dedicated: costs differ.
    pub layout: String,
    /// Largest part of its time that a run lost to others on which a cost rests.
    pub lost_fraction: f64,
    /// The measurements: latency − service at low load, ns.
    pub latency_overhead_ns: u64,
    /// Time per request − service, one at a time, ns.
    pub cycle_overhead_ns: u64,
    /// Time per request − service, from a queue, ns.
    pub queued_overhead_ns: u64,
    /// Time per request without service, from a queue, ns.
    pub pipeline_ns: u64,
}

/// What a machine may lose to others before its costs look larger than they are.
const LOST_MAX: f64 = 0.05;

/// No machinery costs more. What takes longer is a wait for a core that somebody else has.
const COST_MAX_NS: u64 = 100_000;

impl Calibration {
    /// Why these costs are not to be trusted, in words; `None` where they are.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        if self.lost_fraction > LOST_MAX {
            return Some(format!(
                "the machine lost {:.1} % of its time to others while it was measured (at most {} % may be lost): stop what else runs, and \
                 measure again",
                100.0 * self.lost_fraction,
                100.0 * LOST_MAX
            ));
        }
        let costs = [
            ("dispatch_ns", self.costs.dispatch_ns),
            ("handoff_ns", self.costs.handoff_ns),
            ("completion_ns", self.costs.completion_ns),
            ("overhead_ns", self.costs.overhead_ns),
        ];
        let (name, ns) = costs.into_iter().find(|&(_, ns)| ns > COST_MAX_NS)?;
        Some(format!(
            "{name} is {ns}, more than {COST_MAX_NS}: threads waited for cores that others had; stop what else runs, and measure again"
        ))
    }
}

/// Measures this machine's costs under a layout; `step` hears of progress, 0 to [`STEPS`].
///
/// # Errors
/// [`TrialError`] when the server cannot be run.
pub fn calibrate(layout: Layout, mut step: impl FnMut(usize)) -> Result<Calibration, TrialError> {
    let mut lost_fraction: f64 = 0.0;
    let mut typical = |trial: &Trial, measure: &dyn Fn(&Run) -> f64| -> Result<u64, TrialError> {
        let mut repeats = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            let observed = trial.run()?;
            repeats.push((measure(&observed.run), observed.lost_fraction()));
        }
        repeats.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The others may have met what they like: nothing rests on them.
        let (time_ns, lost) = repeats[REPEATS / 2];
        lost_fraction = lost.max(lost_fraction);
        Ok(time_ns.max(0.0) as u64)
    };
    let service = SERVICE_NS as f64;
    let median_ns = |run: &Run| run.overall.latency_us.p50 * 1e3;
    // All arrive at once: the last one's latency is the time that all of them took.
    let per_request_ns = |run: &Run| run.overall.latency_us.max * 1e3 / BURST as f64;

    step(0);
    let calm = trial("c-fcfs", SERVICE_NS, 10_000, 25_000.0, layout);
    let latency_overhead_ns = typical(&calm, &|run| median_ns(run) - service)?;
    step(1);
    let one = trial("c-fcfs", SERVICE_NS, BURST, 1e9, layout);
    let cycle_overhead_ns = typical(&one, &|run| per_request_ns(run) - service)?;
    step(2);
    let queued = trial("jbsq,k=32", SERVICE_NS, BURST, 1e9, layout);
    let queued_overhead_ns = typical(&queued, &|run| per_request_ns(run) - service)?;
    step(3);
    let empty = trial("jbsq,k=32", 1, BURST, 1e9, layout);
    let pipeline_ns = typical(&empty, &per_request_ns)?;
    step(STEPS);

    let overhead_ns = queued_overhead_ns;
    let before_service_ns = latency_overhead_ns.saturating_sub(overhead_ns);
    let dispatch_ns = pipeline_ns.min(before_service_ns);
    let handoff_ns = before_service_ns - dispatch_ns;
    let completion_ns = cycle_overhead_ns.saturating_sub(overhead_ns + handoff_ns);
    Ok(Calibration {
        costs: Costs {
            dispatch_ns,
            handoff_ns,
            completion_ns,
            overhead_ns,
            ..Costs::default()
        },
        machine: crate::trial::machine_name(),
        layout: match layout {
            Layout::Inline => "inline".into(),
            Layout::Auto | Layout::Dedicated => "dedicated".into(),
        },
        lost_fraction,
        latency_overhead_ns,
        cycle_overhead_ns,
        queued_overhead_ns,
        pipeline_ns,
    })
}

/// Steps that [`calibrate`] reports.
pub const STEPS: usize = 4;

fn trial(policy: &str, service_ns: u64, requests: u64, rate_rps: f64, layout: Layout) -> Trial {
    let service = Service::Constant {
        mean_ns: service_ns,
    };
    let mut workload = Workload::new("calibration", vec![Class::new("request", 1.0, service)]);
    workload.arrivals = Arrivals::Deterministic;
    let policy = policy.parse().expect("a policy of ours");
    let mut experiment = Experiment::new(workload, policy)
        .workers(1)
        .requests(requests)
        .offered(Offered::Rate(rate_rps));
    experiment.warm_up = 0.0;
    Trial {
        layout,
        ..Trial::new(experiment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(handoff_ns: u64, lost_fraction: f64) -> Calibration {
        Calibration {
            costs: Costs {
                handoff_ns,
                ..Costs::default()
            },
            machine: String::new(),
            layout: "dedicated".into(),
            lost_fraction,
            latency_overhead_ns: 0,
            cycle_overhead_ns: 0,
            queued_overhead_ns: 0,
            pipeline_ns: 0,
        }
    }

    #[test]
    fn costs_of_a_busy_machine_are_doubted() {
        assert_eq!(calibration(900, 0.01).doubt(), None);
        let said = calibration(900, 0.2).doubt().unwrap();
        assert!(said.contains("20.0 %"), "{said}");
        let said = calibration(3_676_639, 0.01).doubt().unwrap();
        assert!(said.contains("handoff_ns is 3676639"), "{said}");
    }
}
