//! The costs where a dispatcher places requests, on a thread of its own or by the workers in turn.

use super::loads::{
    ALONE, CALM, EMPTY, IN_TURNS, LONG_NS, LoadFigures, LoadMeter, ONE_AHEAD, ONE_EACH, QUEUED,
    SERVICE_NS, SteadyLoad,
};
use crate::TrialError;
use headway_fiber::costs;
use headway_runtime::{LOOK_NS, Layout};
use headway_sim::{Costs, Experiment};

/// What was measured of a server with a dispatcher, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DispatcherFigures {
    pub(super) costs: Costs,
    pub(super) latency_overhead_ns: u64,
    pub(super) cycle_overhead_ns: u64,
    pub(super) queued_overhead_ns: u64,
    pub(super) pipeline_ns: u64,
    pub(super) round_trip_ns: u64,
    pub(super) preemption_ns: u64,
}

impl DispatcherFigures {
    /// Measures them. `step` is called after each of [`STEPS`](super::STEPS) parts.
    pub(super) fn measure(
        meter: &mut LoadMeter,
        mut step: impl FnMut(),
    ) -> Result<Self, TrialError> {
        let beyond = |ns: u64| ns.saturating_sub(SERVICE_NS);
        let latency_overhead_ns = beyond(meter.typical_ns(&CALM, LoadFigures::median_ns)?);
        step();
        let cycle_overhead_ns = beyond(meter.typical_ns(&ONE_EACH, LoadFigures::per_request_ns)?);
        step();
        let queued_overhead_ns = beyond(meter.typical_ns(&QUEUED, LoadFigures::per_request_ns)?);
        step();
        let pipeline_ns = meter.typical_ns(&EMPTY, LoadFigures::per_request_ns)?;
        step();
        let round_trip_ns = round_trip_ns(meter, cycle_overhead_ns, queued_overhead_ns)?;
        step();
        let turns_ns = 2.0 * LONG_NS as f64;
        let preemption_ns =
            meter.typical_ns(&IN_TURNS, |shown| shown.per_preemption_ns(turns_ns))?;
        let renew_ns = meter.typical_ns(&ALONE, LoadFigures::per_renewal_ns)?;
        step();
        let measured = Self {
            costs: Costs::default(),
            latency_overhead_ns,
            cycle_overhead_ns,
            queued_overhead_ns,
            pipeline_ns,
            round_trip_ns,
            preemption_ns,
        };
        let costs = measured.costs(
            InterruptionParts::measure(meter.layout)?,
            renew_ns,
            meter.layout,
        );
        let unexplained_ns = preemption_ns.saturating_sub(simulated_preemption_ns(costs)?);
        Ok(Self {
            costs: Costs {
                requeue_ns: unexplained_ns,
                ..costs
            },
            ..measured
        })
    }

    /// The simulator's parameters that give the same figures, but for `requeue_ns`.
    fn costs(&self, interruption: InterruptionParts, renew_ns: u64, layout: Layout) -> Costs {
        let overhead_ns = self.queued_overhead_ns;
        let next_ns = self
            .cycle_overhead_ns
            .saturating_sub(overhead_ns + self.round_trip_ns);
        let before_service_ns = self
            .latency_overhead_ns
            .saturating_sub(overhead_ns + next_ns);
        let dispatch_ns = self.pipeline_ns.min(before_service_ns);
        let handoff_ns = before_service_ns - dispatch_ns;
        let completion_ns = self
            .cycle_overhead_ns
            .saturating_sub(overhead_ns + handoff_ns + next_ns);
        Costs {
            dispatch_ns,
            handoff_ns,
            completion_ns,
            overhead_ns,
            notif_ns: Some(interruption.notification_ns),
            switch_ns: Some(interruption.switch_ns),
            next_ns: Some(next_ns),
            // Service times include the probes' cost.
            proc_permille: Some(0),
            look_ns: if layout == Layout::Inline { LOOK_NS } else { 0 },
            renew_ns,
            ..Costs::default()
        }
    }
}

