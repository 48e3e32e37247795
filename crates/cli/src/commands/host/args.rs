//! The flags of `headway host`.

use crate::args;
use crate::error::usage;
use crate::policy_flag::{self, Runs};
use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
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
    /// Show who has which core, and how long moves took
    Status(HostStatusArgs),
    /// Watch a running daemon: cores, applications, moves per second
    Top(HostTopArgs),
}

#[derive(clap::Args, Clone)]
pub(super) struct HostRunArgs {
    /// Read settings from a TOML file with these flags as keys; flags override it. SIGHUP reads it again
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Where applications register [default: /run/headway/host.sock for root, else host.sock in $XDG_RUNTIME_DIR/headway or /tmp/headway-UID]
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// An application that may register, repeatable. G cores are guaranteed to it (0), and it has M at most (all)
    #[arg(
        long,
        value_name = "NAME[:batch][,guaranteed=G][,cores=M][,user=U][,group=G][,ip=IP/BITS][,gateway=IP]"
    )]
    pub(super) app: Vec<String>,
    /// Who decides which application has which core [default: shenango]
    #[arg(long, value_name = policy_flag::VALUE, value_parser = Runs::Hosts, hide_possible_values = true, long_help = Runs::Hosts.help("Who decides which application has which core [default: shenango]"))]
    pub(super) policy: Option<String>,
    /// The cores to deal out, such as 1-3,8 [default: all but the daemon's]
    #[arg(long, value_name = "LIST")]
    pub(super) cores: Option<String>,
    /// Wake at intervals and when an application rings, instead of spinning on a core [default where there are fewer than four]
    #[arg(long, conflicts_with = "own_core")]
    pub(super) share_core: bool,
    /// Spin on a core of the daemon's own [default where there are four]
    #[arg(long)]
    pub(super) own_core: bool,
    /// With --share-core: how often busy applications are looked at [default: 100us]
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
    /// Say what the daemon would do with these settings, and exit
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
    /// The daemon, by the socket at which applications register [default: that of the system, else that of this user]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(super) struct HostStatusArgs {
    #[command(flatten)]
    pub(super) daemon: DaemonChoice,
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: HostFormat,
}

#[derive(clap::Args)]
pub(super) struct HostTopArgs {
    #[command(flatten)]
    pub(super) daemon: DaemonChoice,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::time)]
    pub(super) every: u64,
}

/// Where the daemon of the system listens.
pub(super) const SYSTEM_SOCKET: &str = "/run/headway/host.sock";

/// Where the daemon of a user listens.
pub(super) fn own_socket(uid: u32) -> PathBuf {
    let directories = crate::ctl::place::directories(uid);
    directories.into_iter().next().map_or_else(
        || PathBuf::from(SYSTEM_SOCKET),
        |directory| directory.join("host.sock"),
    )
}

impl DaemonChoice {
    pub(crate) fn at(socket: Option<PathBuf>) -> Self {
        Self { socket }
    }

    /// The socket of the daemon that is meant.
    pub(crate) fn find(&self) -> Result<PathBuf> {
        if let Some(path) = &self.socket {
            return Ok(path.clone());
        }
        let uid = crate::ctl::place::own_uid().context("/proc/self")?;
        let own = own_socket(uid);
        let mut places = [Path::new(SYSTEM_SOCKET), &own].into_iter();
        places
            .find(|path| path.exists())
            .map(Path::to_owned)
            .ok_or_else(|| {
                let why = format!(
                    "no daemon listens at {SYSTEM_SOCKET} or {}: start one by 'headway host', or name its socket",
                    own.display()
                );
                usage("--socket", why)
            })
    }
}
