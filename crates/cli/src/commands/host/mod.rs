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

use crate::commands::ctl::watched::WatchedProcess;
use crate::commands::terminal;
use crate::error::{UsageError, usage};
use crate::output;
use anyhow::Result;
pub(crate) use args::Args;
use args::{HostCommand, HostStatusArgs, HostTopArgs};
use headway_host::client::ClientError;
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

/// The daemon at this socket, to be asked for its status.
fn watched(socket: &Path) -> WatchedProcess<impl Fn(String) -> anyhow::Error> {
    let shown = socket.display().to_string();
    let nobody = move |why| {
        let why = format!(
            "no daemon at {shown} says how it is ({why}): start one by 'headway host', without --no-ctl, or name its socket"
        );
        usage("--socket", why)
    };
    WatchedProcess::new(status::socket_beside(socket), "daemon", nobody)
}

impl HostStatusArgs {
    fn run(self) -> Result<ExitCode> {
        let status = watched(&self.daemon.find()?).status()?;
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
        terminal::watch(
            top_view::HostStatusView::default(),
            "headway host status",
            Duration::from_nanos(self.every),
            &watched(&self.daemon.find()?),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
