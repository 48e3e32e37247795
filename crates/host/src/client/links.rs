//! The state that an application's threads share about its daemon.

use super::network::ClientNetwork;
use super::thread;
use crate::futex;
use crate::memory::SharedLines;
use headway_kthread::{AtSignal, Grant};
use headway_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use headway_sync::barrier::AsymmetricBarrier;
use nix::sched::CpuSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The longest sleep of a kthread before it checks again whether its application has closed.
const SLEEP: Duration = Duration::from_secs(1);

/// An application's registration options.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Its name in the daemon's settings.
    pub name: String,
    /// The most cores that it uses at once.
    pub kthreads: usize,
    /// Cores that it asks to be guaranteed; the settings' number by default.
    pub guaranteed: Option<usize>,
    /// Whether its kthreads look at their orders every few microseconds, and need no signal.
    pub probes: bool,
    /// What the daemon's signal does to the code that a kthread runs.
    pub at_signal: AtSignal,
    /// Whether it wants packets of the daemon's device.
    pub network: bool,
}

impl ClientOptions {
    /// Options of an application whose kthreads leave on signals, and may stop anywhere.
    pub fn new(name: &str, kthreads: usize) -> Self {
        Self {
            name: name.to_owned(),
            kthreads,
            guaranteed: None,
            probes: false,
            at_signal: AtSignal::STOPS,
            network: false,
        }
    }
}

/// A kthread's state in its own application's books.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum KthreadState {
    /// Its thread has not started yet.
    Absent = 0,
    /// It has a core, and works or looks for work.
    Awake = 1,
    /// It has a core and sleeps on it, under a daemon that keeps cores assigned.
    Idle = 2,
    /// It has no core.
    Parked = 3,
    /// It is about to give its core back, and looks for work once more.
    Leaving = 4,
}

#[derive(Debug)]
pub(super) struct KthreadPlace {
    pub(super) state: AtomicU8,
    /// The grant under which it runs.
    pub(super) grant: AtomicU64,
}

impl KthreadPlace {
    pub(super) fn is(&self, state: KthreadState) -> bool {
        self.state.load(Ordering::Acquire) == state as u8
    }

    fn becomes(&self, from: KthreadState, to: KthreadState) -> bool {
        let (from, to) = (from as u8, to as u8);
        let order = Ordering::AcqRel;
        self.state
            .compare_exchange(from, to, order, Ordering::Relaxed)
            .is_ok()
    }

    pub(super) fn set(&self, state: KthreadState) {
        self.state.store(state as u8, Ordering::Release);
    }
}

/// An application's own books, beside the lines that it shares.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) lines: SharedLines,
    pub(super) memory: OwnedFd,
    pub(super) network: Option<ClientNetwork>,
    pub(super) links: Box<[KthreadPlace]>,
    pub(super) options: ClientOptions,
    pub(super) doorbell: OwnedFd,
    /// Kthreads that work or look for work.
    awake: AtomicUsize,
    /// Kthreads that sleep on their own core.
    idle: AtomicUsize,
    barrier: AsymmetricBarrier,
    closed: AtomicBool,
    /// Whether the daemon is gone: kthreads keep their cores, and this application wakes one if all sleep.
    alone: AtomicBool,
    /// Whether every kthread has a core of the process' own, since the daemon ended in order or refused the application.
    free: AtomicBool,
    /// The cores on which the process ran before it registered.
    pub(super) home: CpuSet,
}

