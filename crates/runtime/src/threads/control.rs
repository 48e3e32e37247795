//! What the server's owner tells its threads, what they tell back, and how a server stops.
//!
//! # The shutdown protocol
//!
//! The phase goes `Running → Draining → Abandoning → Stopped`. It may skip phases, and never goes back: [`advance`](ServerControl::advance) is a
//! `fetch_max`. After each change `advance` wakes every thread, so a thread that changes the phase owes nothing else.
//!
//! ## Who advances it
//!
//! 1. *To Draining*: the owner, by [`Stopper::request_stop`](crate::Stopper::request_stop) or [`Server::shutdown`](crate::Server::shutdown).
//! 2. *To Abandoning*: the owner, when the deadline of `shutdown` has passed, or when it drops the server.
//! 3. *To Stopped, after a drain*: the thread that finds all that was accepted answered. With a dispatcher that is the dispatcher, or the last of several
//!    ([`drained`](ServerControl::drained)). Steered workers count themselves off, and the last one advances. Where workers help themselves the leader
//!    advances, once every buffer is back.
//! 4. *To Stopped, after Abandoning*: each dispatcher, for itself and its workers; or the first of the workers that help themselves to lead again. Steered workers
//!    end by themselves, each as it sees Abandoning, and the phase may stay there.
//! 5. *To Stopped, after a panic*: the thread that panicked, as its last act ([`ServerThreads::spawn`](super::server_threads::ServerThreads::spawn)).
//!    A thread whose destructors wait for others advances earlier ([`stop_on_panic`](ServerControl::stop_on_panic)). An engine that failed to start is stopped
//!    by the thread that started it.
//!
//! ## What each thread does
//!
//! | thread | Draining | Abandoning | Stopped |
//! |---|---|---|---|
//! | dispatcher | accepts what was sent before, then refuses; advances when nothing is in flight | gives up what waits, refuses what waits at the receive queue, advances | refuses what came since it drained, ends |
//! | worker of a dispatcher | runs what it is given | begins nothing; what runs yields at its next probe; sleeps whatever waits | gives up what it was given, ends |
//! | steered worker | answers what was sent before; then refuses until the last worker has | gives up its queues, refuses, ends | as Abandoning |
//! | worker that helps itself | runs; whoever leads accepts, then refuses, then advances | gives up its own queue; whoever leads gives up the shared one, refuses, advances | ends |
//! | monitor's thread | as Running | asks every request to yield, ends with the last worker | ends |
//! | door of a receive queue | ends: from here on nobody waits for a core | ended | ended |
//!
//! ## What is counted where
//!
//! Each request that was accepted is counted once more: as answered or shed by the thread that answers it, or as abandoned by the thread that holds it.
//!
//! 1. A request that is refused since the server drains counts as `refused_draining`, and not as accepted, with the thread that receives it.
//! 2. A request that waits for a decision counts as abandoned with the dispatcher, or with the leader.
//! 3. A request in a worker's ring, run queue or hands counts as abandoned with that worker: whoever passes a request on counts it no more.
//! 4. A suspended request that is given up keeps its buffer, which its handler still borrows. Other buffers go back to the pool.
//!
//! ## The races
//!
//! 1. *A thread falls asleep as the phase changes.* The sleeper declares itself, then looks at the phase; `advance` stores the phase, then looks
//!    for sleepers. A fence between the two on either side lets one see the other ([`headway_sync::park`]). A thread outside of the server, in
//!    [`wait_past`](ServerControl::wait_past), looks under a lock that `advance` takes once.
//! 2. *Two threads advance at once*, as when the deadline passes while the last reply is sent. The later phase wins, and both wake everybody.
//! 3. *A request was sent before the drain and is not yet received.* A drain accepts on, at most as many requests as there are buffers, until a poll with
//!    room brings none ([`Accepting`](super::accepting::Accepting)).
//! 4. *A request comes between the last poll and the end.* Whoever advances to Stopped first refuses what waits at the receive queue then, and sends the refusals. A
//!    dispatcher that drained before others does so again as it ends. What comes later meets a closed socket.
//! 5. *The dispatcher gives up while a worker reports.* It takes reports in once more before it gives up. A later report stays in its ring. One of an answered
//!    request may: the worker has sent the reply and counted it. From Abandoning on a worker keeps what is suspended, and counts it. A worker that saw Draining
//!    may pass a suspended request on after that last look. Whichever of the two ends last, dispatcher or worker, counts it as abandoned
//!    (`central/worker_link.rs`): the one that ends first leaves the ring's receiving end to the other.
//! 6. *A worker takes a request as the phase becomes Abandoning.* It looks at the phase first, then takes. A request taken before is run or suspended; one
//!    that stays in the ring is counted by that worker's `give_up`, after Stopped, when the dispatcher sends nothing more.
//! 7. *The last reply of a drain is sent while the leader sleeps.* With a dispatcher, the worker's report wakes it. A worker that helps itself wakes
//!    the receive queue when it finds nothing more and the phase is not Running.
//! 8. *A worker that helps itself leaves something behind after the leader closed.* The intake gives it up when its last owner drops it.
//! 9. *A worker has no core, where an arbiter grants them.* `advance` closes the granted cores first: all of their waiters go on without one.
//! 10. *A worker holds work that it may not begin.* From Abandoning on work keeps no worker of a dispatcher awake, nor from leading
//!     ([`wants_worker`](ServerControl::wants_worker)); Stopped wakes it.
//! 11. *Groups of several dispatchers.* The server's `wake` passes its phase on to each group ([`groups`](super::groups)), by the group's own `advance`. A group
//!     that stops stops no other: the server stops with the last drain, or each group gives up for itself.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use headway_policy::Plan;

