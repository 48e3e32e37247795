//! A server's counts, for C programs.
#![expect(unsafe_code, reason = "promises the layout of structs")]

use headway_runtime::{self as runtime, Section};

use crate::versioned::Versioned;

/// A server's counts since its start. Begin with `struct headway_stats stats = {.size = sizeof stats};`. Counts of different kinds are
/// read one after the other, so they agree exactly only when the server is at rest.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayStats {
    /// sizeof(struct headway_stats).
    pub size: usize,
    /// Datagrams taken from the network.
    pub received: u64,
    /// Requests run to their end, with any answer.
    pub answered: u64,
    /// Requests refused because the queue of their class was full.
    pub shed: u64,
    /// Datagrams too short for the wire header, or marked as responses: dropped.
    pub malformed: u64,
    /// Datagrams larger than a buffer: refused.
    pub too_large: u64,
    /// Requests refused because the server was shutting down.
    pub refused_draining: u64,
    /// Requests accepted but given up when the deadline of a shutdown was over.
    pub abandoned: u64,
    /// Interruptions of requests.
    pub preemptions: u64,
    /// Responses that the system refused to send.
    pub unsent: u64,
    /// Datagrams that the kernel dropped because the server did not take them in time.
    pub kernel_drops: u64,
    /// How often the policy asked a running request to yield; preemptions of them did, or yielded by themselves.
    pub preemptions_asked: u64,
}

// SAFETY: as asked: numbers, the size first.
unsafe impl Versioned for HeadwayStats {
    const NAME: &'static str = "headway_stats";
}

impl From<&runtime::Stats> for HeadwayStats {
    fn from(stats: &runtime::Stats) -> Self {
        Self {
            size: size_of::<Self>(),
            received: stats.received,
            answered: stats.answered,
            shed: stats.shed,
            malformed: stats.malformed,
            too_large: stats.too_large,
            refused_draining: stats.refused_draining,
            abandoned: stats.abandoned,
            preemptions: stats.preemptions,
            unsent: stats.unsent,
            kernel_drops: stats.kernel_drops,
            preemptions_asked: stats.preemptions_asked,
        }
    }
}

/// A server's counts for one class. Begin with `struct headway_class_stats stats = {.size = sizeof stats};`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayClassStats {
    /// sizeof(struct headway_class_stats).
    pub size: usize,
    /// Requests run to their end.
    pub answered: u64,
    /// Requests refused because the queue was full.
    pub shed: u64,
    /// The handlers' total time, ns.
    pub cpu_ns: u64,
    /// How often the policy asked a running request to yield.
    pub preemptions_asked: u64,
    /// Interruptions of requests.
    pub preemptions: u64,
    /// Requests that ran for more than 20 us after they were asked to yield, and ended without meeting a probe. The server names a class
    /// once, on standard error, if all its requests do so.
    pub overruns: u64,
    /// How often a request yielded at the end of a section in which it was asked to yield and could not. The following fields count, by kind
    /// of section, how often a section kept a request from yielding, and for how long in all until it yielded or ended.
    pub lock_yields: u64,
    /// In a section that the program opened by name.
    pub held_no_preempt: u64,
    /// The same, ns.
    pub held_no_preempt_ns: u64,
    /// While it held a mutex (behind the shim).
    pub held_mutex: u64,
    /// The same, ns.
    pub held_mutex_ns: u64,
    /// While it held a readers-writer lock (behind the shim).
    pub held_rwlock: u64,
    /// The same, ns.
    pub held_rwlock_ns: u64,
    /// In the allocator (behind the shim).
    pub held_allocator: u64,
    /// The same, ns.
    pub held_allocator_ns: u64,
    /// In another lock or initialisation (behind the shim).
    pub held_other: u64,
    /// The same, ns.
    pub held_other_ns: u64,
    /// Requests that called headway_feedback_start(). Nested parts are allowed. The next three count mistakes.
    pub feedback_said_long: u64,
    /// The same, where the class is short by its mean_ns or its hint: a policy that goes by hints, such as synergy, does not interrupt them.
    pub feedback_from_short: u64,
    /// Long parts that were never ended; the end of their request ended them.
    pub feedback_unended: u64,
    /// Calls of headway_feedback_finished() without a part to end; they changed nothing.
    pub feedback_unbegun: u64,
}

// SAFETY: as asked: numbers, the size first.
unsafe impl Versioned for HeadwayClassStats {
    const NAME: &'static str = "headway_class_stats";
}

impl From<&runtime::ClassStats> for HeadwayClassStats {
    fn from(stats: &runtime::ClassStats) -> Self {
        let held = |section| stats.held.of(section);
        let yields = Section::ALL.map(|section| held(section).yields);
        Self {
            size: size_of::<Self>(),
            answered: stats.answered,
            shed: stats.shed,
            cpu_ns: stats.cpu_ns,
            preemptions_asked: stats.preemptions_asked,
            preemptions: stats.preemptions,
            overruns: stats.overruns,
            lock_yields: yields.iter().sum(),
            held_no_preempt: held(Section::NoPreempt).count,
            held_no_preempt_ns: held(Section::NoPreempt).ns,
            held_mutex: held(Section::Mutex).count,
            held_mutex_ns: held(Section::Mutex).ns,
            held_rwlock: held(Section::RwLock).count,
            held_rwlock_ns: held(Section::RwLock).ns,
            held_allocator: held(Section::Allocator).count,
            held_allocator_ns: held(Section::Allocator).ns,
            held_other: held(Section::Other).count,
            held_other_ns: held(Section::Other).ns,
            feedback_said_long: stats.feedback.said_long,
            feedback_from_short: stats.feedback.from_short,
            feedback_unended: stats.feedback.unended,
            feedback_unbegun: stats.feedback.unbegun,
        }
    }
}

/// A server's counts for one worker. Begin with `struct headway_worker_stats stats = {.size = sizeof stats};`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayWorkerStats {
    /// sizeof(struct headway_worker_stats).
    pub size: usize,
    /// Requests that it ran to their end.
    pub answered: u64,
    /// Requests that it began and that came by its own queue.
    pub own: u64,
    /// Requests that it took from another worker's queue.
    pub stolen: u64,
    /// Interrupted requests that it resumed.
    pub resumed: u64,
    /// Interruptions of requests.
    pub preemptions: u64,
    /// How often a slice ended and the request went on at once, since nothing waited that should run instead.
    pub renewals: u64,
    /// The handlers' total time in requests that ended here, ns.
    pub cpu_ns: u64,
    /// Requests that wait at the worker; 0 where a dispatcher places requests.
    pub queued: u64,
    /// How often a request yielded at the end of a section in which it was asked to yield and could not.
    pub lock_yields: u64,
}

// SAFETY: as asked: numbers, the size first.
unsafe impl Versioned for HeadwayWorkerStats {
    const NAME: &'static str = "headway_worker_stats";
}

impl From<&runtime::WorkerStats> for HeadwayWorkerStats {
    fn from(stats: &runtime::WorkerStats) -> Self {
        let yields = Section::ALL.map(|section| stats.held.of(section).yields);
        Self {
            size: size_of::<Self>(),
            answered: stats.answered,
            own: stats.own,
            stolen: stats.stolen,
            resumed: stats.resumed,
            preemptions: stats.preemptions,
            renewals: stats.renewals,
            cpu_ns: stats.cpu_ns,
            queued: stats.queued.unwrap_or(0) as u64,
            lock_yields: yields.iter().sum(),
        }
    }
}
