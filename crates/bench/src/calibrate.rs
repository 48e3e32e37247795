//! Measures the costs of this machine's scheduling, as the simulator's parameters.
//!
//! Four measurements on one worker give the four costs. Each is the median of several repeats: the typical cost on this machine with
//! its neighbours, rather than the best possible one:
//!
//! | measured | is, in the simulator |
//! |---|---|
//! | latency − service at low load | dispatch + handoff + overhead |
//! | time per request − service, saturated, one request at a worker at a time | overhead + completion + handoff |
//! | the same, a queue at the worker | overhead |
//! | time per request, saturated, a queue at the worker, no service | the larger of dispatch and overhead |
//!
//! The cost of an interruption is measured as a whole in the server: two requests take turns, and the time that neither of them got is the cost.
//! Two of its parts are measured [separately](headway_fiber::costs): the notification, from another thread's flag until the request has yielded,
//! and the switch. The dispatcher's part, `requeue_ns`, is the rest: the cost that makes the same two requests lose as much in the simulator.

use crate::{Trial, TrialError};
use headway_fiber::costs;
use headway_report::Run;
use headway_runtime::{LOOK_NS, Layout};
use headway_sim::{Costs, Experiment, Offered};
use headway_workload::{Arrivals, Class, ServiceDistribution, Workload};
use serde::{Deserialize, Serialize};

/// Requests of a saturated run: they must fit into the live queue.
const BURST: u64 = 15_000;
const SERVICE_NS: u64 = 2_000;
const REPEATS: usize = 7;
/// Two requests of this length take turns, a quantum each, ns.
const TURNS_NS: u64 = 20_000_000;

/// Costs, and the measurements behind them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// The costs as the simulator's parameters.
    pub costs: Costs,
    /// The machine of the measurements.
    pub machine: String,
    /// The server's layout, inline or dedicated: costs differ.
    pub layout: String,
    /// Largest fraction of its time that one of the measured runs lost to other work on the machine.
    pub lost_fraction: f64,
    /// The measurements: latency − service at low load, ns.
    pub latency_overhead_ns: u64,
    /// Time per request − service, one at a time, ns.
    pub cycle_overhead_ns: u64,
    /// Time per request − service, from a queue, ns.
    pub queued_overhead_ns: u64,
    /// Time per request without service, from a queue, ns.
    pub pipeline_ns: u64,
    /// Time that neither of two requests gets when one is interrupted for the other, ns.
    pub preemption_ns: u64,
    /// The part of `preemption_ns` from another thread's request to yield until the worker has yielded, ns; 0 where workers interrupt themselves.
    pub notification_ns: u64,
    /// The part of `preemption_ns` for suspending one request and resuming another, ns.
    pub switch_ns: u64,
    /// The cost of a probe that finds no interruption pending, ns.
    pub probe_ns: f64,
}

/// Largest fraction of time lost to other work with which measured costs are trusted.
const LOST_MAX: f64 = 0.05;

/// Largest plausible cost. A longer time is a wait for a core that another process has.
const COST_MAX_NS: u64 = 100_000;

