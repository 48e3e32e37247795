//! Counters: each thread writes its own, anyone reads the sum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_fiber::Section;
use headway_machine::histogram::{SharedTimes, TimeHistogram};
use headway_policy::{BitSet, Plan};

/// A counter with one writer, so that counting is a load and a store instead of a locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, by: u64) {
        self.set(self.get() + by);
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one thread counts.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub(crate) received: Count,
    pub(crate) malformed: Count,
    pub(crate) too_large: Count,
    pub(crate) refused_draining: Count,
    pub(crate) unsent: Count,
    pub(crate) panics: Count,
    pub(crate) abandoned: Count,
    pub(crate) stolen: Count,
    /// Clones dropped behind a rack's switch; their classes count them as shed.
    pub(crate) clones_dropped: Count,
    /// The number of the order of a rack's control plane that is in force.
    pub(crate) order: Count,
    classes: Box<[ClassTally]>,
    /// By class and kind of section; a line of their own, since they are hardly ever written.
    held: Box<[HeldTally]>,
    /// By worker, of a thread that watches them: how often its monitor let a request go on.
    renewals: Box<[Count]>,
}

/// Requests that a section kept from yielding, by the kind of section.
type HeldTally = [HeldCounts; Section::ALL.len()];

#[derive(Debug, Default)]
struct HeldCounts {
    count: Count,
    ns: Count,
    yields: Count,
}

/// What one thread counts of one class.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ClassTally {
    pub(crate) accepted: Count,
    pub(crate) answered: Count,
    sheds: [Count; ShedCause::ALL.len()],
    pub(crate) handed_back: Count,
    pub(crate) preemptions_asked: Count,
    pub(crate) preemptions: Count,
    pub(crate) overruns: Count,
    pub(crate) longest_gap_ns: Count,
    pub(crate) renewals: Count,
    pub(crate) resumed: Count,
    pub(crate) feedback: FeedbackTally,
    /// Times from arrival to the first slice, of requests that a worker took up.
    wait: SharedTimes,
    /// What handlers took, of requests that ended.
    service: SharedTimes,
}

/// Why a request was refused as shed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShedCause {
    /// The queue of its class was full.
    QueueFull,
    /// There was no buffer to keep it in, or those that are left are kept from its class.
    NoBuffer,
    /// There was no stack to run it on.
    NoStack,
    /// It is a clone that could not start at once, behind a rack's switch.
    Clone,
}

impl ShedCause {
    const ALL: [Self; 4] = [Self::QueueFull, Self::NoBuffer, Self::NoStack, Self::Clone];
}

impl ClassTally {
    /// Counts a refusal.
    #[inline]
    pub(crate) fn shed(&self, cause: ShedCause) {
        self.sheds[cause as usize].add(1);
    }

    /// A worker takes a request up that waited for so long, ns.
    #[inline]
    pub(crate) fn begins(&self, waited_ns: u64) {
        self.wait.record(waited_ns);
    }

    /// Counts a request whose handler took so long, ns.
    #[inline]
    pub(crate) fn answers(&self, cpu_ns: u64) {
        self.answered.add(1);
        self.service.record(cpu_ns);
    }

    /// What handlers took so far, ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.service.sum_ns()
    }
}

/// How a handler used the calls that say what is long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FeedbackUse {
    /// It began a long part.
    pub(crate) said_long: bool,
    /// Long parts that it never ended.
    pub(crate) unended: u32,
    /// Ends of long parts that it never began.
    pub(crate) unbegun: u32,
}

/// A turn that went on after its request was asked to yield, since it was in a section that must not be interrupted.
#[derive(Clone, Copy)]
pub(crate) struct HeldTurn {
    pub(crate) section: Section,
    /// From when a probe met the request to yield to the turn's end, ns.
    pub(crate) ns: u64,
}

/// What handlers of one class said by the feedback calls. Most say nothing, and then nothing is written.
#[derive(Debug, Default)]
pub(crate) struct FeedbackTally {
    said_long: Count,
    unended: Count,
    unbegun: Count,
}

