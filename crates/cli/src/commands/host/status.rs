//! The status of the daemon.

use headway_host::arbiter::HostReport;
use headway_host::daemon::HostObserver;
use headway_ops::protocol::{CtlRequest, CtlResponse};
use headway_ops::socket::Responder;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::time::Instant;

/// The largest number of changes in a status.
const CHANGES: usize = 2_000;
/// The age up to which a status has changes, ns.
const CHANGES_NS: u64 = 10_000_000_000;

/// The control socket of the daemon whose applications register at this one.
pub(super) fn socket_beside(socket: &Path) -> PathBuf {
    socket.with_added_extension("ctl")
}

/// The running daemon whose status clients request.
pub(super) struct HostSubject {
    observer: HostObserver,
    socket: PathBuf,
    policy: RwLock<String>,
    own_core: Option<usize>,
    shared_core: usize,
    since: Instant,
}

impl HostSubject {
    pub(super) fn new(
        observer: HostObserver,
        socket: &Path,
        policy: String,
        own_core: Option<usize>,
        shared_core: usize,
    ) -> Self {
        Self {
            observer,
            socket: socket.into(),
            policy: RwLock::new(policy),
            own_core,
            shared_core,
            since: Instant::now(),
        }
    }

    pub(super) fn set_policy(&self, policy: String) {
        if let Ok(mut kept) = self.policy.write() {
            *kept = policy;
        }
    }

    /// Whether the daemon's passes go on.
    pub(super) fn is_alive(&self) -> bool {
        self.observer.report(u64::MAX, 0).is_some()
    }

    /// The object of `headway host status`.
    pub(super) fn status(&self) -> Option<Value> {
        // Only the newest changes, which the page draws.
        let report = self.observer.report(0, CHANGES)?;
        let policy = self
            .policy
            .read()
            .map_or(String::new(), |kept| kept.clone());
        Some(json!({
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "socket": self.socket,
            "spec": policy,
            "uptime_s": self.since.elapsed().as_secs_f64(),
            "own_core": self.own_core,
            "shared_core": self.shared_core,
            "at_ns": report.at_ns,
            "cores": report.cores,
            "apps": report.apps,
            "look": report.look,
            "grant": report.grant,
            "revoke": report.revoke,
            "leave": report.leave,
            "network": report.network,
            "changes": recent(&report),
        }))
    }
}

fn recent(report: &HostReport) -> Vec<Value> {
    let since_ns = report.at_ns.saturating_sub(CHANGES_NS);
    let changes = report.changes.iter();
    let changes = changes.filter(|change| change.at_ns >= since_ns);
    changes
        .map(|change| json!({ "ago_ns": report.at_ns.saturating_sub(change.at_ns), "core": change.core, "app": change.app }))
        .collect()
}

impl Responder for HostSubject {
    fn respond(&self, request: CtlRequest) -> CtlResponse {
        match request {
            CtlRequest::Status => self
                .status()
                .ok_or_else(|| "the daemon is stuck: start it anew".into()),
            CtlRequest::Server(..) => Err("a host has no servers: ask a rack's switch".into()),
            CtlRequest::Stacks => Err("a host's daemon runs no requests: ask a server".into()),
            CtlRequest::Set(_) => {
                Err("change the settings file, and send the daemon SIGHUP".into())
            }
        }
    }
}
