//! The machine that a plan is for: its cores and its scheduling costs.

use crate::args::{self, ResumeFlag};
use crate::progress;
use anyhow::{Context, Result};
use headway_bench::calibrate::{STEPS, calibrate};
use headway_bench::datapath;
use headway_plan::Question;
use headway_policy::MAX_WORKERS;
use headway_report::{PlanReport, format};
use headway_runtime::Layout;
use headway_sim::Costs;
use std::path::Path;

/// The fraction of time that a machine may lose to others before its measured costs are too high.
const LOST_MAX: f64 = 0.05;

#[derive(clap::Args, Clone, Debug)]
pub(super) struct Machine {
    /// Cores of the machine. A dispatcher has one of them, and the workers the others
    /// [default: 15; where a rate is given, enough for a load of 0.7]
    #[arg(long, value_name = "N", value_parser = cores, allow_negative_numbers = true)]
    pub(super) cores: Option<usize>,
    /// Scheduling costs: a FILE of `headway calibrate -o FILE`, or 'here' to measure them now, with the UDP sockets
    #[arg(long, value_name = "FILE|here")]
    costs: Option<String>,
    /// Plan for an ideal machine; --config-out needs this or --costs
    #[arg(long, conflicts_with = "costs")]
    pub(super) ideal: bool,
    /// Serial work of the dispatcher per request
    #[arg(long, value_name = "TIME", value_parser = args::time, conflicts_with = "ideal")]
    dispatch_cost: Option<u64>,
    /// Time in the network, added to every latency
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = args::time)]
    pub(super) network: u64,
    /// Capacity of each queue; requests beyond it are shed. Unbounded by default
    #[arg(long, value_name = "N", value_parser = args::count, allow_negative_numbers = true)]
    queue_limit: Option<u64>,
    /// Where an interrupted request resumes: handlers that keep thread-local state must stay on their worker
    #[arg(long, value_enum, value_name = "WHERE", default_value = "own-worker")]
    pub(super) resume: ResumeFlag,
}

impl Machine {
    pub(super) fn queue_limit(&self) -> usize {
        self.queue_limit.map_or(usize::MAX, |limit| limit as usize)
    }

    /// The scheduling costs and the time to receive a request, ns, as far as the flags give them.
    pub(super) fn costs(&self, cores: usize) -> Result<(Costs, u64)> {
        let (mut costs, receive_ns) = match self.costs.as_deref() {
            None => (Costs::default(), 0),
            Some("here") => measured(cores)?,
            Some(file) => (args::read_costs(Path::new(file))?, 0),
        };
        if let Some(dispatch_ns) = self.dispatch_cost {
            costs.dispatch_ns = dispatch_ns;
        }
        let costs = if cores == 1 {
            inline(costs, receive_ns)
        } else {
            costs
        };
        Ok((costs, if cores == 1 { 0 } else { receive_ns }))
    }

    /// Notes in the report the source of its costs.
    pub(super) fn remark(&self, question: &Question, report: &mut PlanReport) {
        if question.costs.is_free() {
            return;
        }
        let source = match self.costs.as_deref() {
            None => "given",
            Some("here") => "measured here, the UDP sockets included",
            Some(_) => "of the file given, which know no sockets unless they were added to it",
        };
        let Costs {
            dispatch_ns,
            handoff_ns,
            completion_ns,
            overhead_ns,
            ..
        } = question.costs;
        let [dispatch, handoff, completion, overhead, receive] = [
            dispatch_ns,
            handoff_ns,
            completion_ns,
            overhead_ns,
            question.receive_ns,
        ]
        .map(|ns| format::duration_us(ns as f64 / 1e3));
        report.caveats.push(format!(
            "costs {source}: dispatcher {dispatch} a request, hand-off {handoff}, completion {completion}, worker {overhead} a request, receiving it {receive}"
        ));
    }
}

/// The only worker does the dispatcher's work itself, and receives.
fn inline(costs: Costs, receive_ns: u64) -> Costs {
    Costs {
        overhead_ns: costs.overhead_ns + costs.dispatch_ns + receive_ns,
        dispatch_ns: 0,
        handoff_ns: 0,
        ..costs
    }
}

/// Measures the scheduling costs, and the path through the sockets.
fn measured(cores: usize) -> Result<(Costs, u64)> {
    let layout = if cores > 1 {
        Layout::Dedicated
    } else {
        Layout::Inline
    };
    let bar = progress::bar(STEPS as u64, "calibrating");
    let calibration = calibrate(layout, |step| bar.set_position(step as u64))?;
    bar.finish_and_clear();
    if calibration.lost_fraction > LOST_MAX {
        eprintln!(
            "the machine lost {} of its time while calibrating: the costs look larger than they are",
            format::percent(calibration.lost_fraction)
        );
    }
    let udp = datapath::udp().context("cannot measure the UDP sockets of this machine")?;
    let costs = Costs {
        overhead_ns: calibration.costs.overhead_ns + udp.send_ns,
        ..calibration.costs
    };
    Ok((costs, udp.receive_ns))
}

/// Parses a number of cores within the limit of a server's workers and its dispatcher.
fn cores(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(cores) if (1..=MAX_WORKERS).contains(&cores) => Ok(cores),
        _ => Err(format!(
            "'{text}' is not a number of cores from 1 to {MAX_WORKERS}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_core_pays_for_dispatching() {
        let costs = Costs {
            dispatch_ns: 300,
            handoff_ns: 80,
            overhead_ns: 200,
            completion_ns: 50,
            ..Costs::default()
        };
        let paid = inline(costs, 400);
        assert_eq!((paid.overhead_ns, paid.dispatch_ns), (900, 0));
        assert_eq!((paid.handoff_ns, paid.completion_ns), (0, 50));
    }

    #[test]
    fn cores_are_counted_from_one() {
        assert_eq!(cores("2").unwrap(), 2);
        assert!(cores("-1").unwrap_err().contains("from 1 to 256"));
        assert!(cores("0").is_err());
    }
}
