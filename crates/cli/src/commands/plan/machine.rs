//! The machine that a plan is for: its cores and its scheduling costs.

use crate::args::{self, ResumeFlag};
use crate::progress;
use anyhow::{Context, Result};
use headway_bench::calibrate::{calibrate, layouts_here, steps};
use headway_bench::datapath;
use headway_plan::Question;
use headway_policy::MAX_WORKERS;
use headway_report::{PlanReport, format};
use headway_runtime::{Layout, LayoutFacts};
use headway_sim::{Costs, MachineCosts, ThreadLayout};
use std::path::Path;

/// The fraction of time that a machine may lose to others before its measured costs are too high.
const LOST_MAX: f64 = 0.05;

#[derive(clap::Args, Clone, Debug)]
pub(super) struct Machine {
    /// Cores of the machine. A dispatcher's thread has one of them, and the workers the others; or all are the workers', which take turns
    /// [default: with --costs here, --validate or --config-out those that this process may use, by affinity mask and cgroup quota; else 15, and
    /// where a rate is given, enough for a load of 0.7]
    #[arg(long, value_name = "N", value_parser = cores, allow_negative_numbers = true)]
    pub(super) cores: Option<usize>,
    /// Scheduling costs: a FILE of `headway calibrate -o FILE`, or 'here' to measure them now, with the UDP sockets
    #[arg(long, value_name = "FILE|here")]
    costs: Option<String>,
    /// Plan for an ideal machine; --config-out needs this or --costs
    #[arg(long, conflicts_with = "costs")]
    pub(super) ideal: bool,
    /// Serial work of the dispatcher per request
    #[arg(long, value_name = "TIME", value_parser = args::cost, conflicts_with = "ideal")]
    dispatch_cost: Option<u64>,
    /// Time in the network, added to every latency
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = args::cost)]
    pub(super) network: u64,
    /// Capacity of each queue; requests beyond it are shed. Unbounded by default
    #[arg(long, value_name = "N", value_parser = args::count, allow_negative_numbers = true)]
    queue_limit: Option<u64>,
    /// Requests that may have begun and not ended, as in a pool; others wait before the policy. Unlimited by default, as in a server
    #[arg(long, value_name = "N", value_parser = args::count, allow_negative_numbers = true, conflicts_with_all = ["validate", "config_out"])]
    begun_at_most: Option<u64>,
    /// Where an interrupted request resumes: handlers that keep thread-local state must stay on their worker
    /// [default: there, and anywhere under a policy that moves requests, which the plan then says]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(super) resume: Option<ResumeFlag>,
}

impl Machine {
    pub(super) fn queue_limit(&self) -> usize {
        self.queue_limit.map_or(usize::MAX, |limit| limit as usize)
    }

    pub(super) fn begun_at_most(&self) -> Option<usize> {
        self.begun_at_most.map(|limit| limit as usize)
    }

    /// The cores that were given, or those of this machine that this process may use where the plan is for this machine: its affinity mask and its cgroup's
    /// quota count.
    pub(super) fn cores_given(&self, is_for_here: bool) -> Option<usize> {
        let here = is_for_here || self.costs.as_deref() == Some("here");
        self.cores
            .or_else(|| here.then(|| LayoutFacts::usable_cores().min(MAX_WORKERS)))
    }

    /// The scheduling costs and the time to receive a request, ns, as far as the flags give them.
    pub(super) fn costs(&self) -> Result<(MachineCosts, u64)> {
        let (mut costs, receive_ns) = match self.costs.as_deref() {
            None => (MachineCosts::default(), 0),
            Some("here") => measured()?,
            Some(file) => (args::read_costs(Path::new(file))?.costs, 0),
        };
        if let Some(dispatch_ns) = self.dispatch_cost {
            costs = costs.map(|costs| Costs {
                dispatch_ns,
                ..costs
            });
        }
        Ok((costs, receive_ns))
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
        let layout = ThreadLayout::named(&report.ranking[0].layout);
        let layout = layout.unwrap_or(ThreadLayout::Dedicated);
        let Costs {
            dispatch_ns,
            handoff_ns,
            completion_ns,
            overhead_ns,
            ..
        } = question.costs.of(layout);
        let [dispatch, handoff, completion, overhead, receive] = [
            dispatch_ns,
            handoff_ns,
            completion_ns,
            overhead_ns,
            question.receive_ns,
        ]
        .map(|ns| format::duration_us(ns as f64 / 1e3));
        let dispatched = if layout.has_dispatcher() {
            format!(
                "dispatcher {dispatch} a request, hand-off {handoff}, completion {completion}, "
            )
        } else {
            String::new()
        };
        report.caveats.push(format!(
            "costs {source}, {} layout: {dispatched}worker {overhead} a request, receiving it {receive}",
            layout.name()
        ));
    }
}

/// Measures the scheduling costs, and the path through the sockets.
fn measured() -> Result<(MachineCosts, u64)> {
    let layouts = layouts_here(Layout::Auto);
    let bar = progress::bar(steps(layouts.len()) as u64, "calibrating");
    let calibration = calibrate(&layouts, None, |step| bar.set_position(step as u64))?;
    bar.finish_and_clear();
    if calibration.lost_fraction > LOST_MAX {
        eprintln!(
            "the machine lost {} of its time while calibrating: the costs look larger than they are",
            format::percent(calibration.lost_fraction)
        );
    }
    let udp = datapath::udp().context("cannot measure the UDP sockets of this machine")?;
    let with_replies = |costs: Costs| Costs {
        overhead_ns: costs.overhead_ns + udp.send_ns,
        ..costs
    };
    Ok((calibration.layouts.map(with_replies), udp.receive_ns))
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
    fn cores_are_counted_from_one() {
        assert_eq!(cores("2").unwrap(), 2);
        assert!(cores("-1").unwrap_err().contains("from 1 to 256"));
        assert!(cores("0").is_err());
    }
}
