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
use crate::error::{UsageError, usage};
use crate::output;
use anyhow::Result;
pub(crate) use args::Args;
use args::{HostCommand, HostStatusArgs, HostTopArgs};
use headway_host::client::ClientError;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
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

/// The status of the daemon at this socket.
fn status_of(socket: &Path) -> Result<Value> {
    client::status_of(&status::socket_beside(socket), |why| {
        let socket = socket.display();
        let why = format!(
            "no daemon at {socket} says how it is ({why}): start one by 'headway host', without --no-ctl, or name its socket"
        );
        usage("--socket", why)
    })
}

impl HostStatusArgs {
    fn run(self) -> Result<ExitCode> {
        let status = status_of(&self.daemon.find()?)?;
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
        let socket = self.daemon.find()?;
        terminal::watch(
            top_view::HostStatusView::default(),
            "headway host status",
            Duration::from_nanos(self.every),
            || status_of(&socket),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
