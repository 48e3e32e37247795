//! The command `headway`: the entry point of its binary, and its command-line definition for tests.

/// In place of the standard library's, which panics: a standard error that is full, closed or gone ends no command. On a terminal, lines break
/// between words.
macro_rules! eprintln {
    ($($what:tt)*) => {
        headway_words::remark!("{}", $crate::output::for_stderr(::std::format_args!($($what)*)))
    };
}

mod args;
mod commands;
mod device_look;
mod device_port;
mod error;
mod interrupt;
mod learning;
mod output;
mod policy_flag;
mod progress;
mod stack;
mod trace_flags;

use clap::{CommandFactory, FromArgMatches, Parser};
use commands::Command;
use headway_machine::stderr;
use interrupt::{Interrupt, Interrupted};
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
    stack::with_room(run)
}

fn run() -> ExitCode {
    let mut matches = command_line().get_matches();
    let destinations = output::destinations(&matches);
    let cli = Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
    let serves = cli.command.serves();
    let done = output::early(&destinations).and_then(|_early| cli.command.run(command_line));
    match done {
        Ok(code) => code,
        Err(error) if error::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("{}", error::sentence(&error));
            Interrupt::status()
        }
        Err(error) => {
            let line = format!("error: {}", error::sentence(&error));
            if serves {
                // What starts a server again waits for its end, and need not read.
                stderr::write_line(&output::for_stderr(format_args!("{line}")));
            } else {
                eprintln!("{line}");
            }
            if error::is_usage(&error) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
