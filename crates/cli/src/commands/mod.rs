//! The subcommands, a file each.

/// In place of `eprintln!` in commands that serve: a reader of standard error that stands still holds up none of their threads.
macro_rules! say {
    ($($what:tt)*) => {
        headway_machine::stderr::write_line(&$crate::output::for_stderr(::std::format_args!($($what)*)))
    };
}

mod admission;
mod apps;
mod bench;
mod calibrate;
mod capacity;
mod completions;
mod control_socket;
mod ctl;
#[cfg(feature = "kv")]
mod demo;
mod doctor;
mod fit;
mod host;
mod http;
mod load;
mod plan;
mod policies;
mod rack;
mod reproduce;
mod run;
mod serve;
mod settings_file;
mod sim;
mod sweep;
mod terminal;
mod top;

use anyhow::{Context, Result};
use clap::Subcommand;
use headway_ops::signals::outlive_file_limits;
use std::process::ExitCode;

/// The subcommand.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// See it: a real service under a mixed load, several policies, a table and a page
    #[cfg(feature = "kv")]
    Demo(demo::Args),
    /// Run a service under a policy
    Serve(serve::Args),
    /// Show the state of a running server or pool, and change a server's parameters
    Ctl(ctl::Args),
    /// Show what the classes of a running server or pool do, on the terminal
    Top(top::Args),
    /// Run a rack's switch and control plane in front of servers, show its state, or explain the placement of a type
    Rack(rack::Args),
    /// Run the daemon that moves cores between the applications of this machine, or show its state
    Host(host::Args),
    /// Run a program on the cores that the applications of this machine leave
    Run(run::Args),
    /// Offer open-loop load to a server
    Load(load::Args),
    /// Simulate one run
    Sim(sim::Args),
    /// Simulate policies × loads, for curves
    Sweep(sweep::Args),
    /// Find the highest load that meets an SLO, for each policy, by simulation
    Capacity(capacity::Args),
    /// Find the policy, its parameters and the workers that meet an SLO, by simulation
    Plan(plan::Args),
    /// List the policies, or one policy's parameters
    Policies(policies::Args),
    /// Fit a workload to a trace, and report the quality of the fit
    Fit(fit::Args),
    /// Repeat the papers' figures, next to the printed ones
    Reproduce(reproduce::Args),
    /// Run policies live on this machine, without a network
    Bench(bench::Args),
    /// Measure the costs of dispatching, interrupting and switching on this machine
    Calibrate(calibrate::Args),
    /// List the features that this machine supports, and why it lacks others
    Doctor(doctor::Args),
    /// Print completions for a shell
    Completions(completions::Completions),
    /// Print the manual page, or write one for each command
    Man(completions::Man),
}

impl Command {
    /// Whether it serves others, and so says nothing that waits for a reader.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Rack(_) | Self::Host(_))
    }

    /// Runs the subcommand. Completions and manual pages are generated from the definition of the command line.
    pub(crate) fn run(self, definition: fn() -> clap::Command) -> Result<ExitCode> {
        outlive_file_limits().context("cannot watch for signals")?;
        match self {
            #[cfg(feature = "kv")]
            Self::Demo(args) => args.run(),
            Self::Serve(args) => args.run(),
            Self::Ctl(args) => args.run(),
            Self::Top(args) => args.run(),
            Self::Rack(args) => args.run(),
            Self::Host(args) => args.run(),
            Self::Run(args) => args.run(),
            Self::Load(args) => args.run(),
            Self::Sim(args) => args.run(),
            Self::Sweep(args) => args.run(),
            Self::Capacity(args) => args.run(),
            Self::Plan(args) => args.run(),
            Self::Policies(args) => args.run(),
            Self::Fit(args) => args.run(),
            Self::Reproduce(args) => args.run(),
            Self::Bench(args) => args.run(),
            Self::Calibrate(args) => args.run(),
            Self::Doctor(args) => args.run(),
            Self::Completions(args) => args.run(definition()),
            Self::Man(args) => args.run(definition()),
        }
    }
}
