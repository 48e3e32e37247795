//! A server as one of the applications that share the cores of a host.

use super::config::{File, Flags as _, Sourced};
use crate::commands::host::args::DaemonChoice;
use crate::commands::host::client_error;
use crate::error::usage;
use anyhow::Result;
use headway_host::client::{ClientOptions, HostClient};
use headway_kthread::{AtSignal, CoreSource};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args, Clone)]
pub(super) struct HostedFlags {
    /// Run on the cores that a daemon (`headway host`) grants, as its application of this name: workers come and go
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// The daemon's socket for applications [default: the system's, else this user's]
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
}

/// An application of a daemon.
pub(super) struct HostedApp {
    name: String,
    daemon: DaemonChoice,
    /// Whether the user set the number of workers.
    asks_workers: bool,
}

impl HostedFlags {
    /// Flags over file.
    pub(super) fn app(self, file: &File, asks_workers: bool) -> Result<Option<HostedApp>> {
        let set = &file.config;
        let host = file.given_if_set("host", self.host, &set.host);
        let in_file = set.socket.as_ref();
        let Some(host) = host else {
            if self.socket.is_some() {
                let why =
                    "it is the daemon's of --host: name the application by --host, or leave it out";
                return Err(usage("--socket", why));
            }
            return match in_file {
                Some(socket) => Err(Sourced::refused(
                    &file.given("socket", None, &set.socket, || socket.get_ref().clone()),
                    "it is the daemon's of `host`: say `host`, or leave it out",
                )),
                None => Ok(None),
            };
        };
        let socket = self.socket.or(in_file.map(|path| path.get_ref().into()));
        Ok(Some(HostedApp {
            name: host.value,
            daemon: DaemonChoice::at(socket),
            asks_workers,
        }))
    }
}

impl HostedApp {
    /// Registers with the daemon. By default there is a worker for each core that the daemon may grant.
    pub(super) fn register(&self, workers: &mut usize) -> Result<Arc<HostClient>> {
        let socket = self.daemon.find()?;
        let options = ClientOptions {
            // Workers look at their orders between requests, and at probes within.
            probes: true,
            at_signal: AtSignal::GOES_ON,
            ..ClientOptions::new(&self.name, *workers)
        };
        let client = HostClient::register(&socket, &options).map_err(client_error)?;
        if !self.asks_workers {
            *workers = (*workers).min(client.kthreads());
        }
        say!(
            "application {} of the daemon at {}: {workers} workers come and go as it grants cores",
            self.name,
            socket.display()
        );
        Ok(Arc::new(client))
    }
}
