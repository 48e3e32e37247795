//! `headway top`: a running server or pool on the terminal.

mod classes;

use super::ctl::ServerChoice;
use super::terminal::watch;
use crate::args;
use anyhow::Result;
use classes::ClassesView;
use std::process::ExitCode;
use std::time::Duration;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerChoice,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::time)]
    every: u64,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (server, every) = (self.server.watched()?, Duration::from_nanos(self.every));
        watch(ClassesView::default(), "headway ctl status", every, &server)?;
        Ok(ExitCode::SUCCESS)
    }
}
