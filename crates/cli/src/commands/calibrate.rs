//! `headway calibrate`: measures the costs of dispatching, interrupting and switching on this machine.

use crate::args::Destination;
use crate::commands::bench::LayoutFlag;
use crate::output::{self, OutputFormat};
use crate::progress;
use anyhow::Result;
use headway_bench::calibrate::{Calibration, STEPS, calibrate};
use headway_report::Table;
use headway_runtime::Layout;
use std::io::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the dispatcher runs
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
        let layout = match self.layout {
            LayoutFlag::Auto if headway_sim::available_threads() > 1 => Layout::Dedicated,
            LayoutFlag::Auto => Layout::Inline,
            flag => flag.into(),
        };
        let bar = progress::bar(STEPS as u64, "calibrating");
        let calibration = calibrate(layout, |step| bar.set_position(step as u64))?;
        bar.finish_and_clear();
        let doubt = calibration.doubt().filter(|_| !self.accept_noise);
        if let Some(doubt) = &doubt {
            eprintln!("not valid: {doubt}; --accept-noise takes the costs as they are");
        }
        match doubt {
            // A file's later readers do not see the warning, so doubtful costs are not written to it.
            Some(_) if self.to.output.is_some() => {}
            _ => self.write(&calibration)?,
        }
        Ok(match doubt {
            Some(_) => ExitCode::FAILURE,
            None => ExitCode::SUCCESS,
        })
    }

    fn write(&self, calibration: &Calibration) -> Result<()> {
        let table = table(calibration);
        let mut writer = output::open(self.to.output.as_deref())?;
        // `--costs` reads the file, so its default format is JSON.
        match (self.to.format, &self.to.output) {
            (OutputFormat::Json, _) | (OutputFormat::Table, Some(_)) => {
                return output::json(calibration, writer);
            }
            (OutputFormat::Csv, _) => output::table_csv(&table, &mut writer)?,
            (OutputFormat::Table, None) => {
                writeln!(
                    writer,
                    "{}, {} dispatcher\n\n{table}",
                    calibration.machine, calibration.layout
                )?;
                writeln!(
                    writer,
                    "\nuse them: headway calibrate -o costs.json; headway sim --costs costs.json"
                )?;
            }
        }
        Ok(writer.flush()?)
    }
}

fn table(calibration: &Calibration) -> Table {
    let costs = calibration.costs;
    let mut table = Table::new(["figure", "value", "what it is"]);
    for (cost, ns, meaning) in [
        (
            "dispatch_ns",
            costs.dispatch_ns,
            "the dispatcher's work per request, serial",
        ),
        (
            "handoff_ns",
            costs.handoff_ns,
            "from the decision to the worker's start",
        ),
        (
            "completion_ns",
            costs.completion_ns,
            "from a completion to the dispatcher's knowing",
        ),
        (
            "overhead_ns",
            costs.overhead_ns,
            "the worker's work per request beside the service",
        ),
        (
            "preemption_ns",
            calibration.preemption_ns,
            "an interruption: from one request to the next",
        ),
        (
            "notification_ns",
            calibration.notification_ns,
            "of that: until the worker has yielded to another thread's flag",
        ),
        (
            "switch_ns",
            calibration.switch_ns,
            "of that: one request is suspended, another goes on",
        ),
        (
            "requeue_ns",
            costs.requeue_ns,
            "of that: the dispatcher's work for what comes back",
        ),
    ] {
        table.push([cost, &ns.to_string(), meaning]);
    }
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
