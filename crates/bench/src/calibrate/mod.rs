//! Measures the costs of this machine's scheduling, as the simulator's parameters, for each layout of a server's threads.
//!
//! Each measurement is on one worker, and the median of several runs: the typical cost on this machine with its neighbours, rather than the best
//! possible one. With a dispatcher:
//!
//! | measured | is, in the simulator |
//! |---|---|
//! | latency − service at low load | dispatch + handoff + next + overhead |
//! | time per request − service, saturated, one request at a worker at a time | overhead + completion + handoff + next |
//! | the same, a queue at the worker | overhead |
//! | time per request, saturated, a queue at the worker, no service | the larger of dispatch and overhead |
//! | the shortest request during which one ahead in the worker's queue is replaced | completion + handoff |
//!
//! Without a dispatcher a request costs its worker `overhead`, and the difference at low load is `handoff`: an idle worker's look.
//!
//! The cost of an interruption is measured as a whole in the server: two requests take turns, and the time that neither of them got is the cost.
//! Two of its parts are measured [separately](headway_fiber::costs): the notification, from another thread's flag until the request has yielded,
//! and the switch. The dispatcher's part, `requeue_ns`, is the rest: the cost that makes the same two requests lose as much in the simulator. Without a
//! dispatcher the rest is the worker's own, `notif_ns`. What a worker pays for a slice after which its request goes on, `renew_ns`, is what a request alone loses.

mod dispatched;
mod loads;
mod undispatched;

use crate::TrialError;
use dispatched::{DispatcherFigures, InterruptionParts};
use headway_fiber::costs;
use headway_runtime::{Layout, LayoutFacts};
use headway_sim::{Costs, MachineCosts, ThreadLayout};
use loads::LoadMeter;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Costs, and the measurements behind them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// The costs as the simulator's parameters, of the layout below.
    pub costs: Costs,
    /// The costs of each layout that was measured.
    #[serde(default)]
    pub layouts: MachineCosts,
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
    /// From a completion until the dispatcher's next request is at the worker, hidden behind another request, ns.
    #[serde(default)]
    pub round_trip_ns: u64,
    /// Time that neither of two requests gets when one is interrupted for the other, ns.
    pub preemption_ns: u64,
    /// The part of `preemption_ns` from another thread's request to yield until the worker has yielded, ns; 0 where workers interrupt themselves.
    pub notification_ns: u64,
    /// The part of `preemption_ns` for suspending one request and resuming another, ns.
    pub switch_ns: u64,
    /// The cost of a probe that finds no interruption pending, ns.
    pub probe_ns: f64,
    /// Whether the calibration was interrupted: only the layouts that were complete by then have costs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
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
        let measured = ThreadLayout::ALL.into_iter().filter_map(|layout| {
            let costs = self.layouts.measured(layout)?;
            Some((layout.name(), costs))
        });
        let (layout, name, ns) = std::iter::once((self.layout.as_str(), self.costs))
            .chain(measured)
            .find_map(|(layout, costs)| {
                let all = [
                    ("dispatch_ns", costs.dispatch_ns),
                    ("handoff_ns", costs.handoff_ns),
                    ("completion_ns", costs.completion_ns),
                    ("overhead_ns", costs.overhead_ns),
                    ("renew_ns", costs.renew_ns),
                ];
                let (name, ns) = all.into_iter().find(|&(_, ns)| ns > COST_MAX_NS)?;
                Some((layout, name, ns))
            })?;
        Some(format!(
            "{layout}: {name} is {ns}, more than {COST_MAX_NS}: threads waited for cores that others had; stop what else runs, and measure again"
        ))
    }
}

