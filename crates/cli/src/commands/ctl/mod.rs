//! `headway ctl`: shows the state of a running server or pool and where a server's suspended requests stand, and changes its policy's parameters.

pub(crate) mod client;
mod rows;
mod show;
mod show_pool;
mod stacks;
pub(crate) mod watched;

use crate::args;
use crate::output;
use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use headway_ops::server_status::LiveServerStatus;
use headway_ops::status::{POOL, PoolStatus};
use serde::Deserialize;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use watched::WatchedProcess;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: CtlCommand,
}

#[derive(Subcommand)]
enum CtlCommand {
    /// Show the state of a running server, or of a program's pool: policy and parameters, workers, classes, the plan
    Status(ServerStatusArgs),
    /// Show where its suspended requests stand: the functions on the stack of each
    Stacks(StacksArgs),
    /// Change parameters of its policy while it serves: those that 'headway policies NAME' lists as changeable
    Set(SetArgs),
}

#[derive(clap::Args)]
pub(crate) struct ServerChoice {
    /// The server, by the port it listens on, or server or pool by the path of its control socket [default: the only one of this user]
    #[arg(long, value_name = "PATH|PORT")]
    server: Option<String>,
}

impl ServerChoice {
    /// The path of its control socket.
    fn find(&self) -> Result<PathBuf> {
        client::find(self.server.as_deref())
    }

    /// The server or pool, to be asked again and again.
    pub(crate) fn watched(&self) -> Result<WatchedProcess<impl Fn(String) -> anyhow::Error>> {
        let no_server = |why: String| client::no_server(why);
        Ok(WatchedProcess::new(
            self.find()?,
            "server or pool",
            no_server,
        ))
    }
}

#[derive(clap::Args)]
struct ServerStatusArgs {
    #[command(flatten)]
    server: ServerChoice,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: StatusFormat,
    /// Repeat at this interval until interrupted or the server ends; with JSON, one object a line
    #[arg(long, value_name = "TIME", value_parser = watch_every)]
    watch: Option<u64>,
}

/// `--format`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum StatusFormat {
    /// For people
    #[default]
    Table,
    /// For programs: the fields are stable
    Json,
}

#[derive(clap::Args)]
struct StacksArgs {
    #[command(flatten)]
    server: ServerChoice,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: StatusFormat,
}

#[derive(clap::Args)]
struct SetArgs {
    #[command(flatten)]
    server: ServerChoice,
    /// Parameters and their values, as in a policy's spec: q=5us factor=3
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            CtlCommand::Status(status) => status.run(),
            CtlCommand::Stacks(stacks) => stacks.run(),
            CtlCommand::Set(set) => set.run(),
        }
    }
}

impl ServerStatusArgs {
    fn run(self) -> Result<ExitCode> {
        let server = self.server.watched()?;
        let mut status = server.status()?;
        loop {
            self.write(&status)?;
            let Some(every) = self.watch else {
                return Ok(ExitCode::SUCCESS);
            };
            std::thread::sleep(Duration::from_nanos(every));
            let Some(next) = server.status_again()? else {
                server.tell_end();
                return Ok(ExitCode::SUCCESS);
            };
            status = next;
        }
    }

    fn write(&self, status: &Value) -> Result<()> {
        let mut writer = output::open(None)?;
        match self.format {
            StatusFormat::Json if self.watch.is_some() => writeln!(writer, "{status}")?,
            StatusFormat::Json => return output::json(status, writer),
            StatusFormat::Table => writeln!(writer, "{}", text(status)?)?,
        }
        Ok(writer.flush()?)
    }
}

/// A status for people.
fn text(status: &Value) -> Result<String> {
    if status["kind"] == POOL {
        let pool = PoolStatus::deserialize(status).context("the pool is of another version")?;
        return Ok(show_pool::text(&pool));
    }
    let server =
        LiveServerStatus::deserialize(status).context("the server is of another version")?;
    Ok(show::text(&server))
}

impl StacksArgs {
    fn run(self) -> Result<ExitCode> {
        let path = client::find(self.server.server.as_deref())?;
        let stacks = stacks::with_names(client::stacks(&path)?);
        let mut writer = output::open(None)?;
        match self.format {
            StatusFormat::Json => output::json(&stacks, writer)?,
            StatusFormat::Table => {
                writeln!(writer, "{}", stacks::text(&stacks))?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl SetArgs {
    fn run(self) -> Result<ExitCode> {
        let path = self.server.find()?;
        let changed = client::set(&path, self.params)?;
        let mut writer = output::open(None)?;
        let changes = changed["changes"].as_array().map_or(&[][..], Vec::as_slice);
        if changes.is_empty() {
            writeln!(writer, "nothing changed: it is so already")?;
        }
        for change in changes {
            let text = |field: &str| change[field].as_str().unwrap_or_default();
            writeln!(
                writer,
                "{}: {} → {}",
                text("param"),
                text("old"),
                text("new")
            )?;
        }
        Ok(writer.flush().map(|()| ExitCode::SUCCESS)?)
    }
}

/// `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE, such as q=5us")),
    }
}

/// The shortest interval that does not disturb the server.
fn watch_every(text: &str) -> Result<u64, String> {
    const LEAST_NS: u64 = 10_000_000;
    match args::time(text)? {
        ns if ns >= LEAST_NS => Ok(ns),
        _ => Err(format!("'{text}' is too short: at least 10ms")),
    }
}