impl FeedbackTally {
    /// Counts one request.
    #[inline]
    pub(crate) fn add(&self, used: FeedbackUse) {
        if used != FeedbackUse::default() {
            self.said_long.add(u64::from(used.said_long));
            self.unended.add(u64::from(used.unended));
            self.unbegun.add(u64::from(used.unbegun));
        }
    }
}

impl Tally {
    /// That of a thread which watches so many workers: a dispatcher's, or a monitor's.
    pub(crate) fn of_watcher(classes: usize, workers: usize) -> Self {
        Self {
            renewals: (0..workers).map(|_| Count::default()).collect(),
            ..Self::new(classes)
        }
    }

    /// `classes` includes UNKNOWN.
    pub(crate) fn new(classes: usize) -> Self {
        Self {
            received: Count::default(),
            malformed: Count::default(),
            too_large: Count::default(),
            refused_draining: Count::default(),
            unsent: Count::default(),
            panics: Count::default(),
            abandoned: Count::default(),
            stolen: Count::default(),
            clones_dropped: Count::default(),
            order: Count::default(),
            classes: (0..classes).map(|_| ClassTally::default()).collect(),
            held: (0..classes).map(|_| HeldTally::default()).collect(),
            renewals: Box::default(),
        }
    }

    /// Counts a turn that a section prolonged, if one did, and whether it `yielded` at last.
    #[inline]
    pub(crate) fn held(&self, class: u16, held: Option<HeldTurn>, yielded: bool) {
        if let Some(held) = held {
            self.count_held(class, held, yielded);
        }
    }

    #[cold]
    fn count_held(&self, class: u16, held: HeldTurn, yielded: bool) {
        let counts = &self.held[usize::from(class)][held.section as usize];
        counts.count.add(1);
        counts.ns.add(held.ns);
        counts.yields.add(u64::from(yielded));
    }

    /// Counts that the monitor let a request of this worker go on.
    #[inline]
    pub(crate) fn renewed(&self, worker: usize, class: u16) {
        self.renewals[worker].add(1);
        self.class(class).renewals.add(1);
    }

    /// Requests handed back to a rack's switch.
    pub(crate) fn handed_back(&self) -> u64 {
        self.total(|class| class.handed_back.get())
    }

    fn total(&self, count: impl Fn(&ClassTally) -> u64) -> u64 {
        self.classes.iter().map(count).sum()
    }

    #[inline]
    pub(crate) fn class(&self, class: u16) -> &ClassTally {
        &self.classes[usize::from(class)]
    }
}

/// What the server has done since it started. Counts of different kinds are read one after the other, so they
/// agree exactly only when the server is at rest.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Datagrams taken from the datapath.
    pub received: u64,
    /// Requests run to their end, whatever status the handler answered with; panics included.
    pub answered: u64,
    /// Requests refused because the queue of their class was full, and clones that could not start at once behind a rack's switch.
    pub shed: u64,
    /// Requests handed back to a rack's switch, not begun.
    pub handed_back: u64,
    /// Datagrams too short for the wire header, marked as responses, or sent from the server's own address: dropped, since there is
    /// nobody to answer.
    pub malformed: u64,
    /// Datagrams larger than a buffer: refused.
    pub too_large: u64,
    /// Requests refused because the server was shutting down.
    pub refused_draining: u64,
    /// Requests accepted but given up when the deadline of a shutdown was over.
    pub abandoned: u64,
    /// How often the policy asked a running request to yield, once per turn on its worker. Some end before they meet a probe.
    pub preemptions_asked: u64,
    /// How often a request was interrupted: it yielded as it was asked to, or by itself (`FiberMutex`, `yield_now`).
    pub preemptions: u64,
    /// Requests that a worker took from another worker's queue.
    pub stolen: u64,
    /// Responses that the system did not take.
    pub unsent: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Datagrams that the kernel dropped because the server did not take them in time.
    pub kernel_drops: u64,
    /// How often the policy revised its plan.
    pub plan_revisions: u64,
    /// The plan in force, where the policy follows one.
    pub plan: Option<Plan>,
    /// By class; the last one is UNKNOWN.
    pub classes: Vec<ClassStats>,
    /// By worker.
    pub workers: Vec<WorkerStats>,
    /// What each dispatcher ran itself; none without a dispatcher.
    pub dispatchers: Vec<WorkerStats>,
    /// The queues of interrupted requests that all workers share; none where a dispatcher places requests.
    pub wait_queues: Vec<WaitQueueStats>,
}

