//! The flags that say how a trace or log is read.

use crate::error::usage;
use anyhow::Result;
use clap::Args;
use headway_report::format;
use headway_workload::log::{Format, ServiceModel};
use headway_workload::{Arrivals, Trace, TraceOptions, Workload};
use std::path::Path;

/// How a trace or log is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceFlags {
    /// The trace's format: csv, twitter-cache or redis-monitor [default: guessed from its first line]
    #[arg(long, value_name = "FORMAT", value_parser = Format::from_name)]
    trace_format: Option<Format>,
    /// Service times of the operations in a log that has none: get=1.2us,set=2us+300ns/KiB,*=5us
    #[arg(long, value_name = "MODEL")]
    service: Option<ServiceModel>,
    /// Leave out the rows of a trace whose requests took no time, and count them
    #[arg(long)]
    skip_zero: bool,
}

impl TraceFlags {
    /// Reads the trace that a flag names.
    pub(crate) fn read(&self, flag: &str, path: &Path) -> Result<Trace> {
        let trace = Trace::read_with(path, &self.options()).map_err(|error| usage(flag, error))?;
        tell_left_out(&trace);
        Ok(trace)
    }

    /// The workload of this name or file.
    pub(crate) fn workload(&self, name_or_file: &str) -> Result<Workload> {
        let workload = Workload::resolve_with(name_or_file, &self.options())
            .map_err(|error| usage("--workload", error))?;
        match &workload.arrivals {
            Arrivals::Trace(trace) => tell_left_out(trace),
            _ => self.refuse(&format!("'{name_or_file}' is no trace or log"))?,
        }
        Ok(workload)
    }

    /// Refuses these flags where no trace is read, and says why.
    pub(crate) fn refuse(&self, why: &str) -> Result<()> {
        let given = [
            ("--trace-format", self.trace_format.is_some()),
            ("--service", self.service.is_some()),
            ("--skip-zero", self.skip_zero),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(usage(flag, why)),
            None => Ok(()),
        }
    }

    fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.trace_format,
            services: self.service.clone().unwrap_or_default(),
            skip_zero: self.skip_zero,
        }
    }
}

fn tell_left_out(trace: &Trace) {
    let left_out = trace.left_out() as usize;
    if left_out > 0 {
        let rows = format::counted(trace.records().len() + left_out, "row");
        eprintln!("note: {left_out} of {rows} left out, since their requests took no time");
    }
}
