//! The command `headway`: the entry point of its binary, and its command-line definition for tests.

mod args;
mod commands;
mod ctl;
mod device_port;
mod error;
mod learning;
mod output;
mod policy_flag;
mod progress;
mod trace_flags;

use clap::{CommandFactory, Parser};
use commands::Command;
use std::process::ExitCode;

/// Keep microsecond requests from waiting behind millisecond ones.
///
/// Simulate, plan, serve and measure schedulers for latency-critical services. Start with
/// `headway demo`.
#[derive(Parser)]
#[command(name = "headway", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The definition of the command line.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match Cli::parse().command.run(command_line) {
        Ok(code) => code,
        Err(error) if error::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error::sentence(&error));
            if error::is_usage(&error) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