/// Requests that were asked to yield in a section that must not be interrupted, and went on until its end or their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeldStats {
    /// How often.
    pub count: u64,
    /// For how long in all, from the first probe that met the request to yield until the request yielded or ended, ns.
    pub ns: u64,
    /// How often it yielded then: lock yields. The others ended.
    pub yields: u64,
}

/// The same by the kind of section. Where policies interrupt [by feedback](crate::Builder::by_feedback), what a handler does outside of its long
/// parts is a no-preempt section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeldSections([HeldStats; Section::ALL.len()]);

impl HeldSections {
    /// Of this kind.
    #[must_use]
    pub fn of(&self, section: Section) -> HeldStats {
        self.0[section as usize]
    }

    /// Every kind with its counts.
    pub fn kinds(&self) -> impl Iterator<Item = (Section, HeldStats)> + '_ {
        Section::ALL.into_iter().zip(self.0)
    }

    fn add(&mut self, tally: &HeldTally) {
        for (stats, counts) in self.0.iter_mut().zip(tally) {
            stats.count += counts.count.get();
            stats.ns += counts.ns.get();
            stats.yields += counts.yields.get();
        }
    }
}

/// A queue of interrupted requests that all workers share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitQueueStats {
    /// Requests that wait there.
    pub waiting: usize,
    /// Whether the policy finds it congested.
    pub congested: bool,
}

/// What one worker has done since the server started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkerStats {
    /// Requests that it ran to their end.
    pub answered: u64,
    /// Requests that it began and that came to it by its own queue: not stolen, and not interrupted before. One that runs counts when it ends
    /// or is interrupted.
    pub own: u64,
    /// Requests that it took from another worker's queue.
    pub stolen: u64,
    /// Interrupted requests that it went on with.
    pub resumed: u64,
    /// How often a request was interrupted here.
    pub preemptions: u64,
    /// How often a slice ended here and the request went on at once, since nothing waited that should run instead: preemptions avoided.
    pub renewals: u64,
    /// Time that handlers took here of requests that ended here, ns.
    pub cpu_ns: u64,
    /// Requests that wait at this worker; `None` where a dispatcher places requests.
    pub queued: Option<usize>,
    /// Requests that were asked to yield here and could not at once.
    pub held: HeldSections,
}

impl WorkerStats {
    fn of(tally: &Tally) -> Self {
        let (answered, resumed) = (
            tally.total(|class| class.answered.get()),
            tally.total(|class| class.resumed.get()),
        );
        let preemptions = tally.total(|class| class.preemptions.get());
        let stolen = tally.stolen.get();
        let mut held = HeldSections::default();
        tally.held.iter().for_each(|class| held.add(class));
        Self {
            held,
            answered,
            // Each turn ends a request or interrupts it; those that begin one are not resumed.
            own: (answered + preemptions).saturating_sub(resumed + stolen),
            stolen,
            resumed,
            preemptions,
            renewals: 0,
            cpu_ns: tally.total(|class| class.cpu_ns()),
            queued: None,
        }
    }
}

