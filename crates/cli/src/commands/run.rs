//! `headway run`: runs an unmodified program on the cores that the daemon's other applications leave.

use crate::commands::host::args::DaemonChoice;
use crate::commands::host::client_error;
use crate::error::usage;
use anyhow::Result;
use headway_host::program;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The application's name in the daemon's settings, whose class is batch
    #[arg(long, value_name = "NAME")]
    batch: String,
    #[command(flatten)]
    daemon: DaemonChoice,
    /// Largest number of cores at once [default: that of the daemon's settings]
    #[arg(long, value_name = "N", value_parser = crate::args::workers)]
    cores: Option<usize>,
    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

impl Args {
    /// The program replaces this process, so callers see its own exit status and signals.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let socket = self.daemon.find()?;
        program::register(&socket, &self.batch, self.cores).map_err(client_error)?;
        let error = program::run(&self.program);
        let name = self.program.first().map_or("", String::as_str);
        Err(usage(name, format!("cannot run it: {error}")))
    }
}