use crate::stats::journal::{Journal, JournalWriter};
use crate::stats::stall::StallLog;
use crate::threads::hosted::HostedCores;
use headway_sync::world::step;
use headway_sync::{Guarded, Padded};

/// The stages of a server's life, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum ServerPhase {
    /// Takes and answers requests.
    Running,
    /// Answers what it accepted, refuses the rest.
    Draining,
    /// Gives up what it has not begun.
    Abandoning,
    /// Nothing is left to do.
    Stopped,
}

impl ServerPhase {
    const ALL: [Self; 4] = [
        Self::Running,
        Self::Draining,
        Self::Abandoning,
        Self::Stopped,
    ];
}

/// Wakes every thread of the server that sleeps.
pub(crate) type WakeAll = Box<dyn Fn() + Send + Sync>;

/// What the owner wants, and how far the server is.
pub(crate) struct ServerControl {
    /// Read in every turn of every loop, hardly ever written: a line of its own that stays in all caches.
    orders: Padded<Orders>,
    /// Set before the first thread starts.
    wake_all: OnceLock<WakeAll>,
    /// Of a server whose cores an arbiter grants.
    hosted: OnceLock<Arc<HostedCores>>,
    /// For threads outside of the server that wait for a phase.
    waiting: Guarded<()>,
    workers: AtomicUsize,
    published: Padded<Mutex<Published>>,
    stalls: Arc<StallLog>,
    /// Until somebody takes it.
    journal: Mutex<Option<Journal>>,
    /// The whole server's control, where this is that of one of its groups.
    server: Option<Weak<ServerControl>>,
    /// Dispatchers that drain, or will.
    undrained: AtomicUsize,
}

/// What every thread looks at in every turn.
struct Orders {
    phase: AtomicU8,
    /// How often the policy's rules have changed.
    rule_changes: AtomicU32,
}

/// A copy for the server's owner of what the dispatcher follows.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// How often the policy had revised its plan.
    pub(crate) revisions: u64,
    /// The plan, where the policy follows one.
    pub(crate) plan: Option<Plan>,
}

impl ServerControl {
    /// `plan` is the one that the policy starts with: later ones are written over its copy. So many `stalls` are kept.
    pub(crate) fn new(workers: usize, plan: Option<&Plan>, stalls: usize) -> Self {
        let published = Published {
            revisions: 0,
            plan: plan.cloned(),
        };
        Self {
            orders: Padded(Orders {
                phase: AtomicU8::new(ServerPhase::Running as u8),
                rule_changes: AtomicU32::new(0),
            }),
            wake_all: OnceLock::new(),
            hosted: OnceLock::new(),
            waiting: Guarded::new(()),
            workers: AtomicUsize::new(workers),
            published: Padded(Mutex::new(published)),
            stalls: Arc::new(StallLog::new(stalls)),
            journal: Mutex::new(None),
            server: None,
            undrained: AtomicUsize::new(1),
        }
    }

    /// The control of a server whose workers so many dispatchers divide among them: there is no plan of all workers.
    pub(crate) fn of_dispatchers(dispatchers: usize, workers: usize, stalls: usize) -> Self {
        Self {
            undrained: AtomicUsize::new(dispatchers),
            ..Self::new(workers, None, stalls)
        }
    }

    /// The control of one dispatcher of such a server, and of its `workers`.
    pub(crate) fn of_group(server: &Arc<Self>, workers: usize) -> Self {
        Self {
            stalls: Arc::clone(&server.stalls),
            server: Some(Arc::downgrade(server)),
            ..Self::new(workers, None, 0)
        }
    }

    /// A dispatcher answered all that it accepted. Where it is the last, the server stops.
    pub(crate) fn drained(&self) {
        match self.server.as_ref().and_then(Weak::upgrade) {
            Some(server) => server.drained(),
            None if self.undrained.fetch_sub(1, Ordering::AcqRel) == 1 => {
                self.advance(ServerPhase::Stopped);
            }
            None => {}
        }
    }

    #[inline]
    pub(crate) fn phase(&self) -> ServerPhase {
        ServerPhase::ALL[usize::from(self.orders.phase.load(Ordering::Acquire))]
    }

    /// Whether a worker is to be awake that `has_work`: nobody begins or goes on with a request while the server gives up, so work keeps no worker
    /// from its sleep then; the end wakes it.
    #[inline]
    pub(crate) fn wants_worker(&self, has_work: bool) -> bool {
        match self.phase() {
            ServerPhase::Running | ServerPhase::Draining => has_work,
            ServerPhase::Abandoning => false,
            ServerPhase::Stopped => true,
        }
    }