/// What the server has done for one class since it started.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClassStats {
    /// As declared; the last one is `unknown`.
    pub name: String,
    /// Requests taken in, those refused as shed among them: accepted − answered − shed − handed back of them wait or run, or were abandoned.
    pub accepted: u64,
    /// Requests run to their end.
    pub answered: u64,
    /// Requests refused as shed, the sum of `sheds`.
    pub shed: u64,
    /// The same by their cause.
    pub sheds: ShedStats,
    /// Requests that a worker took up and that have no answer yet: those that run, and those that were interrupted.
    pub running: u64,
    /// Times from arrival to the first slice, of the requests that a worker took up.
    pub wait: TimeHistogram,
    /// What handlers took, of answered requests.
    pub service: TimeHistogram,
    /// Requests handed back to a rack's switch, not begun.
    pub handed_back: u64,
    /// Time the handlers took in all, ns.
    pub cpu_ns: u64,
    /// How often the policy asked a running request to yield.
    pub preemptions_asked: u64,
    /// How often a request was interrupted.
    pub preemptions: u64,
    /// How often a slice ended and the request went on at once, since nothing waited that should run instead: preemptions avoided.
    pub renewals: u64,
    /// How often an interrupted request went on.
    pub resumed: u64,
    /// Requests that went on for more than 20 µs after they were asked to yield, and ended without: their handler met no probe
    /// meanwhile. The server names a class once, on standard error, where this is all that its requests do.
    pub overruns: u64,
    /// The longest that such a request went on for, by its thread's own time, ns; 0 where none did.
    pub longest_gap_ns: u64,
    /// Interrupted requests that their own threads went on with, since a worker slept in the kernel meanwhile: it may have waited for a lock of theirs.
    pub rescued: u64,
    /// Requests that could have been interrupted and ran to their end, since there was no thread to lend them its state
    /// ([`Builder::most_lent_threads`](crate::Builder::most_lent_threads), or a limit of the system's).
    pub without_thread: u64,
    /// Requests that were asked to yield and could not at once.
    pub held: HeldSections,
    /// What its handlers said by the feedback calls.
    pub feedback: FeedbackStats,
}

/// Requests of a class that were refused as shed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShedStats {
    /// The queue of the class was full.
    pub queue_full: u64,
    /// No buffer was left to keep it in, or those left are kept from the class.
    pub no_buffer: u64,
    /// There was no stack to run it on.
    pub no_stack: u64,
    /// Clones that could not start at once, behind a rack's switch.
    pub clones: u64,
}

impl ShedStats {
    fn add(&mut self, tally: &ClassTally) {
        let of = |cause: ShedCause| tally.sheds[cause as usize].get();
        self.queue_full += of(ShedCause::QueueFull);
        self.no_buffer += of(ShedCause::NoBuffer);
        self.no_stack += of(ShedCause::NoStack);
        self.clones += of(ShedCause::Clone);
    }

    fn total(&self) -> u64 {
        self.queue_full + self.no_buffer + self.no_stack + self.clones
    }
}

/// What handlers of a class said by [`Call::feedback_start`](crate::Call::feedback_start) and [`feedback_finished`](crate::Call::feedback_finished), whether
/// the server goes by it or not. Parts that nest are no misuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedbackStats {
    /// Requests that began a long part.
    pub said_long: u64,
    /// The same, where the class's hints say that it is short ([`Shape::hinted_shorts`](headway_policy::Shape::hinted_shorts)): hint or handler is wrong. A policy
    /// that goes by hints, such as `synergy`, does not interrupt these requests.
    pub from_short: u64,
    /// Long parts that were never ended; the end of their request ended them. Parts that a panic left open do not count.
    pub unended: u64,
    /// Ends without a beginning; they changed nothing.
    pub unbegun: u64,
}

impl FeedbackStats {
    /// What was counted since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            said_long: self.said_long - before.said_long,
            from_short: self.from_short - before.from_short,
            unended: self.unended - before.unended,
            unbegun: self.unbegun - before.unbegun,
        }
    }

    /// Whether a call was misused: one of the counts but `said_long` is above 0.
    #[must_use]
    pub fn is_misused(&self) -> bool {
        self.from_short + self.unended + self.unbegun > 0
    }

    fn add(&mut self, tally: &FeedbackTally, is_short: bool) {
        let said_long = tally.said_long.get();
        self.said_long += said_long;
        self.from_short += if is_short { said_long } else { 0 };
        self.unended += tally.unended.get();
        self.unbegun += tally.unbegun.get();
    }
}

