//! The flags of `headway serve`.

use super::hosted::HostedFlags;
use super::interrupt::InterruptFlags;
use super::rack::RackFlags;
use crate::args;
use crate::commands::apps::{BuiltInApp, KvFlags};
use crate::commands::bench::{IdleFlag, LayoutFlag};
use crate::policy_flag::{self, Runs};
use std::path::PathBuf;

#[derive(clap::Args, Clone)]
pub(crate) struct Args {
    /// Read settings from a TOML file; flags override it
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Where to listen: udp://HOST:PORT, or xdp://DEVICE:PORT for a device's packets without the kernel's network stack; port 0 lets the system
    /// choose [default: udp://127.0.0.1:7000]
    #[arg(long, value_name = "URL")]
    pub(super) listen: Option<String>,
    /// The service [default: spin]
    #[arg(long, value_enum)]
    pub(super) app: Option<BuiltInApp>,
    /// The policy and its parameters [default: darc]
    #[arg(long, value_name = policy_flag::VALUE, value_parser = Runs::Live, hide_possible_values = true, long_help = Runs::Live.help("The policy and its parameters [default: darc]"))]
    pub(super) policy: Option<String>,
    /// Workers [default: as many as there are cores, where workers take turns as the dispatcher (where that carries more, or --layout inline) or the
    /// policy has none; else one less, for the dispatcher's thread]
    #[arg(long, value_name = "N", value_parser = args::workers)]
    pub(super) workers: Option<usize>,
    /// The classes of the spin service: a workload by name or file [default: high-bimodal]
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) workload: Option<String>,
    /// How requests are classified: header, resp:GET=0,…, memcached, protobuf:field=1, offset:at=4,bytes=2 [default: header]
    #[arg(long, value_name = "SPEC")]
    pub(super) classifier: Option<String>,
    /// Capacity of each queue; requests beyond it are answered as shed [default: 1024]
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(super) queue_limit: Option<u64>,
    /// Where the dispatcher runs; with synergy, which has no dispatcher, where its monitor runs [default: auto]
    #[arg(long, value_enum)]
    pub(super) layout: Option<LayoutFlag>,
    /// What the layouts cost on this machine, a file of `headway calibrate -o FILE`: the layout auto and the number of workers are chosen by it
    /// [default: what calibrate measured elsewhere]
    #[arg(long, value_name = "FILE")]
    pub(super) costs: Option<String>,
    #[command(flatten)]
    pub(super) rack: RackFlags,
    #[command(flatten)]
    pub(super) hosted: HostedFlags,
    #[command(flatten)]
    pub(super) interrupt: InterruptFlags,
    /// How idle threads wait [default: spin-then-park]
    #[arg(long, value_enum)]
    pub(super) idle: Option<IdleFlag>,
    /// The field by which the kernel selects a request's worker under a policy without a dispatcher: flow (addresses and ports), random, class
    /// (the header's type), or byte=N of the header, modulo the number of workers [default: flow]
    #[arg(long, value_name = "HOW")]
    pub(super) steer: Option<String>,
    /// Bind threads to cores: auto, off, or the cores, the dispatcher's first: 0,1,2 [default: auto]
    #[arg(long, value_name = "CORES")]
    pub(super) pin: Option<String>,
    /// Time to answer accepted requests after SIGTERM or SIGINT; a second signal ends the server at once [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(super) drain: Option<String>,
    /// Longest time that the spin service works for one request; it refuses longer ones [default: 100ms]
    #[arg(long, value_name = "TIME")]
    pub(super) max_spin: Option<String>,
    /// Print statistics to standard error at this interval, a line per class: rate, queued, sheds, times in the server, allowed
    /// workers
    #[arg(long, value_name = "TIME", value_parser = stats_every)]
    pub(super) stats: Option<u64>,
    /// Write the served requests as a trace that fit, plan --trace and sim read: the arrival of each, and the run time of its handler.
    /// The file appears when the server has stopped
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Listen for `headway ctl` at this path [default: $XDG_RUNTIME_DIR/headway/PORT.sock, or /tmp/headway-UID/PORT.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "no_ctl")]
    pub(super) ctl: Option<PathBuf>,
    /// Do not listen for `headway ctl`
    #[arg(long)]
    pub(super) no_ctl: bool,
    /// Answer Prometheus at http://ADDR:PORT/metrics, and browsers with a page at http://ADDR:PORT/
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) metrics: Option<String>,
    /// Seed of the policy's own randomness [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    #[command(flatten)]
    pub(super) kv: KvFlags,
    /// Check the settings and exit
    #[arg(long)]
    pub(super) check: bool,
}

/// The shortest interval at which people can read the lines.
fn stats_every(text: &str) -> Result<u64, String> {
    const LEAST_NS: u64 = 10_000_000;
    match args::time(text)? {
        ns if ns >= LEAST_NS => Ok(ns),
        _ => Err(format!("'{text}' is too short: at least 10ms")),
    }
}
