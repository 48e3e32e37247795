//! A daemon that runs in this process.

use super::access;
use super::cycle::Cycle;
use super::device::DaemonDevice;
use super::event::event;
use super::inbox::{self, DaemonOrder, DaemonOutbox};
use super::listener::HostListener;
use super::network::HostNetwork;
use super::registrar::Registrar;
use super::settings::DaemonSettings;
use crate::arbiter::{HostReport, PassCycle};
use crate::topology::{CoresError, HostCores};
use headway_machine::topology::TopologyError;
use headway_machine::{Clock, Topology};
use headway_policy::host::systems;
use headway_policy::spec::SpecError;
use headway_xsk::XskError;
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::sys::eventfd::EventFd;
use nix::unistd::Pid;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time that a daemon waits for the applications of a crashed predecessor.
const GRACE: Duration = Duration::from_millis(100);
/// The timeout for an answer of the pass thread.
const ANSWER: Duration = Duration::from_secs(2);

/// Why the daemon did not start.
#[derive(thiserror::Error)]
pub enum DaemonError {
    /// The registration socket failed.
    #[error("{0}")]
    Socket(String),
    /// The machine's cores are unreadable.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The cores cannot be divided this way.
    #[error(transparent)]
    Cores(#[from] CoresError),
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The applications do not fit.
    #[error("{0}")]
    Apps(String),
    /// The device failed to open.
    #[error("no application can have packets of a device: {}", with_remedy(.0))]
    Device(#[from] XskError),
    /// Threads cannot be moved.
    #[error(
        "the system forbids sched_setaffinity ({0}): allow it in the sandbox's seccomp profile, or run the daemon outside"
    )]
    Pin(io::Error),
    /// Another system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

headway_words::debug_is_display!(DaemonError);

/// The error with the remedy of a daemon, which needs no device; a server would listen on UDP instead.
fn with_remedy(error: &XskError) -> String {
    match error {
        XskError::NoXdpSockets => {
            "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): boot one that has, or run the daemon without --device".into()
        }
        XskError::Denied => {
            "AF_XDP needs root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run the daemon as root, or without --device".into()
        }
        error => error.to_string(),
    }
}

/// A running daemon. It ends when it is stopped, not when this is dropped.
#[derive(Debug)]
pub struct HostDaemon {
    outbox: Asked,
    settings: Arc<RwLock<DaemonSettings>>,
    cores: HostCores,
    wakes: Arc<EventFd>,
    threads: Vec<JoinHandle<()>>,
    took_over: bool,
    failure: Arc<OnceLock<String>>,
}

/// The order queue of the pass thread.
#[derive(Clone)]
struct Asked(DaemonOutbox);

impl std::fmt::Debug for Asked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("DaemonOutbox")
    }
}

/// A handle with which any thread asks a running daemon for its report.
#[derive(Clone, Debug)]
pub struct HostObserver {
    asked: Asked,
    failure: Arc<OnceLock<String>>,
}

impl HostObserver {
    /// Why the daemon cannot go on: its device was removed, or has receive queues that the daemon does not read. Whoever started the daemon stops it.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// The daemon's report, with at most `most` of the changes since a moment; `None` when the daemon does not answer.
    pub fn report(&self, since_ns: u64, most: usize) -> Option<HostReport> {
        let (answer, answered) = sync_channel(1);
        let order = DaemonOrder::Report {
            since_ns,
            most,
            answer,
        };
        if !self.asked.0.send(order) {
            return None;
        }
        answered.recv_timeout(ANSWER).ok()
    }
}

impl HostDaemon {
    /// Checks settings for a daemon, without the checks that need the system.
    ///
    /// # Errors
    /// [`DaemonError`].
    pub fn check(settings: &DaemonSettings) -> Result<HostCores, DaemonError> {
        systems::check(&settings.policy)?;
        let topology = Topology::read(&settings.sysfs)?;
        let cores = HostCores::new(&topology, settings.shares, settings.cores.as_deref())?;
        check_apps(settings, cores.count())?;
        Ok(cores)
    }

