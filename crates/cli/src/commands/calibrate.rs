//! `headway calibrate`: measures the costs of dispatching, interrupting and switching on this machine.

use crate::args::Destination;
use crate::commands::bench::LayoutFlag;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFormat};
use crate::progress;
use anyhow::Result;
use headway::config::layout_costs;
use headway_bench::TrialError;
use headway_bench::calibrate::{Calibration, calibrate, layouts_here, steps};
use headway_report::Table;
use headway_runtime::LayoutCosts;
use headway_sim::{Costs, ThreadLayout};
use std::io::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the dispatcher runs for whoever reads the file: every layout that this machine has cores for is measured
    #[arg(long, value_enum, default_value_t)]
    layout: LayoutFlag,
    /// Write the costs even where the machine was busy during the measurement
    #[arg(long)]
    accept_noise: bool,
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let layouts = layouts_here(self.layout.into());
        let bar = progress::bar(steps(layouts.len()) as u64, "calibrating");
        let interrupt = Interrupt::listen()?;
        let calibration = calibrate(&layouts, Some(&interrupt.flag()), |step| {
            bar.set_position(step as u64);
        });
        bar.finish_and_clear();
        let calibration = match calibration {
            Err(TrialError::CutOff) => {
                eprintln!("the calibration was cut off before its first layout was measured");
                return Ok(Interrupt::status());
            }
            calibration => calibration?,
        };
        let doubt = calibration.doubt().filter(|_| !self.accept_noise);
        if let Some(doubt) = &doubt {
            eprintln!("not valid: {doubt}; --accept-noise takes the costs as they are");
        }
        match doubt {
            // A file's later readers do not see the warning, so doubtful costs are not written to it.
            Some(_) if self.to.output.is_some() => {}
            _ => self.write(&calibration)?,
        }
        if calibration.cut_off {
            eprintln!(
                "CUT OFF: interrupted; only these layouts were measured: {}",
                measured(&calibration).join(", ")
            );
            return Ok(Interrupt::status());
        }
        Ok(match doubt {
            Some(_) => ExitCode::FAILURE,
            None => ExitCode::SUCCESS,
        })
    }

    fn write(&self, calibration: &Calibration) -> Result<()> {
        let path = self.to.output.as_deref();
        let mut writer = output::open(path)?;
        // `--costs` reads the file, so its default format is JSON.
        match (self.to.format, path) {
            (OutputFormat::Json, _) | (OutputFormat::Table, Some(_)) => {
                return output::json(calibration, writer);
            }
            (OutputFormat::Csv, _) => {
                return output::table_csv(&costs_by_layout(calibration), writer);
            }
            (OutputFormat::Table, None) => {
                writeln!(writer, "{}\n", calibration.machine)?;
                writeln!(
                    writer,
                    "{}\n",
                    output::shown(&costs_by_layout(calibration), path)
                )?;
                writeln!(
                    writer,
                    "{}",
                    output::shown(&single_figures(calibration), path)
                )?;
                writeln!(
                    writer,
                    "\nlayout auto chooses by\n{}",
                    output::shown(&chosen_by(calibration), path)
                )?;
                writeln!(
                    writer,
                    "\nuse them: headway calibrate -o costs.json; headway sim --costs costs.json; headway serve --costs costs.json"
                )?;
            }
        }
        Ok(writer.flush()?)
    }
}

/// The names of the layouts that have costs.
fn measured(calibration: &Calibration) -> Vec<&'static str> {
    let layouts = ThreadLayout::ALL.into_iter();
    layouts
        .filter(|layout| calibration.layouts.measured(*layout).is_some())
        .map(ThreadLayout::name)
        .collect()
}

/// A cost, and what it is.
type CostRow = (&'static str, fn(&Costs) -> Option<u64>, &'static str);

