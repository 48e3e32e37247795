//! The subcommands, a file each.

mod capacity;
mod completions;
mod sim;
mod sweep;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate one run
    Sim(sim::Args),
    /// Simulate policies × loads, for curves
    Sweep(sweep::Args),
    /// Find the highest load that meets an SLO, for each policy, by simulation
    Capacity(capacity::Args),
    /// Print completions for a shell
    Completions(completions::Completions),
    /// Print the manual page, or write one for each command
    Man(completions::Man),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Sim(args) => args.run(),
            Self::Sweep(args) => args.run(),
            Self::Capacity(args) => args.run(),
            Self::Completions(args) => args.run(),
            Self::Man(args) => args.run(),
        }
    }
}
