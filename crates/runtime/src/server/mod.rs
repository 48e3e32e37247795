//! The server: what users start, watch and stop.

mod builder;
#[cfg(feature = "ops")]
mod doors;
mod launch;
mod observer;
mod source;
mod start;
mod tuner;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use builder::{Builder, NoService};
use headway_machine::Clock;
use headway_policy::spec::Params;
pub use observer::Observer;
pub use source::{NoSource, Udp};
pub use tuner::{InForce, Tuner};

use crate::engine::layout::Layout;
use crate::engine::parts::{GRACE, LiveEngine};
use crate::error::{ResizeError, ShutdownError};
use crate::stats::stall::Stall;
use crate::stats::tally::Stats;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::park::Idle;
use crate::threads::rack::RackLink;
use crate::threads::server_threads::Failed;

/// A server that runs. Dropping it gives up what it has not answered; [`shutdown`](Server::shutdown) does not.
///
/// ```
/// use std::time::Duration;
/// use headway_runtime::{Call, Server};
///
/// let server = Server::builder()
///     .policy("darc,delta=3")
///     .class("get", Duration::from_nanos(2_000))
///     .class("scan", Duration::from_nanos(500_000))
///     .workers(2)
///     .service(|call: &mut Call<'_>| call.reply(b"hello"))
///     .listen_udp("127.0.0.1:0".parse().unwrap())
///     .start()?;
/// println!("listening on {:?}", server.local_addr());
/// let stats = server.shutdown(Duration::from_secs(1)).unwrap();
/// assert_eq!(stats.answered, 0);
/// # Ok::<(), headway_runtime::StartError>(())
/// ```
pub struct Server {
    engine: LiveEngine,
    stopper: Stopper,
    addr: Option<SocketAddr>,
    policy: PolicyInUse,
    workers: usize,
    idle: Idle,
    drain: Duration,
    observer: Observer,
    tuner: Tuner,
    rack_link: Option<RackLink>,
    clock: Clock,
    #[cfg(feature = "ops")]
    doors: doors::chosen::ServerDoors,
}

impl Server {
    /// The address it listens on, if it does.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.addr
    }

    /// The policy's name.
    #[must_use]
    pub fn policy(&self) -> &'static str {
        self.policy.name
    }

    /// The policy's parameters at the start, defaults included. [`Tuner::in_force`] has those that were changed since.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.policy.params
    }

    /// Who carries the dispatcher out; `None` where the network steers.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        self.engine.layout
    }

    /// Who interrupts the requests of a policy without a dispatcher: a [thread](Layout::Dedicated) for all workers, or
    /// each [worker](Layout::Inline) its own. `None` with a dispatcher, and where no request is interrupted.
    #[must_use]
    pub fn monitor_layout(&self) -> Option<Layout> {
        self.engine.monitor_layout
    }

    /// How its threads wait.
    #[must_use]
    pub fn idle(&self) -> Idle {
        self.idle
    }

    /// How long a stop is to answer what was accepted: the deadline to [shut down](Self::shutdown) with, as [built](Builder::drain).
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.drain
    }

    /// Why its threads are not pinned to cores, if they are not.
    #[must_use]
    pub fn unpinned(&self) -> Option<&str> {
        self.engine.threads.unpinned()
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.observer.stats()
    }

    /// A handle that reads the counters on any thread, and the journal.
    #[must_use]
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// A handle with which any thread can change parameters of the policy while the server serves.
    #[must_use]
    pub fn tuner(&self) -> Tuner {
        self.tuner.clone()
    }

    /// A handle that passes on the orders of a rack's control plane; `None` unless the server was built [behind a
    /// switch](Builder::behind_switch).
    #[must_use]
    pub fn rack_link(&self) -> Option<RackLink> {
        self.rack_link.clone()
    }

    /// When its threads did not get on for more than 5 µs outside of handlers, system calls included, in no particular order; as
    /// many as [`Builder::keep_stalls`] asks for. Sleep for want of work is none.
    #[must_use]
    pub fn stalls(&self) -> Vec<Stall> {
        self.engine.control.stalls().stalls()
    }

    /// Uses only the first `workers` workers from now on; what the others have begun they finish. Of several dispatchers each keeps its first ones, as
    /// many as the others as far as it has them. Where an arbiter grants cores these are the first workers that have one.
    ///
    /// # Errors
    /// [`ResizeError`] when the server has not so many, a dispatcher would have none, or there is no dispatcher.
    pub fn set_workers(&self, workers: usize) -> Result<(), ResizeError> {
        if self.engine.layout.is_none() {
            let policy = self.policy.name;
            return Err(ResizeError::Steered { policy });
        }
        let max = self.workers;
        if !(1..=max).contains(&workers) {
            return Err(ResizeError::OutOfRange { workers, max });
        }
        let dispatchers = self.engine.dispatchers;
        if workers < dispatchers {
            return Err(ResizeError::Dispatchers {
                workers,
                dispatchers,
            });
        }
        self.engine.control.set_workers(workers);
        self.engine.control.wake();
        Ok(())
    }

    /// A handle with which any thread, such as one that waits for signals, can ask the server to stop.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until somebody asks the server to stop, or a thread of it panics. What it accepted is not yet answered then:
    /// [`shutdown`](Self::shutdown) sees to that, by a deadline that begins with its call.
    pub fn wait(&self) {
        self.engine.control.wait_past(ServerPhase::Running);
    }

    /// Stops gracefully: takes what was sent before this call, answers everything it accepted, refuses what comes later
    /// (with [`Status::Draining`](headway_net::header::Status::Draining)), and ends its threads. What is not begun
    /// when `deadline` has passed is given up, and counted as [`abandoned`](Stats::abandoned); one beyond what the clock can tell never passes.
    ///
    /// # Errors
    /// [`ShutdownError`] when a handler does not return, or a thread of the server had panicked.
    pub fn shutdown(mut self, deadline: Duration) -> Result<Stats, ShutdownError> {
        self.stopper.request_stop();
        if !self
            .engine
            .threads
            .wait(self.clock, self.deadline_ns(deadline))
        {
            self.give_up();
        }
        let stats = self.stats();
        let Failed { stuck, crashed } = self.engine.threads.join_ended();
        if !stuck.is_empty() {
            Err(ShutdownError::Stuck { threads: stuck })
        } else if !crashed.is_empty() {
            Err(ShutdownError::Crashed { threads: crashed })
        } else {
            Ok(stats)
        }
    }

    fn give_up(&self) {
        self.engine.control.advance(ServerPhase::Abandoning);
        self.engine
            .threads
            .wait(self.clock, self.deadline_ns(GRACE));
    }

    /// The time after `duration` from now, ns; `u64::MAX`, for never, where the clock does not reach it.
    fn deadline_ns(&self, duration: Duration) -> u64 {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.clock.now_ns().saturating_add(duration_ns)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// The policy that a server runs.
struct PolicyInUse {
    name: &'static str,
    /// Every parameter, defaults included.
    params: Params,
}

/// Asks a server to stop; see [`Server::stopper`].
#[derive(Clone)]
pub struct Stopper {
    control: Arc<ServerControl>,
}

impl Stopper {
    fn of(engine: &LiveEngine) -> Self {
        Self {
            control: Arc::clone(&engine.control),
        }
    }

    /// Begins to drain, and returns at once.
    pub fn request_stop(&self) {
        self.control.advance(ServerPhase::Draining);
    }
}