const COST_ROWS: [CostRow; 10] = [
    (
        "dispatch_ns",
        |costs| Some(costs.dispatch_ns),
        "the dispatcher's work per request, serial",
    ),
    (
        "handoff_ns",
        |costs| Some(costs.handoff_ns),
        "from the decision, or the arrival, to the worker's start",
    ),
    (
        "completion_ns",
        |costs| Some(costs.completion_ns),
        "from a completion to the dispatcher's knowing",
    ),
    (
        "overhead_ns",
        |costs| Some(costs.overhead_ns),
        "the worker's work per request beside the service",
    ),
    (
        "next_ns",
        |costs| costs.next_ns,
        "a worker's wait with an empty queue, beyond the two ways",
    ),
    (
        "notif_ns",
        |costs| costs.notif_ns,
        "an interruption, until the worker has left the request",
    ),
    (
        "switch_ns",
        |costs| costs.switch_ns,
        "one request is suspended, another goes on",
    ),
    (
        "requeue_ns",
        |costs| Some(costs.requeue_ns),
        "the dispatcher's work for what comes back",
    ),
    (
        "renew_ns",
        |costs| Some(costs.renew_ns),
        "a slice after which the request goes on",
    ),
    (
        "look_ns",
        |costs| Some(costs.look_ns),
        "between a busy worker's looks for arrivals",
    ),
];

/// The costs of every layout that was measured, a column each.
fn costs_by_layout(calibration: &Calibration) -> Table {
    let measured: Vec<(ThreadLayout, Costs)> = ThreadLayout::ALL
        .into_iter()
        .filter_map(|layout| Some((layout, calibration.layouts.measured(layout)?)))
        .collect();
    let names = measured.iter().map(|(layout, _)| layout.name());
    let columns = std::iter::once("cost").chain(names).chain(["what it is"]);
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for (name, of, meaning) in COST_ROWS {
        let values = measured
            .iter()
            .map(|(_, costs)| of(costs).map_or_else(|| "–".to_owned(), |ns| ns.to_string()));
        let row = std::iter::once(name.to_owned()).chain(values);
        table.push(row.chain([meaning.to_owned()]).collect::<Vec<_>>());
    }
    table
}

/// What was measured once, or of the first layout alone.
fn single_figures(calibration: &Calibration) -> Table {
    let mut table = Table::new(["figure", "value", "what it is"]);
    let layout = &calibration.layout;
    table.push([
        "preemption_ns",
        &calibration.preemption_ns.to_string(),
        &format!("an interruption, from one request to the next ({layout})"),
    ]);
    table.push([
        "round_trip_ns",
        &calibration.round_trip_ns.to_string(),
        &format!("from a completion to the next request at the worker ({layout})"),
    ]);
    table.push([
        "probe_ns",
        &format!("{:.2}", calibration.probe_ns),
        "a probe that finds nothing",
    ]);
    table.push([
        "lost_fraction",
        &format!("{:.4}", calibration.lost_fraction),
        "largest part of a run's time that was lost to others",
    ]);
    table
}

/// What a server's layout `auto` is chosen by: measured here, and built in.
fn chosen_by(calibration: &Calibration) -> Table {
    let rows = |costs: LayoutCosts| {
        [
            (
                "dispatch_ns",
                costs.dispatch_ns,
                "a dispatcher's thread, a request",
            ),
            (
                "worker_ns",
                costs.worker_ns,
                "a worker beside it, a request",
            ),
            (
                "inline_ns",
                costs.inline_ns,
                "a worker that takes turns, a request",
            ),
            ("turn_ns", costs.turn_ns, "of that: by one worker at a time"),
            (
                "renew_ns",
                costs.renew_ns,
                "a worker that keeps its own time, a quantum",
            ),
        ]
    };
    let mut table = Table::new(["cost", "here", "built in", "of"]);
    let here = rows(layout_costs(&calibration.layouts));
    for ((name, here_ns, meaning), (_, built_in_ns, _)) in
        here.into_iter().zip(rows(LayoutCosts::default()))
    {
        table.push([
            name,
            &here_ns.to_string(),
            &built_in_ns.to_string(),
            meaning,
        ]);
    }
    table
}
