//! `headway rack`: a rack's switch and its control plane, on this machine.

mod args;
mod detach;
mod device;
mod explain;
mod file;
mod listen;
mod live;
mod metrics;
mod named;
mod orders;
mod recent;
mod routes;
mod settings;
mod show;
mod slo_status;
mod start;
mod status;
mod top_view;
mod xdp;
mod xdp_devices;
mod xdp_expiry;
mod xdp_left;
mod xdp_members;
mod xdp_reach;
mod xdp_relay;
mod xdp_servers;

use crate::commands::ctl::client;
use crate::commands::ctl::watched::WatchedProcess;
use crate::commands::terminal;
use crate::error::usage;
use crate::output;
use anyhow::{Context, Result};
pub(crate) use args::Args;
use args::{ExplainArgs, RackCommand, ServerArgs, StatusArgs, SwitchChoice, TopArgs};
use headway_ops::place::{self, SocketKind};
use headway_ops::protocol::ServerOrder;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            None => live::run(&self.run.settings()?),
            Some(RackCommand::Status(args)) => args.run(),
            Some(RackCommand::Top(args)) => args.run(),
            Some(RackCommand::Explain(args)) => args.run(),
            Some(RackCommand::Detach(args)) => args.run(),
            Some(RackCommand::Add(args)) => args.run(ServerOrder::Add),
            Some(RackCommand::Drain(args)) => args.run(ServerOrder::Drain),
            Some(RackCommand::Remove(args)) => args.run(ServerOrder::Remove),
        }
    }
}

impl StatusArgs {
    fn run(self) -> Result<ExitCode> {
        let status = self.switch.status()?;
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

impl TopArgs {
    fn run(self) -> Result<ExitCode> {
        let nobody = |why: String| usage("--switch", why);
        let switch = WatchedProcess::new(self.switch.find()?, "switch", nobody);
        terminal::watch(
            top_view::TopView::default(),
            "headway rack status",
            Duration::from_nanos(self.every),
            &switch,
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ExplainArgs {
    fn run(self) -> Result<ExitCode> {
        let status = self.switch.status()?;
        let text = explain::sentence(&status, &self.name)?;
        let mut writer = output::open(None)?;
        writeln!(writer, "{text}")?;
        Ok(writer.flush().map(|()| ExitCode::SUCCESS)?)
    }
}

impl ServerArgs {
    fn run(self, order: ServerOrder) -> Result<ExitCode> {
        let socket = self.switch.find()?;
        let nobody = |why: String| usage("--switch", why);
        let done = client::order(&socket, order, &self.server, nobody)?;
        let mut writer = output::open(None)?;
        if self.format.is_json() {
            output::json(&done, writer)?;
        } else {
            writeln!(writer, "{}", orders::sentence(&done))?;
            writer.flush()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl SwitchChoice {
    /// Asks the chosen switch for its status.
    fn status(&self) -> Result<Value> {
        client::status_of(&self.find()?, |why| usage("--switch", why))
    }

    fn find(&self) -> Result<PathBuf> {
        let uid = place::own_uid().context("cannot tell this process's user")?;
        let none = |why: String| usage("--switch", why);
        let Some(text) = &self.switch else {
            let mut running = place::running(uid, SocketKind::Rack);
            return match running.len() {
                1 => Ok(running.remove(0)),
                0 => Err(none(
                    "no switch of yours runs: start one by 'headway rack', or name its control socket".into(),
                )),
                _ => {
                    let paths = running.iter().map(|path| path.display().to_string());
                    let paths: Vec<_> = paths.collect();
                    Err(none(format!(
                        "several switches of yours run; name one by its port or path: {}",
                        paths.join(", ")
                    )))
                }
            };
        };
        let Ok(port) = text.parse::<u16>() else {
            return Ok(PathBuf::from(text));
        };
        let found = place::find(uid, |directory| {
            place::socket(directory, SocketKind::Rack, port)
        });
        let found = found.map_err(|why| none(format!("{why}: it is not asked")))?;
        found.ok_or_else(|| {
            none(format!(
                "no switch of yours listens on port {port}: name another port, or its control socket"
            ))
        })
    }
}
