//! The flags of `headway host`.

use crate::args;
use crate::error::usage;
use crate::policy_flag::{self, Runs};
use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use headway_host::SYSTEM_SOCKET;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<HostCommand>,
    #[command(flatten)]
    pub(super) run: HostRunArgs,
}

#[derive(Subcommand)]
pub(super) enum HostCommand {
    /// Show the cores of each application, and the durations of moves
    Status(HostStatusArgs),
    /// Watch a running daemon: cores, applications, moves per second
    Top(HostTopArgs),
}

#[derive(clap::Args, Clone)]
pub(super) struct HostRunArgs {
    /// Read settings from a TOML file with these flags as keys; flags override it. SIGHUP reads it again
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The socket at which applications register [default: /run/headway/host.sock for root, else host.sock in $XDG_RUNTIME_DIR/headway or
    /// /tmp/headway-UID]
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// An application that may register; repeatable. It is guaranteed G cores (default 0) and gets at most M (default all)
    #[arg(
        long,
        value_name = "NAME[:batch][,guaranteed=G][,cores=M][,user=U][,group=G][,ip=IP/BITS][,gateway=IP]"
    )]
    pub(super) app: Vec<String>,
    /// The policy that assigns cores to applications [default: shenango]
    #[arg(long, value_name = policy_flag::VALUE, value_parser = Runs::Hosts, hide_possible_values = true, long_help = Runs::Hosts.help("The policy that assigns cores to applications [default: shenango]"))]
    pub(super) policy: Option<String>,
    /// The cores for applications, such as 1-3,8 [default: all but the daemon's]
    #[arg(long, value_name = "LIST")]
    pub(super) cores: Option<String>,
    /// Wake at intervals and when an application asks, instead of spinning on a core [default with fewer than four cores]
    #[arg(long, conflicts_with = "own_core")]
    pub(super) share_core: bool,
    /// Spin on a core reserved for the daemon [default with four cores or more]
    #[arg(long)]
    pub(super) own_core: bool,
    /// The interval at which the daemon checks busy applications; with --share-core [default: 100us]
    #[arg(long, value_name = "TIME")]
    pub(super) tick: Option<String>,
    /// Take packets of this network device by AF_XDP, and give them to applications by their addresses (`ip`). Needs root
    #[arg(long, value_name = "DEV")]
    pub(super) device: Option<String>,
    /// Answer Prometheus at http://ADDR:PORT/metrics, and browsers with a page at http://ADDR:PORT/
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) metrics: Option<String>,
    /// Do not listen for `headway host status`
    #[arg(long)]
    pub(super) no_ctl: bool,
    /// Print the effect of these settings, and exit
    #[arg(long)]
    pub(super) check: bool,
}

/// `--format`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum HostFormat {
    /// For people
    #[default]
    Table,
    /// For programs: the fields are stable
    Json,
}

impl HostFormat {
    pub(super) fn is_json(self) -> bool {
        self == Self::Json
    }
}

#[derive(clap::Args)]
pub(crate) struct DaemonChoice {
    /// The daemon's socket for applications [default: the system's, else this user's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(super) struct HostStatusArgs {
    #[command(flatten)]
    pub(super) daemon: DaemonChoice,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: HostFormat,
}

#[derive(clap::Args)]
pub(super) struct HostTopArgs {
    #[command(flatten)]
    pub(super) daemon: DaemonChoice,
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::time)]
    pub(super) every: u64,
}

/// The socket of a user's daemon.
pub(super) fn own_socket(uid: u32) -> PathBuf {
    let directories = headway_ops::place::directories(uid);
    directories.into_iter().next().map_or_else(
        || PathBuf::from(SYSTEM_SOCKET),
        |directory| directory.join("host.sock"),
    )
}

impl DaemonChoice {
    pub(crate) fn at(socket: Option<PathBuf>) -> Self {
        Self { socket }
    }

    /// Finds the socket of the chosen daemon.
    pub(crate) fn find(&self) -> Result<PathBuf> {
        if let Some(path) = &self.socket {
            return Ok(path.clone());
        }
        let uid = headway_ops::place::own_uid().context("cannot tell this process's user")?;
        let system = Path::new(SYSTEM_SOCKET);
        if system.exists() {
            return Ok(system.to_owned());
        }
        let found = headway_ops::place::find(uid, |directory| directory.join("host.sock"));
        let found = found.map_err(|why| usage("--socket", format!("{why}: it is not asked")))?;
        found.ok_or_else(|| {
            let why = format!(
                "no daemon listens at {SYSTEM_SOCKET} or {}: start one by 'headway host', or name its socket",
                own_socket(uid).display()
            );
            usage("--socket", why)
        })
    }
}