    /// Starts a daemon, whose threads take every time from `clock`.
    ///
    /// # Errors
    /// [`DaemonError`].
    pub fn start(settings: DaemonSettings, clock: Clock) -> Result<Self, DaemonError> {
        let cores = Self::check(&settings)?;
        let own = Pid::from_raw(0);
        let may_pin = sched_getaffinity(own).and_then(|mask| sched_setaffinity(own, &mask));
        may_pin.map_err(|errno| DaemonError::Pin(errno.into()))?;
        let listener =
            HostListener::bind(&settings.socket, &settings.apps).map_err(DaemonError::Socket)?;
        let took_over = listener.was_stale;
        let grace = if took_over { GRACE } else { Duration::ZERO };
        let system = |what| move |source| DaemonError::System { what, source };
        let (outbox, inbox) = inbox::pair().map_err(system("make an eventfd"))?;
        let network = settings.device.as_deref().map(HostNetwork::open);
        let network = network.transpose()?;
        let failure = Arc::<OnceLock<String>>::default();
        let device = network
            .as_ref()
            .map(|network| DaemonDevice::new(network.mtu(), network.watch(), Arc::clone(&failure)));
        let grace_ns = grace.as_nanos() as u64;
        let passes = PassCycle::new(clock, settings.tick_ns, grace_ns, cores.own.is_none());
        let cycle =
            Cycle::new(cores.clone(), inbox, passes, network).map_err(system("make an epoll"))?;
        let wakes = Arc::new(event().map_err(system("make an eventfd"))?);
        let policy = settings.policy.clone();
        let settings = Arc::new(RwLock::new(settings));
        let registrar = Registrar::new(
            listener,
            outbox.clone(),
            Arc::clone(&settings),
            cores.dealt.clone(),
            device,
            Arc::clone(&wakes),
            clock,
        )
        .map_err(system("make an epoll"))?;
        let threads = vec![
            thread::Builder::new()
                .spawn(move || cycle.run(policy))
                .map_err(system("start a thread"))?,
            thread::Builder::new()
                .spawn(move || registrar.run(grace_ns))
                .map_err(system("start a thread"))?,
        ];
        Ok(Self {
            outbox: Asked(outbox),
            settings,
            cores,
            wakes,
            threads,
            took_over,
            failure,
        })
    }

    /// The division of the cores.
    pub fn cores(&self) -> &HostCores {
        &self.cores
    }

    /// Whether the last daemon at this socket crashed.
    pub fn took_over(&self) -> bool {
        self.took_over
    }

    /// A handle for reports.
    pub fn observer(&self) -> HostObserver {
        HostObserver {
            asked: self.outbox.clone(),
            failure: Arc::clone(&self.failure),
        }
    }

    /// Replaces the applications' rules and the policy. Registered applications stay; so do the socket and the cores.
    ///
    /// # Errors
    /// [`DaemonError`]: nothing changed.
    pub fn reload(&self, new: DaemonSettings) -> Result<(), DaemonError> {
        systems::check(&new.policy)?;
        check_apps(&new, self.cores.count())?;
        let mut settings = self
            .settings
            .write()
            .map_err(|_| DaemonError::Apps("the daemon is broken: start it anew".into()))?;
        if settings.policy != new.policy {
            self.outbox.0.send(DaemonOrder::Policy(new.policy.clone()));
        }
        access::open_to(&settings.socket, &new.apps).map_err(|source| DaemonError::System {
            what: "open the socket to the users of the settings",
            source,
        })?;
        settings.policy = new.policy;
        settings.apps = new.apps;
        Ok(())
    }

    /// Ends it in order: every application's threads return to the cores that they ran on before.
    pub fn stop(self) {
        // The counter is full only if the bell has rung already.
        let _ = self.wakes.write(1);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Checks that all applications could be registered at once.
fn check_apps(settings: &DaemonSettings, cores: usize) -> Result<(), DaemonError> {
    let refuse = |why: String| Err(DaemonError::Apps(why));
    let mut guaranteed = 0;
    for (index, rule) in settings.apps.iter().enumerate() {
        let name = &rule.name;
        let before = &settings.apps[..index];
        if before.iter().any(|other| other.name == rule.name) {
            return refuse(format!(
                "application '{name}' is there twice: name each once"
            ));
        }
        let most = rule.most.unwrap_or(cores);
        if most == 0 || rule.guaranteed > most {
            return refuse(format!(
                "application '{name}' has {} guaranteed cores and at most {most}: it needs guaranteed ≤ cores and cores ≥ 1",
                rule.guaranteed
            ));
        }
        guaranteed += rule.guaranteed;
        let Some(network) = rule.network else {
            continue;
        };
        if settings.device.is_none() {
            return refuse(format!(
                "application '{name}' has the address {}, and the daemon no device: give one with --device, or take the address away",
                network.ip
            ));
        }
        let address = network.address();
        let mut others = before.iter().filter_map(|other| other.network);
        if others.any(|other| other.ip == network.ip || other.address().mac == address.mac) {
            return refuse(format!(
                "application '{name}' has the address {} or {} of another: give each its own",
                address.ip, address.mac
            ));
        }
    }
    if guaranteed > cores {
        return refuse(format!(
            "{guaranteed} cores are guaranteed to the applications together, and only {cores} are dealt out: guarantee fewer"
        ));
    }
    Ok(())
}
