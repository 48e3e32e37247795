//! When the next pass is due: at once, or after a wait.

use super::engine::Arbiter;
use crate::peer::HostPeer;
use headway_machine::Clock;
use headway_policy::host::{Allocator, BusyPolling};

/// Runs an arbiter's passes, one a step. It knows no descriptors: whoever steps it waits, until an application rings or the time is over.
#[derive(Clone, Debug)]
pub struct PassCycle {
    clock: Clock,
    tick_ns: u64,
    /// No pass before this time, ns: applications of the last daemon return with the cores that they have.
    grace_ns: u64,
    polling: BusyPolling,
    /// Whether the thread has no core of its own, and sleeps between passes.
    shares: bool,
}

/// The result of a step of a [`PassCycle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CycleStep {
    /// The next step is due at once.
    Again,
    /// The next step is due when an application rings, or after this time.
    Waits {
        /// That time, ns.
        patience_ns: u64,
    },
}

impl PassCycle {
    /// The first pass comes `grace_ns` from now. `tick_ns` is the interval at which a thread without a core looks at busy applications;
    /// `shares`: it is such a thread.
    pub fn new(clock: Clock, tick_ns: u64, grace_ns: u64, shares: bool) -> Self {
        Self {
            grace_ns: clock.now_ns() + grace_ns,
            clock,
            tick_ns,
            polling: BusyPolling::new(true),
            shares,
        }
    }

    /// Polls a device by this rule.
    pub fn poll_by(&mut self, polling: BusyPolling) {
        self.polling = polling;
    }

    /// The clock of all passes.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether the thread has no core of its own.
    pub fn shares(&self) -> bool {
        self.shares
    }

    /// Runs a pass, if the grace is over. `has_moved`: the data plane moved packets since the last step. `own_core` asks for the core on which the
    /// caller runs, by the kernel's number.
    pub fn step<A: Allocator, P: HostPeer>(
        &mut self,
        arbiter: &mut Arbiter<A, P>,
        has_moved: bool,
        own_core: impl FnOnce() -> Option<usize>,
    ) -> CycleStep {
        let clock = self.clock;
        let now = || clock.now_ns();
        if now() >= self.grace_ns {
            arbiter.pass(&now);
        }
        if has_moved {
            self.polling.packets_moved(now());
            return CycleStep::Again;
        }
        let has_idle_core = self.shares && own_core().is_some_and(|core| arbiter.runs_on(core));
        if !self.shares || self.polling.goes_on(now(), has_idle_core) {
            return CycleStep::Again;
        }
        let patience_ns = arbiter.patience_ns(self.tick_ns, now());
        let grace_ns = self.grace_ns.saturating_sub(now());
        CycleStep::Waits {
            patience_ns: patience_ns.max(grace_ns),
        }
    }
}