/// Measures this machine's costs under these layouts, of which the first is the one of [`Calibration::costs`]. `step` is called with the progress, 0 to
/// [`steps`] of as many layouts. Once `cutoff` is true it ends with the layouts that are complete.
///
/// # Errors
/// [`TrialError`] when the server cannot be run, or when the first layout was cut off.
///
/// # Panics
/// Without a layout.
pub fn calibrate(
    layouts: &[ThreadLayout],
    cutoff: Option<&Arc<AtomicBool>>,
    mut step: impl FnMut(usize),
) -> Result<Calibration, TrialError> {
    let mut done = 0;
    let mut count = || {
        done += 1;
        step(done);
    };
    let (mut costs, mut lost_fraction) = (MachineCosts::default(), 0.0_f64);
    let mut first = DispatcherFigures::default();
    for (index, &layout) in layouts.iter().enumerate() {
        let mut meter = LoadMeter::new(live_layout(layout), cutoff);
        let measured = match figures(layout, &mut meter, &mut count) {
            Err(TrialError::CutOff) if index > 0 => break,
            measured => measured?,
        };
        costs.set(layout, measured.costs);
        lost_fraction = lost_fraction.max(meter.lost_fraction);
        if index == 0 {
            (first, costs.other) = (measured, measured.costs);
        }
    }
    let live = live_layout(layouts[0]);
    let interruption = InterruptionParts::measure(live)?;
    Ok(Calibration {
        costs: first.costs,
        layouts: costs,
        machine: crate::observed::machine_name(),
        layout: layouts[0].name().into(),
        lost_fraction,
        latency_overhead_ns: first.latency_overhead_ns,
        cycle_overhead_ns: first.cycle_overhead_ns,
        queued_overhead_ns: first.queued_overhead_ns,
        pipeline_ns: first.pipeline_ns,
        round_trip_ns: first.round_trip_ns,
        preemption_ns: first.preemption_ns,
        notification_ns: interruption.notification_ns,
        switch_ns: interruption.switch_ns,
        probe_ns: costs::probe_ns(live == Layout::Inline),
        cut_off: cutoff.is_some_and(|cutoff| cutoff.load(Ordering::Relaxed)),
    })
}

/// What a server in this layout shows.
fn figures(
    layout: ThreadLayout,
    meter: &mut LoadMeter,
    step: impl FnMut(),
) -> Result<DispatcherFigures, TrialError> {
    if layout.has_dispatcher() {
        return DispatcherFigures::measure(meter, step);
    }
    Ok(DispatcherFigures {
        costs: undispatched::measure(layout, meter, step)?,
        ..DispatcherFigures::default()
    })
}

/// Steps that [`calibrate`] reports for as many layouts.
#[must_use]
pub fn steps(layouts: usize) -> usize {
    layouts * STEPS
}

/// The parts of one layout's measurement.
const STEPS: usize = 6;

/// The layouts that this machine has cores for, those of a dispatcher with its own thread first, or those of `first`.
#[must_use]
pub fn layouts_here(first: Layout) -> Vec<ThreadLayout> {
    let has_core = LayoutFacts::usable_cores() > 1;
    let mut layouts: Vec<ThreadLayout> = ThreadLayout::ALL
        .into_iter()
        .filter(|layout| has_core || !layout.has_thread_beside() || first == Layout::Dedicated)
        .collect();
    if first == Layout::Inline || !has_core {
        layouts.sort_by_key(|layout| *layout != ThreadLayout::Inline);
    }
    layouts
}

/// The layout of the live server that is measured.
fn live_layout(layout: ThreadLayout) -> Layout {
    if layout.has_thread_beside() {
        Layout::Dedicated
    } else {
        Layout::Inline
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
            layouts: MachineCosts::default(),
            machine: String::new(),
            layout: "dedicated".into(),
            lost_fraction,
            latency_overhead_ns: 0,
            cycle_overhead_ns: 0,
            queued_overhead_ns: 0,
            pipeline_ns: 0,
            round_trip_ns: 0,
            preemption_ns: 0,
            notification_ns: 0,
            switch_ns: 0,
            probe_ns: 0.0,
            cut_off: false,
        }
    }

    #[test]
    fn costs_of_a_busy_machine_are_doubted() {
        assert_eq!(calibration(900, 0.01).doubt(), None);
        let said = calibration(900, 0.2).doubt().unwrap();
        assert!(said.contains("20.0 %"), "{said}");
        let said = calibration(3_676_639, 0.01).doubt().unwrap();
        assert!(said.contains("dedicated: handoff_ns is 3676639"), "{said}");
    }

    /// Files of before there were several layouts have their one layout's costs.
    #[test]
    fn a_file_of_one_layout_is_still_read() {
        let mut value = serde_json::to_value(calibration(900, 0.01)).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.remove("layouts");
        fields.remove("round_trip_ns");
        let read: Calibration = serde_json::from_value(value).unwrap();
        assert_eq!(read.costs.handoff_ns, 900);
        assert_eq!(read.layouts, MachineCosts::default());
    }

    #[test]
    fn the_simulators_workers_look_as_often_as_live_ones() {
        assert_eq!(Costs::INLINE_LOOK_NS, headway_runtime::LOOK_NS);
    }
}