impl ClassStats {
    /// Requests that wait or run.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.accepted
            .saturating_sub(self.answered + self.shed + self.handed_back)
    }

    /// Requests that wait and that no worker took up yet.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.pending().saturating_sub(self.running)
    }

    /// Mean time a handler took, ns; `None` before the first.
    #[must_use]
    pub fn mean_cpu_ns(&self) -> Option<f64> {
        (self.answered > 0).then(|| self.cpu_ns as f64 / self.answered as f64)
    }
}

impl Stats {
    /// Responses that left the server, whatever their status. A client that loses none counts as many as answered.
    #[must_use]
    pub fn responses(&self) -> u64 {
        let written = self.answered + self.shed + self.too_large + self.refused_draining;
        written.saturating_sub(self.unsent)
    }

    /// Tells threads apart: the first `workers` tallies are theirs, then come those of the dispatchers, or of a monitor.
    pub(crate) fn tell_apart(
        &mut self,
        tallies: &[Arc<Tally>],
        workers: usize,
        dispatchers: usize,
    ) {
        let (workers, others) = tallies.split_at(workers);
        self.workers = workers
            .iter()
            .map(|tally| WorkerStats {
                renewals: tally.total(|class| class.renewals.get()),
                ..WorkerStats::of(tally)
            })
            .collect();
        self.dispatchers = others[..dispatchers]
            .iter()
            .map(|tally| WorkerStats::of(tally))
            .collect();
        let watched = others.iter().flat_map(|tally| &tally.renewals);
        for (worker, renewals) in self.workers.iter_mut().zip(watched) {
            worker.renewals += renewals.get();
        }
    }

    /// Adds one thread's counts. `classes` must be as many as the thread's; those in `shorts` are short by their hints.
    pub(crate) fn add(&mut self, tally: &Tally, shorts: &BitSet) {
        self.received += tally.received.get();
        self.malformed += tally.malformed.get();
        self.too_large += tally.too_large.get();
        self.refused_draining += tally.refused_draining.get();
        self.abandoned += tally.abandoned.get();
        self.unsent += tally.unsent.get();
        self.panics += tally.panics.get();
        self.stolen += tally.stolen.get();
        for (stats, tally) in self.classes.iter_mut().zip(&tally.held) {
            stats.held.add(tally);
        }
        for (class, (stats, tally)) in self.classes.iter_mut().zip(&tally.classes).enumerate() {
            stats.feedback.add(&tally.feedback, shorts.contains(class));
            stats.accepted += tally.accepted.get();
            stats.answered += tally.answered.get();
            stats.sheds.add(tally);
            stats.wait.add(&tally.wait);
            stats.service.add(&tally.service);
            stats.handed_back += tally.handed_back.get();
            stats.cpu_ns += tally.cpu_ns();
            stats.preemptions_asked += tally.preemptions_asked.get();
            stats.preemptions += tally.preemptions.get();
            stats.overruns += tally.overruns.get();
            stats.longest_gap_ns = stats.longest_gap_ns.max(tally.longest_gap_ns.get());
            stats.renewals += tally.renewals.get();
            stats.resumed += tally.resumed.get();
            self.preemptions_asked += tally.preemptions_asked.get();
            self.preemptions += tally.preemptions.get();
            self.answered += tally.answered.get();
            self.handed_back += tally.handed_back.get();
        }
    }

    /// What follows from the counts of all threads.
    pub(crate) fn sum_up(&mut self) {
        for stats in &mut self.classes {
            stats.shed = stats.sheds.total();
            self.shed += stats.shed;
            // One without a stack was taken up.
            let over = stats.answered + stats.sheds.no_stack;
            stats.running = stats.wait.count().saturating_sub(over);
        }
    }
}
