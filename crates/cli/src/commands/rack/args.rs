//! The flags of `headway rack`.

use crate::args;
use crate::policy_flag::{self, Runs};
use clap::{Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<RackCommand>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Subcommand)]
pub(super) enum RackCommand {
    /// Show the status of a running switch: groups, servers, types, packets
    Status(StatusArgs),
    /// Watch a running switch: cores and demand of its groups, its servers, packets per second
    Top(TopArgs),
    /// Explain which servers get a type's requests, and why
    Explain(ExplainArgs),
    /// Add a server to a running switch, or have one that drains serve again
    Add(ServerArgs),
    /// Send a server no new request: once it has answered those that it has, it leaves
    Drain(ServerArgs),
    /// Take a server out at once: the requests that it has are lost, and counted
    Remove(ServerArgs),
    /// Remove at once a switch that a killed process left in the kernel; as root
    Detach(DetachArgs),
}

#[derive(clap::Args)]
pub(super) struct RunArgs {
    /// Read settings from a TOML file with these flags as keys; flags override it
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The address for clients' requests. xdp://DEVICE:PORT takes a device's packets without the kernel's network stack, as root; with port 0, the
    /// system chooses one [default: 127.0.0.1:7100]
    #[arg(long, value_name = "ADDR:PORT|URL")]
    pub(super) listen: Option<String>,
    /// A server behind the switch, and its number of workers (1 by default); repeatable
    #[arg(long, value_name = "ADDR:PORT[,cores=N]")]
    pub(super) server: Vec<String>,
    /// The switch's places for servers, so that more can be added while it runs [default: twice those named, at least 16]
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(super) most_servers: Option<u64>,
    /// The switch's policy and its parameters [default: pallas]
    #[arg(long, value_name = policy_flag::VALUE, value_parser = Runs::Racks, hide_possible_values = true, long_help = Runs::Racks.help("The switch's policy and its parameters [default: pallas]"))]
    pub(super) policy: Option<String>,
    /// Declare a workload's classes as the first types, by name or file. The switch adds other types when their first request comes
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) workload: Option<String>,
    /// The largest number of types; further type bytes are UNKNOWN [default: 32]
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(super) types: Option<u64>,
    /// The time without an answer after which a server with a request gets no more, until it answers again; 0ms: no limit [default: 50ms]
    #[arg(long, value_name = "TIME")]
    pub(super) silence: Option<String>,
    /// The SLO: the groups that meet it best in simulation win, and the switch counts the requests beyond each bound: class.*.slowdown.p99<=10,
    /// overall.latency.p999<=1ms, class.GET.latency.p99<=250us
    #[arg(long, value_name = "EXPR")]
    pub(super) slo: Option<String>,
    /// Accept reports of servers' agents (`serve --rack`) that share the key in this file, which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(super) agent_key: Option<PathBuf>,
    /// The address for agents' reports [default: the port after that of --listen]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) agents: Option<String>,
    /// Add servers whose agents report with the key, although nobody named them
    #[arg(long)]
    pub(super) agents_join: bool,
    /// Answer Prometheus at http://ADDR:PORT/metrics, and browsers with a page at http://ADDR:PORT/
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) metrics: Option<String>,
    /// Listen for `headway rack status` at this path [default: $XDG_RUNTIME_DIR/headway/PORT.rack, or /tmp/headway-UID/PORT.rack]
    #[arg(long, value_name = "PATH", conflicts_with = "no_ctl")]
    pub(super) ctl: Option<PathBuf>,
    /// Do not listen for `headway rack status`
    #[arg(long)]
    pub(super) no_ctl: bool,
    /// Run the switch in the kernel by XDP, on these interfaces towards clients and servers; as root
    #[arg(long, value_name = "DEV[,DEV]")]
    pub(super) xdp: Option<String>,
    /// Let servers answer clients directly, from their own addresses; with --xdp
    #[arg(long)]
    pub(super) direct: bool,
    /// The time for which the switch of --xdp goes on in the kernel when its process was killed, until the next one takes it up; 0ms: it ends with its
    /// process [default: 600s]
    #[arg(long, value_name = "TIME")]
    pub(super) lease: Option<String>,
    /// Seed of the policy's random choices [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Output format of the final counts
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: RackFormat,
}

/// `--format`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum RackFormat {
    /// For people
    #[default]
    Table,
    /// For programs: the fields are stable
    Json,
}

impl RackFormat {
    pub(super) fn is_json(self) -> bool {
        self == Self::Json
    }
}

#[derive(clap::Args)]
pub(super) struct SwitchChoice {
    /// The switch's port, or the path of its control socket [default: this user's only switch]
    #[arg(long, value_name = "PATH|PORT")]
    pub(super) switch: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    pub(super) switch: SwitchChoice,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: RackFormat,
}

#[derive(clap::Args)]
pub(super) struct TopArgs {
    #[command(flatten)]
    pub(super) switch: SwitchChoice,
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::time)]
    pub(super) every: u64,
}

#[derive(clap::Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) switch: SwitchChoice,
    /// The type: its byte, or its name in the workload
    #[arg(value_name = "TYPE")]
    pub(super) name: String,
}

#[derive(clap::Args)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) switch: SwitchChoice,
    /// The server; for `add` with its number of workers (1 by default)
    #[arg(value_name = "ADDR:PORT[,cores=N]")]
    pub(super) server: String,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: RackFormat,
}

#[derive(clap::Args)]
pub(super) struct DetachArgs {
    /// The switch's address [default: all that processes left in this network namespace]
    #[arg(value_name = "ADDR:PORT", value_parser = args::host_port)]
    pub(super) at: Option<SocketAddr>,
}