impl Links {
    pub(super) fn new(
        lines: SharedLines,
        memory: OwnedFd,
        doorbell: OwnedFd,
        network: Option<ClientNetwork>,
        options: ClientOptions,
        home: CpuSet,
    ) -> Self {
        let link = |_| KthreadPlace {
            state: AtomicU8::new(KthreadState::Absent as u8),
            grant: AtomicU64::new(0),
        };
        Self {
            links: (0..lines.kthreads()).map(link).collect(),
            lines,
            memory,
            network,
            options,
            doorbell,
            awake: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            barrier: AsymmetricBarrier::new(),
            closed: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            free: AtomicBool::new(false),
            home,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Enters a kthread's thread. Returns once the kthread has a core.
    pub(super) fn come(&self, kthread: usize) -> Grant {
        let link = &self.links[kthread];
        link.set(KthreadState::Parked);
        self.lines.line(kthread).set_tid(thread::own_tid());
        // Pairs with the fence of an arbiter that revokes a grant before this thread has used it.
        fence(Ordering::SeqCst);
        self.want();
        self.sleep_until_granted(kthread)
    }

    /// Gives the core back, unless there is work after all. Returns the grant under which the kthread continues.
    pub(super) fn leave(
        &self,
        kthread: usize,
        grant: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        let link = &self.links[kthread];
        let orders = self.lines.orders(kthread);
        let own = Grant(link.grant.load(Ordering::Relaxed));
        // A signal stopped it meanwhile, and it has a newer grant since.
        if self.is_closed() || own != grant && !orders.is_revoked(own) {
            return own;
        }
        // From here on a signal has no effect: the code below reads the orders.
        link.set(KthreadState::Leaving);
        if !orders.is_revoked(own) {
            if self.keeps_core() {
                return self.sleep_on_core(kthread, own, finds_nothing);
            }
            self.awake.fetch_sub(1, Ordering::AcqRel);
            self.barrier.heavy();
            if !finds_nothing() {
                self.awake.fetch_add(1, Ordering::AcqRel);
                link.set(KthreadState::Awake);
                if !orders.is_revoked(own) {
                    return own;
                }
                link.set(KthreadState::Leaving);
                self.awake.fetch_sub(1, Ordering::AcqRel);
            }
        } else {
            self.awake.fetch_sub(1, Ordering::AcqRel);
        }
        self.park(kthread, own)
    }

    /// Whether a kthread that works must leave its core. Safe in a signal handler.
    pub(super) fn must_leave(&self, kthread: usize) -> bool {
        let link = &self.links[kthread];
        let own = Grant(link.grant.load(Ordering::Relaxed));
        let is_revoked = self.lines.orders(kthread).is_revoked(own);
        link.is(KthreadState::Awake) && is_revoked && !self.is_closed()
    }

    /// Stops a kthread that a signal found at work and that [must leave](Self::must_leave), until it has a core again. Safe in a signal handler.
    pub(super) fn stop_here(&self, kthread: usize) {
        let link = &self.links[kthread];
        let own = Grant(link.grant.load(Ordering::Relaxed));
        link.set(KthreadState::Leaving);
        self.awake.fetch_sub(1, Ordering::AcqRel);
        let line = self.lines.line(kthread);
        line.set_interrupted(true);
        self.park(kthread, own);
        line.set_interrupted(false);
    }

    /// Gives the core back, and sleeps until the next grant.
    fn park(&self, kthread: usize, own: Grant) -> Grant {
        self.links[kthread].set(KthreadState::Parked);
        self.lines.line(kthread).leave(own);
        // Pairs with the fence in `set_alone`, for a daemon that ends just now.
        fence(Ordering::SeqCst);
        // The order may come from a daemon that is gone and grants no other core.
        if self.alone.load(Ordering::Acquire) && self.lines.orders(kthread).is_revoked(own) {
            if self.lines.line(kthread).is_interrupted() {
                self.grant_to(kthread);
            } else if self.awake.load(Ordering::Acquire) == 0 {
                self.grant_alone();
            }
        }
        self.announce_idle_core();
        self.sleep_until_granted(kthread)
    }

    /// Sleeps until the kthread has a grant that is in force.
    fn sleep_until_granted(&self, kthread: usize) -> Grant {
        let (link, line) = (&self.links[kthread], self.lines.line(kthread));
        let orders = self.lines.orders(kthread);
        loop {
            let wakes = orders.wakes().load(Ordering::Acquire);
            let granted = orders.granted();
            let is_new = granted > line.left();
            if is_new && orders.is_revoked(granted) && !self.is_closed() {
                line.leave(granted);
            } else if is_new || self.is_closed() {
                link.grant.store(granted.0, Ordering::Relaxed);
                self.awake.fetch_add(1, Ordering::AcqRel);
                link.set(KthreadState::Awake);
                if self.is_closed() || !orders.is_revoked(granted) {
                    return granted;
                }
                // The daemon revoked the grant before its signal could stop this thread.
                link.set(KthreadState::Leaving);
                self.awake.fetch_sub(1, Ordering::AcqRel);
                link.set(KthreadState::Parked);
            } else {
                futex::wait(orders.wakes(), wakes, SLEEP);
            }
        }
    }

    /// Sleeps without giving the core back, until there is work or the core is taken.
    fn sleep_on_core(
        &self,
        kthread: usize,
        own: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        let link = &self.links[kthread];
        let orders = self.lines.orders(kthread);
        link.set(KthreadState::Idle);
        self.idle.fetch_add(1, Ordering::AcqRel);
        self.awake.fetch_sub(1, Ordering::AcqRel);
        self.barrier.heavy();
        if !finds_nothing() {
            self.wake_idle(kthread);
        }
        self.announce_idle_core();
        while link.is(KthreadState::Idle) {
            let wakes = orders.wakes().load(Ordering::Acquire);
            if orders.is_revoked(own) || self.is_closed() || !self.keeps_core() {
                self.wake_idle(kthread);
            } else if link.is(KthreadState::Idle) {
                futex::wait(orders.wakes(), wakes, SLEEP);
                // The daemon wakes it for a packet.
                if !finds_nothing() {
                    self.wake_idle(kthread);
                }
            }
        }
        own
    }

    /// Wakes a kthread that sleeps on its core; returns whether it did.
    fn wake_idle(&self, kthread: usize) -> bool {
        let wakes = self.links[kthread].becomes(KthreadState::Idle, KthreadState::Awake);
        if wakes {
            self.awake.fetch_add(1, Ordering::AcqRel);
            self.idle.fetch_sub(1, Ordering::AcqRel);
            futex::wake(self.lines.orders(kthread).wakes());
        }
        wakes
    }

    /// Makes sure that a kthread sees new work.
    #[inline]
    pub(super) fn notify(&self) {
        self.barrier.light();
        if self.awake.load(Ordering::Relaxed) == 0 || self.idle.load(Ordering::Relaxed) > 0 {
            self.notify_sleepers();
        }
    }

    #[cold]
    fn notify_sleepers(&self) {
        if self.idle.load(Ordering::Acquire) > 0
            && (0..self.links.len()).any(|kthread| self.wake_idle(kthread))
        {
            return;
        }
        if self.awake.load(Ordering::Acquire) > 0 {
            return;
        }
        if self.alone.load(Ordering::Acquire) {
            self.grant_alone();
        } else {
            self.want();
        }
    }

    /// A daemon that shares this core polls for packets while the core is idle, and sends those that were not announced yet.
    #[inline]
    fn announce_idle_core(&self) {
        if self.network.is_some() {
            self.packets_sent();
        }
    }

    #[inline]
    pub(super) fn is_daemons_core(&self, kthread: usize) -> bool {
        let daemons_core = self.lines.arbiter().daemons_core.load(Ordering::Relaxed);
        self.network.is_some() && daemons_core == self.lines.orders(kthread).core().wrapping_add(1)
    }

    /// Wakes a sleeping daemon to send packets that were written into a lane.
    #[inline]
    pub(super) fn packets_sent(&self) {
        if self.lines.arbiter().doorbell.load(Ordering::Relaxed) != 0 {
            thread::ring(self.doorbell.as_fd());
        }
    }

    /// Asks the daemon for a core.
    fn want(&self) {
        self.lines.app().wants.fetch_add(1, Ordering::AcqRel);
        if self.lines.arbiter().doorbell.load(Ordering::Acquire) != 0 {
            thread::ring(self.doorbell.as_fd());
        }
    }

    /// Without a daemon, grants the first kthread without a core the one that it had last.
    fn grant_alone(&self) {
        // One that is leaving has looked for work already, and parks next: in this order neither look misses it.
        let is_without =
            |link: &KthreadPlace| link.is(KthreadState::Leaving) || link.is(KthreadState::Parked);
        let Some(kthread) = self.links.iter().position(is_without) else {
            return;
        };
        self.grant_to(kthread);
    }

    /// Grants a kthread the core that it had last.
    fn grant_to(&self, kthread: usize) {
        let orders = self.lines.orders(kthread);
        orders.grant_as(orders.core(), Grant(orders.granted().0 + 1));
        futex::wake(orders.wakes());
    }

    /// Whether a kthread that finds no work sleeps on its core.
    fn keeps_core(&self) -> bool {
        let parks = self.lines.arbiter().parks.load(Ordering::Relaxed) != 0;
        !parks || self.free.load(Ordering::Acquire)
    }

    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.free.load(Ordering::Acquire)
    }

    #[cfg(test)]
    pub(super) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Acquire)
    }

    /// Records that the daemon is gone, or that a new one has taken over.
    pub(super) fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Ordering::Release);
        if !alone && self.free.swap(false, Ordering::AcqRel) {
            // Those that sleep on a core give it back to the new daemon.
            self.wake_all();
        }
        // Work may have come for which the last daemon had granted no core yet.
        fence(Ordering::SeqCst);
        if alone {
            // A signal stopped these in the middle of a task, which only they can continue.
            let stranded = |&kthread: &usize| {
                self.links[kthread].is(KthreadState::Parked)
                    && self.lines.line(kthread).is_interrupted()
            };
            (0..self.links.len())
                .filter(stranded)
                .for_each(|kthread| self.grant_to(kthread));
        }
        if self.awake.load(Ordering::Acquire) == 0 {
            if alone {
                self.grant_alone();
            } else {
                self.want();
            }
        }
    }

    /// Has every kthread run, until a daemon takes them over.
    pub(super) fn set_free(&self) {
        self.free.store(true, Ordering::Release);
        for kthread in 0..self.links.len() {
            let orders = self.lines.orders(kthread);
            orders.grant_as(orders.core(), Grant(orders.granted().0 + 1));
        }
        self.wake_all();
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        for kthread in 0..self.links.len() {
            futex::wake(self.lines.orders(kthread).wakes());
        }
    }
}
