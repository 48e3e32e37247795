//! `headway calibrate`: what the machinery costs on this machine.

use crate::args::Destination;
use crate::commands::bench::LayoutFlag;
use crate::output::{self, Format};
use crate::progress;
use anyhow::Result;
use headway_bench::calibrate::{STEPS, calibrate};
use headway_report::{Table, format};
use headway_runtime::Layout;
use std::io::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Who carries the dispatcher out
    #[arg(long, value_enum, default_value_t)]
    layout: LayoutFlag,
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
        let mut table = Table::new(["cost", "ns", "what it is"]);
        let costs = calibration.costs;
        table.push([
            "dispatch_ns",
            &costs.dispatch_ns.to_string(),
            "the dispatcher's work per request, serial",
        ]);
        table.push([
            "handoff_ns",
            &costs.handoff_ns.to_string(),
            "from the decision to the worker's start",
        ]);
        table.push([
            "completion_ns",
            &costs.completion_ns.to_string(),
            "from a completion to the dispatcher's knowing",
        ]);
        table.push([
            "overhead_ns",
            &costs.overhead_ns.to_string(),
            "the worker's work per request beside the service",
        ]);
        let mut writer = output::open(self.to.output.as_deref())?;
        // A file is what `--costs` reads, so it is JSON unless something else was asked for.
        match (self.to.format, &self.to.output) {
            (Format::Json, _) | (Format::Table, Some(_)) => {
                return output::json(&calibration, writer).map(|()| ExitCode::SUCCESS);
            }
            (Format::Csv, _) => output::table_csv(&table, &mut writer)?,
            (Format::Table, None) => {
                writeln!(
                    writer,
                    "{}, {} dispatcher\n\n{table}",
                    calibration.machine, calibration.layout
                )?;
                writeln!(
                    writer,
                    "\n{} of the time was lost to others",
                    format::percent(calibration.lost_fraction)
                )?;
                writeln!(
                    writer,
                    "use them: headway calibrate -o costs.json; headway sim --costs costs.json"
                )?;
            }
        }
        writer.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}
