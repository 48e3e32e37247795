//! The flags of `headway sim`.

use super::host_flags::HostFlags;
use crate::args::{Circumstances, CostFlags, Destination, LengthFlags, Size, Traffic};
use crate::policy_flag::{self, Runs};
use headway_study::parse;
use std::ops::Range;
use std::path::PathBuf;

/// Loads the workers to this where nothing else is said.
pub(super) const DEFAULT_LOAD: f64 = 0.8;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The policy and its parameters: darc,delta=3
    #[arg(long, value_name = policy_flag::VALUE, value_parser = Runs::All, hide_possible_values = true, long_help = Runs::All.help("The policy and its parameters: darc,delta=3"), default_value = "darc")]
    pub(super) policy: String,
    #[command(flatten)]
    pub(super) traffic: Traffic,
    #[command(flatten)]
    pub(super) size: Size,
    #[command(flatten)]
    pub(super) extent: LengthFlags,
    #[command(flatten)]
    pub(super) costs: CostFlags,
    #[command(flatten)]
    pub(super) circumstances: Circumstances,
    #[command(flatten)]
    pub(super) host: HostFlags,
    /// Exit with 1 when this is not met: class.*.slowdown.p999<=10
    #[arg(long, value_name = "EXPR")]
    pub(super) slo: Option<String>,
    /// Write the histograms of latency, one per class, as an HDR histogram log
    #[arg(long, value_name = "FILE")]
    pub(super) hlog: Option<PathBuf>,
    #[command(flatten)]
    pub(super) look: TraceArgs,
    #[command(flatten)]
    pub(super) to: Destination,
}

/// A recording of which request ran where and when.
#[derive(clap::Args)]
pub(super) struct TraceArgs {
    /// Write a trace for Perfetto (ui.perfetto.dev): which request ran where and when, and why the others waited
    #[arg(long, value_name = "FILE")]
    pub(super) trace_out: Option<PathBuf>,
    /// Write a page with the results and a drawing of which request ran where
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// The part of the run that --trace-out and --html show: 20ms..21ms [default: some 500 requests after the warm-up]
    #[arg(long, value_name = "FROM..TO", value_parser = parse::window)]
    pub(super) trace_window: Option<Range<u64>>,
}