    /// Goes on to a later phase, never back, and then wakes every thread: none sleeps on after a change of the phase.
    pub(crate) fn advance(&self, phase: ServerPhase) {
        step();
        self.orders.phase.fetch_max(phase as u8, Ordering::AcqRel);
        if let Some(hosted) = self.hosted.get() {
            hosted.close();
        }
        self.wake();
        // Whoever waits looks at the phase under this lock: holding it once means that it sleeps, or has seen the change.
        drop(self.waiting.lock());
        self.waiting.notify_all();
    }

    /// Says how the server's threads are woken. Later calls have no effect.
    pub(crate) fn set_wake_all(&self, wake_all: WakeAll) {
        let _ = self.wake_all.set(wake_all);
    }

    /// An arbiter grants the workers' cores: workers without one have it when the server stops. Later calls have no effect.
    pub(crate) fn set_hosted(&self, hosted: &Arc<HostedCores>) {
        let _ = self.hosted.set(Arc::clone(hosted));
    }

    /// Wakes every thread of the server that sleeps, to look at what changed here.
    pub(crate) fn wake(&self) {
        if let Some(wake_all) = self.wake_all.get() {
            wake_all();
        }
    }

    /// Waits until the server is past this phase.
    pub(crate) fn wait_past(&self, phase: ServerPhase) {
        let waiting = self.waiting.lock();
        drop(self.waiting.wait_while(waiting, |()| self.phase() <= phase));
    }

    /// As [`wait_past`](Self::wait_past), for so long at most, or until somebody [notifies](Self::notify_waiting) who waits and it is `enough`. It may return early.
    pub(crate) fn wait_past_for(
        &self,
        phase: ServerPhase,
        most: Duration,
        enough: impl Fn() -> bool,
    ) {
        let waiting = self.waiting.lock();
        if self.phase() <= phase && !enough() {
            drop(self.waiting.wait_for(waiting, most));
        }
    }

    /// Has whoever waits look again.
    pub(crate) fn notify_waiting(&self) {
        drop(self.waiting.lock());
        self.waiting.notify_all();
    }

    /// Stops the server when the calling thread unwinds past this. For threads with destructors that wait for other threads.
    pub(crate) fn stop_on_panic(&self) -> StopOnPanic<'_> {
        StopOnPanic(self)
    }

    /// Where threads note that they were kept from running.
    pub(crate) fn stalls(&self) -> &Arc<StallLog> {
        &self.stalls
    }

    /// Opens the journal with room for so many `entries` of each of `workers`: their ends of it, none where there is no room.
    pub(crate) fn open_journal(
        &self,
        workers: usize,
        entries: usize,
    ) -> Vec<Option<JournalWriter>> {
        if entries == 0 {
            return (0..workers).map(|_| None).collect();
        }
        let (journal, writers) = Journal::new(workers, entries);
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Some(journal);
        writers.into_iter().map(Some).collect()
    }

    /// The journal, once.
    pub(crate) fn take_journal(&self) -> Option<Journal> {
        self.journal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// How often the policy's rules have changed. A thread that sees a new number finds the rules in its mailbox.
    #[inline]
    pub(crate) fn rule_changes(&self) -> u32 {
        self.orders.rule_changes.load(Ordering::Relaxed)
    }

    /// There are new rules in all mailboxes: wakes every thread, to adopt them.
    pub(crate) fn announce_rules(&self) {
        self.orders.rule_changes.fetch_add(1, Ordering::Release);
        self.wake();
    }

    /// The whole server's rules are new, and so are those in this group's mailboxes: whoever calls this wakes its threads.
    pub(crate) fn follow_rules(&self, server: &Self) {
        let changes = server.orders.rule_changes.load(Ordering::Acquire);
        self.orders.rule_changes.store(changes, Ordering::Release);
    }

    /// How many workers the dispatcher may use.
    #[inline]
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_workers(&self, workers: usize) {
        self.workers.store(workers, Ordering::Relaxed);
    }

    /// Called by the dispatcher when the policy has a new plan. Neither waits nor allocates; `false` when somebody reads
    /// the last one, so that it is to be tried again.
    #[cold]
    pub(crate) fn try_publish(&self, revisions: u64, plan: Option<&Plan>) -> bool {
        let Ok(mut published) = self.published.try_lock() else {
            return false;
        };
        published.revisions = revisions;
        if let (Some(copy), Some(plan)) = (&mut published.plan, plan) {
            copy.clone_from(plan);
        }
        true
    }

    /// The plan published last.
    pub(crate) fn published(&self) -> Published {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Stops the server when it is dropped by a panic.
pub(crate) struct StopOnPanic<'a>(&'a ServerControl);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.advance(ServerPhase::Stopped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_delays_the_plan_and_not_the_dispatcher() {
        let control = ServerControl::new(1, None, 0);
        let reader = control.published.lock().unwrap();
        assert!(!control.try_publish(1, None));
        drop(reader);
        assert_eq!(control.published().revisions, 0);
        assert!(control.try_publish(1, None));
        assert_eq!(control.published().revisions, 1);
    }
}
