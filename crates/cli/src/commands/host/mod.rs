//! `headway host`: the daemon that moves cores between the applications of this machine.

pub(super) mod args;
mod file;
mod live;
mod metrics;
mod rules;
mod settings;
mod show;
mod status;
mod top_view;

use crate::commands::ctl::client;
use crate::commands::terminal;
use crate::error::UsageError;
use crate::output;
use anyhow::Result;
pub(crate) use args::Args;
use args::{HostCommand, HostStatusArgs, HostTopArgs};
use headway_host::client::ClientError;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Turns the errors that a user can correct into usage errors.
pub(crate) fn client_error(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::System { .. } | ClientError::Memory(_) => error.into(),
        _ => UsageError(error.to_string()).into(),
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            None => live::run(&self.run),
            Some(HostCommand::Status(args)) => args.run(),
            Some(HostCommand::Top(args)) => args.run(),
        }
    }
}

impl HostStatusArgs {
    fn run(self) -> Result<ExitCode> {
        let status = client::status(&status::socket_beside(&self.daemon.find()?))?;
        let mut writer = output::open(None)?;
        if self.format.is_json() {
            output::json(&status, writer)?;
        } else {
            writeln!(writer, "{}", show::text(&status))?;
            writer.flush()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl HostTopArgs {
    fn run(self) -> Result<ExitCode> {
        let socket = status::socket_beside(&self.daemon.find()?);
        terminal::watch(
            top_view::HostStatusView::default(),
            "headway host status",
            Duration::from_nanos(self.every),
            || client::status(&socket),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