impl Calibration {
    /// The reason why these costs cannot be trusted, in words; `None` if they can.
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

/// Measures this machine's costs under a layout. `step` is called with the progress, 0 to [`STEPS`].
///
/// # Errors
/// [`TrialError`] when the server cannot be run.
pub fn calibrate(layout: Layout, mut step: impl FnMut(usize)) -> Result<Calibration, TrialError> {
    let mut meter = LoadMeter {
        layout,
        lost_fraction: 0.0,
    };
    step(0);
    let latency_ns = meter.typical_ns(&CALM, median_ns)?;
    let latency_overhead_ns = latency_ns.saturating_sub(SERVICE_NS);
    step(1);
    let cycle_ns = meter.typical_ns(&ONE_EACH, per_request_ns)?;
    let cycle_overhead_ns = cycle_ns.saturating_sub(SERVICE_NS);
    step(2);
    let queued_ns = meter.typical_ns(&QUEUED, per_request_ns)?;
    let queued_overhead_ns = queued_ns.saturating_sub(SERVICE_NS);
    step(3);
    let pipeline_ns = meter.typical_ns(&EMPTY, per_request_ns)?;
    step(4);
    let preemption_ns = meter.typical_ns(&IN_TURNS, per_preemption_ns)?;
    step(5);
    let parts = InterruptionParts::measure(layout)?;
    step(STEPS);

    let overhead_ns = queued_overhead_ns;
    let before_service_ns = latency_overhead_ns.saturating_sub(overhead_ns);
    let dispatch_ns = pipeline_ns.min(before_service_ns);
    let handoff_ns = before_service_ns - dispatch_ns;
    let completion_ns = cycle_overhead_ns.saturating_sub(overhead_ns + handoff_ns);
    let costs = Costs {
        dispatch_ns,
        handoff_ns,
        completion_ns,
        overhead_ns,
        notif_ns: Some(parts.notification_ns),
        switch_ns: Some(parts.switch_ns),
        // The path to the dispatcher and back is the same for every request.
        next_ns: Some(0),
        // Service times include the probes' cost.
        proc_permille: Some(0),
        look_ns: if layout == Layout::Inline { LOOK_NS } else { 0 },
        ..Costs::default()
    };
    let unexplained_ns = preemption_ns.saturating_sub(simulated_preemption_ns(costs)?);
    Ok(Calibration {
        costs: Costs {
            requeue_ns: unexplained_ns,
            ..costs
        },
        machine: crate::trial::machine_name(),
        layout: match layout {
            Layout::Inline => "inline".into(),
            Layout::Auto | Layout::Dedicated => "dedicated".into(),
        },
        lost_fraction: meter.lost_fraction,
        latency_overhead_ns,
        cycle_overhead_ns,
        queued_overhead_ns,
        pipeline_ns,
        preemption_ns,
        notification_ns: parts.notification_ns,
        switch_ns: parts.switch_ns,
        probe_ns: parts.probe_ns,
    })
}

/// Steps that [`calibrate`] reports.
pub const STEPS: usize = 6;

/// Parts of an interruption that are measured separately.
struct InterruptionParts {
    notification_ns: u64,
    switch_ns: u64,
    probe_ns: f64,
}

impl InterruptionParts {
    fn measure(layout: Layout) -> Result<Self, TrialError> {
        let by_themselves = layout == Layout::Inline;
        let notification_ns = if by_themselves {
            0.0
        } else {
            costs::notification_ns().map_err(TrialError::Stacks)?
        };
        Ok(Self {
            notification_ns: notification_ns.round() as u64,
            switch_ns: costs::switch_ns().map_err(TrialError::Stacks)?.round() as u64,
            probe_ns: costs::probe_ns(by_themselves),
        })
    }
}

/// The cost of an interruption in the simulator, measured in the same way, ns.
fn simulated_preemption_ns(costs: Costs) -> Result<u64, TrialError> {
    let experiment = Experiment {
        costs,
        ..IN_TURNS.trial(Layout::Auto).experiment
    };
    Ok(per_preemption_ns(&experiment.run()?.run) as u64)
}

/// Requests of one service time at a steady rate, for one worker.
struct SteadyLoad {
    policy: &'static str,
    service_ns: u64,
    requests: u64,
    rate_rps: f64,
}

/// No request waits for another.
const CALM: SteadyLoad = SteadyLoad {
    policy: "c-fcfs",
    service_ns: SERVICE_NS,
    requests: 10_000,
    rate_rps: 25_000.0,
};

/// All requests wait from the start; the worker gets each after the last.
const ONE_EACH: SteadyLoad = SteadyLoad {
    policy: "c-fcfs",
    service_ns: SERVICE_NS,
    requests: BURST,
    rate_rps: 1e9,
};

/// All requests wait from the start, most of them in the worker's own queue.
const QUEUED: SteadyLoad = SteadyLoad {
    policy: "jbsq,k=32",
    ..ONE_EACH
};

/// Like [`QUEUED`], with requests of no work.
const EMPTY: SteadyLoad = SteadyLoad {
    service_ns: 1,
    ..QUEUED
};

/// Two long requests take turns, a quantum each.
const IN_TURNS: SteadyLoad = SteadyLoad {
    policy: "shinjuku-sq,q=5us",
    service_ns: TURNS_NS,
    requests: 2,
    ..ONE_EACH
};

impl SteadyLoad {
    fn trial(&self, layout: Layout) -> Trial {
        let service = ServiceDistribution::Constant {
            mean_ns: self.service_ns,
        };
        let mut workload = Workload::new("calibration", vec![Class::new("request", 1.0, service)]);
        workload.arrivals = Arrivals::Deterministic;
        let policy = self.policy.parse().expect("a policy of ours");
        let mut experiment = Experiment::new(workload, policy)
            .workers(1)
            .requests(self.requests)
            .offered(Offered::Rate(self.rate_rps));
        experiment.warm_up = 0.0;
        Trial {
            layout,
            ..Trial::new(experiment)
        }
    }
}

fn median_ns(run: &Run) -> f64 {
    run.overall.latency_us.p50 * 1e3
}

/// All requests arrive at once, so the last latency is the time of all requests.
fn per_request_ns(run: &Run) -> f64 {
    run.overall.latency_us.max * 1e3 / BURST as f64
}

/// The time that neither of the requests got, per interruption.
fn per_preemption_ns(run: &Run) -> f64 {
    let lost_ns = run.overall.latency_us.max * 1e3 - 2.0 * TURNS_NS as f64;
    lost_ns / run.meta.preemptions.max(1) as f64
}

/// Runs each load several times, and keeps the typical run.
struct LoadMeter {
    layout: Layout,
    /// The largest fraction of its time that a typical run lost to other work.
    lost_fraction: f64,
}

struct Repeat {
    time_ns: f64,
    lost_fraction: f64,
}

impl LoadMeter {
    /// The median time over the repeats of a load.
    fn typical_ns(
        &mut self,
        load: &SteadyLoad,
        time_ns: fn(&Run) -> f64,
    ) -> Result<u64, TrialError> {
        let trial = load.trial(self.layout);
        let mut repeats = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            let observed = trial.run()?;
            repeats.push(Repeat {
                time_ns: time_ns(&observed.run),
                lost_fraction: observed.lost_fraction(),
            });
        }
        repeats.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
        // Only the median is used, so only its losses count.
        let typical = &repeats[REPEATS / 2];
        self.lost_fraction = self.lost_fraction.max(typical.lost_fraction);
        Ok(typical.time_ns as u64)
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
            preemption_ns: 0,
            notification_ns: 0,
            switch_ns: 0,
            probe_ns: 0.0,
        }
    }

    /// The dispatcher's part makes an interruption cost the same in the simulator as on the machine.
    #[test]
    fn parts_add_up_in_the_simulator() {
        let parts = Costs {
            dispatch_ns: 30,
            handoff_ns: 100,
            completion_ns: 70,
            overhead_ns: 40,
            notif_ns: Some(60),
            switch_ns: Some(5),
            next_ns: Some(0),
            proc_permille: Some(0),
            ..Costs::default()
        };
        let least_ns = simulated_preemption_ns(parts).unwrap();
        assert!(
            (60 + 5..=60 + 5 + 100 + 70 + 30 + 1).contains(&least_ns),
            "{least_ns}"
        );
        for measured_ns in [400, 1_000] {
            let whole = Costs {
                requeue_ns: measured_ns - least_ns,
                ..parts
            };
            let simulated_ns = simulated_preemption_ns(whole).unwrap();
            assert!(
                simulated_ns.abs_diff(measured_ns) <= 1,
                "{simulated_ns} instead of {measured_ns}"
            );
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
