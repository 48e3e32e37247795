//! A server as one of the applications that share the cores of a host.

use crate::commands::host::args::DaemonChoice;
use crate::commands::host::client_error;
use anyhow::Result;
use headway_host::client::{ClientOptions, HostClient};
use headway_kthread::CoreSource;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args)]
pub(super) struct HostedFlags {
    /// Run on the cores that a daemon (`headway host`) grants, as its application of this name: workers come and go
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// The daemon, by the socket at which applications register [default: that of the system, else that of this user]
    #[arg(long, value_name = "PATH", requires = "host")]
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
    pub(super) fn app(self, asks_workers: bool) -> Option<HostedApp> {
        Some(HostedApp {
            name: self.host?,
            daemon: DaemonChoice::at(self.socket),
            asks_workers,
        })
    }
}

impl HostedApp {
    /// Registers with the daemon. By default there is a worker for each core that the daemon may grant.
    pub(super) fn register(&self, workers: &mut usize) -> Result<Arc<HostClient>> {
        let socket = self.daemon.find()?;
        let options = ClientOptions {
            // Workers look at their orders between requests, and at probes within.
            probes: true,
            may_stop: || false,
            ..ClientOptions::new(&self.name, *workers)
        };
        let client = HostClient::register(&socket, &options).map_err(client_error)?;
        if !self.asks_workers {
            *workers = (*workers).min(client.kthreads());
        }
        eprintln!(
            "application {} of the daemon at {}: {workers} workers come and go as it grants cores",
            self.name,
            socket.display()
        );
        Ok(Arc::new(client))
    }
}