/// Parts of an interruption that are measured separately.
#[derive(Clone, Copy)]
pub(super) struct InterruptionParts {
    pub(super) notification_ns: u64,
    pub(super) switch_ns: u64,
}

impl InterruptionParts {
    pub(super) fn measure(layout: Layout) -> Result<Self, TrialError> {
        let notification_ns = if layout == Layout::Inline {
            0.0
        } else {
            costs::notification_ns().map_err(TrialError::Stacks)?
        };
        let switch_ns = costs::switch_ns().map_err(TrialError::Stacks)?;
        Ok(Self {
            notification_ns: notification_ns.round() as u64,
            switch_ns: switch_ns.round() as u64,
        })
    }
}

/// Halvings of the interval that holds the round trip.
const HALVINGS: usize = 5;
/// Runs for each of them.
const LOOKS: usize = 3;

/// The shortest service, with the worker's overhead, during which the dispatcher notices a completion and hands out the next request: with one request ahead
/// in its queue, the worker then never waits. A worker that does wait pays more than this: what is beyond it is `next_ns`.
fn round_trip_ns(
    meter: &mut LoadMeter,
    cycle_overhead_ns: u64,
    overhead_ns: u64,
) -> Result<u64, TrialError> {
    let longest_ns = cycle_overhead_ns.saturating_sub(overhead_ns);
    let mut waits = |service_ns: u64| -> Result<bool, TrialError> {
        let load = SteadyLoad {
            service_ns,
            ..ONE_AHEAD
        };
        let took_ns = meter.median_ns(&load, LOOKS, LoadFigures::per_request_ns)?;
        Ok(took_ns > service_ns + overhead_ns + longest_ns / 8)
    };
    let (mut too_short_ns, mut enough_ns) = (0, longest_ns.saturating_sub(overhead_ns));
    for _ in 0..HALVINGS {
        let middle_ns = u64::midpoint(too_short_ns, enough_ns);
        if middle_ns == too_short_ns {
            break;
        }
        if waits(middle_ns)? {
            too_short_ns = middle_ns;
        } else {
            enough_ns = middle_ns;
        }
    }
    Ok((enough_ns + overhead_ns).min(longest_ns))
}

/// The cost of an interruption in the simulator, measured in the same way, ns.
fn simulated_preemption_ns(costs: Costs) -> Result<u64, TrialError> {
    let experiment = Experiment {
        costs,
        ..IN_TURNS.trial(Layout::Auto).experiment
    };
    let run = experiment.run()?.run;
    Ok(LoadFigures::by(&run, 0).per_preemption_ns(2.0 * LONG_NS as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The simulator with the costs takes the time per request that they were made from: low load, one at a time, and a queue at the worker.
    #[test]
    fn what_was_measured_is_what_the_costs_simulate() {
        let measured = DispatcherFigures {
            latency_overhead_ns: 400,
            cycle_overhead_ns: 500,
            queued_overhead_ns: 100,
            pipeline_ns: 110,
            round_trip_ns: 330,
            ..DispatcherFigures::default()
        };
        let interruption = InterruptionParts {
            notification_ns: 0,
            switch_ns: 0,
        };
        let costs = measured.costs(interruption, 0, Layout::Dedicated);
        assert_eq!(costs.next_ns, Some(70));
        let took = |load: &SteadyLoad, time_ns: fn(&LoadFigures) -> f64| {
            let experiment = Experiment {
                costs,
                ..load.trial(Layout::Auto).experiment
            };
            let run = experiment.run().unwrap().run;
            time_ns(&LoadFigures::by(&run, 0)) - SERVICE_NS as f64
        };
        let near = |took_ns: f64, ns: f64| assert!((took_ns / ns - 1.0).abs() < 0.03, "{took_ns}");
        near(took(&CALM, LoadFigures::median_ns), 400.0);
        near(took(&ONE_EACH, LoadFigures::per_request_ns), 500.0);
        near(took(&QUEUED, LoadFigures::per_request_ns), 100.0);
    }
}
