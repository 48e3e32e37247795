//! The world's scheduler: threads of the engines are threads of the system, of which one runs at a time.
//!
//! Each thread has a virtual core and so a time of its own, which advances where the thread reads the clock, works, polls or sends. Whoever is
//! furthest behind runs next. Nothing else decides who runs, so that a seed repeats a run to the bit: the times that things take are drawn
//! from the seed, and so is who wakes first.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use headway_sync::world::{Scheduler, ThreadTicket};
use nix::sys::signal::{Signal, raise};
use nix::unistd::gettid;

use crate::random::Random;

/// What things take on virtual cores, at most; each time is drawn anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreCosts {
    /// A reading of the clock. A thread that waits reads it every few turns, so this stands for those turns too, ns.
    pub(crate) read_ns: u64,
    /// From a notification until the thread runs, ns.
    pub(crate) wake_ns: u64,
    /// A poll or a send, ns.
    pub(crate) packet_ns: u64,
    /// More turns than this mean that threads keep each other busy without getting on.
    pub(crate) most_turns: u64,
}

impl CoreCosts {
    /// About those of this project's test machines.
    pub(crate) const USUAL: Self = Self {
        read_ns: 600,
        wake_ns: 20_000,
        packet_ns: 300,
        most_turns: 4_000_000,
    };
    /// As good as none, to hold the engines against an ideal simulation.
    pub(crate) const TINY: Self = Self {
        read_ns: 20,
        wake_ns: 50,
        packet_ns: 20,
        most_turns: 40_000_000,
    };
}

/// What happens to virtual cores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoreFaults {
    /// In how many of a million turns the core stands still.
    pub(crate) stalls_ppm: u64,
    /// For how long at most, ns.
    pub(crate) stall_ns: u64,
    /// By how much a reading of the clock may be ahead of that of another core, ns.
    pub(crate) skew_ns: u64,
    /// At one in so many [steps](headway_sync::world::step) the core stands still for up to [`LONGEST_PAUSE_NS`]; at none where it is 0.
    pub(crate) pauses_in: u64,
}

/// How long a core stands still between two accesses to memory that threads share, ns: longer than a wake takes.
const LONGEST_PAUSE_NS: u64 = 60_000;

/// How long a signal is on its way at most, ns.
const SIGNAL_NS: u64 = 5_000;

/// Grows with every turn of a world, for a watch outside of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorldProgress(Arc<AtomicU64>);

impl WorldProgress {
    pub(crate) fn turns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What others know of a world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// Which world it is, and how to repeat it.
    pub(crate) label: String,
    pub(crate) progress: WorldProgress,
}

/// A world in virtual time.
pub(crate) struct World {
    state: Mutex<State>,
    /// Who runs.
    running: AtomicUsize,
    /// Signals that were sent and not met.
    signals: AtomicUsize,
    costs: CoreCosts,
    faults: CoreFaults,
    watched: Watched,
}

struct State {
    random: Random,
    threads: Vec<VirtualThread>,
    turns: u64,
    /// Times in which a core stood still: from when to when, ns.
    stalls: Vec<(u64, u64)>,
}

struct VirtualThread {
    name: String,
    now_ns: u64,
    /// For how long it has run, ns: without its waits and the times in which its core stood still.
    own_ns: u64,
    wait: Option<Wait>,
    timed_out: bool,
    ended: bool,
    /// Known once the thread of the system runs.
    system: Option<SystemThread>,
    /// When the signal that was sent to it is due, ns.
    signal_ns: Option<u64>,
}

struct SystemThread {
    thread: Thread,
    /// The kernel's number.
    id: i32,
}

impl SystemThread {
    fn current() -> Self {
        Self {
            thread: thread::current(),
            id: gettid().as_raw(),
        }
    }
}

struct Wait {
    place: usize,
    /// When to wake all the same, ns.
    until_ns: Option<u64>,
}

impl VirtualThread {
    fn new(name: &str, now_ns: u64) -> Self {
        Self {
            name: name.to_owned(),
            now_ns,
            own_ns: 0,
            wait: None,
            timed_out: false,
            ended: false,
            system: None,
            signal_ns: None,
        }
    }

    /// When it can run, ns; never where it waits for another.
    fn ready_ns(&self) -> Option<u64> {
        match &self.wait {
            _ if self.ended => None,
            None => Some(self.now_ns),
            Some(wait) => wait.until_ns.map(|until_ns| until_ns.max(self.now_ns)),
        }
    }
}

thread_local! {
    static HERE: RefCell<Option<(Arc<World>, usize)>> = const { RefCell::new(None) };
}

/// The world that the calling thread belongs to, and its place there.
#[inline(never)] // The thread may be another at the next call.
fn here() -> Option<(Arc<World>, usize)> {
    HERE.with_borrow(Clone::clone)
}

/// The time of the calling thread's core; for [`Clock::given`](headway_machine::Clock::given).
pub(crate) fn read_clock_ns() -> u64 {
    let now_ns = here().map_or(0, |(world, me)| {
        let cost_ns = 5 + world.state().random.below(world.costs.read_ns);
        world.advance(me, cost_ns)
    });
    meet_signal();
    now_ns
}

/// If a signal that was sent to the calling thread is due, the thread sends it to itself: the signal's own handler runs here, and may have the caller go on
/// in another thread.
pub(crate) fn meet_signal() {
    if let Some((world, me)) = here()
        && world.signals.load(Ordering::Relaxed) > 0
        && world.takes_signal(me)
    {
        drop(world);
        raise(Signal::SIGURG).expect("a thread may send a signal to itself");
    }
}

/// The calling thread works for `ns`; the time afterwards.
pub(crate) fn spend(ns: u64) -> u64 {
    here().map_or(0, |(world, me)| world.advance(me, ns))
}

/// The time of the calling thread's core, which does not advance.
pub(crate) fn now_ns() -> u64 {
    here().map_or(0, |(world, me)| world.state().threads[me].now_ns)
}

/// The place of the calling thread among those of its world.
pub(crate) fn this_thread() -> usize {
    here().map_or(0, |(_, me)| me)
}

/// The calling thread polls or sends; the time afterwards.
pub(crate) fn spend_on_packet() -> u64 {
    here().map_or(0, |(world, me)| {
        let cost_ns = 10 + world.state().random.below(world.costs.packet_ns);
        world.advance(me, cost_ns)
    })
}

/// A number below `bound`, drawn from the seed.
pub(crate) fn draw(bound: u64) -> u64 {
    here().map_or(0, |(world, _)| world.state().random.below(bound))
}

impl World {
    /// Runs `body` as the first thread of a new world. Threads that it starts belong to it as well; they have ended when `body` returns.
    pub(crate) fn run<T>(
        watched: Watched,
        random: Random,
        costs: CoreCosts,
        faults: CoreFaults,
        body: impl FnOnce() -> T,
    ) -> (T, Past) {
        let mut first = VirtualThread::new("main", 1_000_000_000);
        first.system = Some(SystemThread::current());
        let world = Arc::new(Self {
            state: Mutex::new(State {
                random,
                threads: vec![first],
                turns: 0,
                stalls: Vec::new(),
            }),
            running: AtomicUsize::new(0),
            signals: AtomicUsize::new(0),
            costs,
            faults,
            watched,
        });
        HERE.set(Some((Arc::clone(&world), 0)));
        headway_sync::world::enter(Some(Arc::clone(&world) as Arc<dyn Scheduler>));
        let result = body();
        headway_sync::world::enter(None);
        HERE.set(None);
        let mut state = world.state();
        let past = Past {
            turns: state.turns,
            workers: (0..state.threads.len())
                .filter(|&thread| state.threads[thread].name.starts_with("hw-worker-"))
                .collect(),
            stalls: std::mem::take(&mut state.stalls),
            left: state.threads[1..]
                .iter()
                .filter(|thread| !thread.ended)
                .map(|thread| thread.name.clone())
                .collect(),
        };
        drop(state);
        (result, past)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's core gets on by `ns`, and the thread goes on once no other is behind it.
    fn advance(&self, me: usize, ns: u64) -> u64 {
        let mut state = self.state();
        state.turns += 1;
        self.watched.progress.0.fetch_add(1, Ordering::Relaxed);
        if state.turns > self.costs.most_turns {
            self.fail("the threads keep each other busy and do not get on");
        }
        let stalls =
            self.faults.stalls_ppm > 0 && state.random.below(1_000_000) < self.faults.stalls_ppm;
        let mut end_ns = state.threads[me].now_ns + ns;
        if stalls {
            let stall_ns = state.random.below(self.faults.stall_ns) + 1;
            state.stalls.push((end_ns, end_ns + stall_ns));
            end_ns += stall_ns;
        }
        state.threads[me].now_ns = end_ns;
        state.threads[me].own_ns += ns;
        let skew_ns = self.faults.skew_ns;
        let others_ns = state
            .threads
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != me)
            .filter_map(|(_, thread)| thread.ready_ns())
            .min();
        if others_ns.is_none_or(|others_ns| end_ns <= others_ns + skew_ns) {
            return end_ns;
        }
        self.give_way(state, me);
        self.state().threads[me].now_ns
    }

    /// The world cannot go on, and neither can the process: threads of the system wait for their turns.
    fn fail(&self, why: &str) -> ! {
        println!("{}\n  {why}", self.watched.label);
        // By another thread: `exit` drops its caller's thread locals, and those of a thread of fibers wait for their turn in this world.
        thread::spawn(|| std::process::exit(1));
        loop {
            thread::park();
        }
    }

    /// Lets who is furthest behind run, and waits until that is the caller again.
    fn give_way(&self, mut state: MutexGuard<'_, State>, me: usize) {
        let Some(next) = state.next() else {
            self.fail(&state.all_asleep());
        };
        if next == me {
            return;
        }
        self.hand_over(state, next);
        while self.running.load(Ordering::Acquire) != me {
            thread::park();
        }
    }

    /// Whether a signal to this thread is due, which is taken back.
    fn takes_signal(&self, me: usize) -> bool {
        let thread = &mut self.state().threads[me];
        let is_due = thread
            .signal_ns
            .is_some_and(|due_ns| due_ns <= thread.now_ns);
        if is_due {
            thread.signal_ns = None;
            self.signals.fetch_sub(1, Ordering::Relaxed);
        }
        is_due
    }

    fn hand_over(&self, state: MutexGuard<'_, State>, next: usize) {
        let system = state.threads[next].system.as_ref();
        let system = system.map(|system| system.thread.clone());
        self.running.store(next, Ordering::Release);
        drop(state);
        // A thread that has not come to life looks by itself when it does.
        if let Some(system) = system {
            system.unpark();
        }
    }
}

impl State {
    /// Who runs next. A wait that is over by its time is taken back.
    fn next(&mut self) -> Option<usize> {
        let ready = self.threads.iter().enumerate();
        let ready = ready.filter_map(|(index, thread)| Some((thread.ready_ns()?, index)));
        let (ready_ns, next) = ready.min()?;
        let thread = &mut self.threads[next];
        thread.timed_out = thread.wait.take().is_some();
        thread.now_ns = ready_ns;
        Some(next)
    }

    /// Nobody is left to wake one of those who sleep.
    fn all_asleep(&self) -> String {
        let asleep = self.threads.iter().filter(|thread| !thread.ended);
        let names: Vec<&str> = asleep.map(|thread| thread.name.as_str()).collect();
        format!(
            "every thread sleeps, and nobody is left to wake one: {}",
            names.join(", ")
        )
    }
}

impl Scheduler for World {
    fn wait(&self, place: usize, timeout_ns: Option<u64>) -> bool {
        let (_, me) = here().expect("a thread of this world");
        let mut state = self.state();
        let now_ns = state.threads[me].now_ns;
        state.threads[me].timed_out = false;
        state.threads[me].wait = Some(Wait {
            place,
            until_ns: timeout_ns.map(|timeout_ns| now_ns.saturating_add(timeout_ns)),
        });
        self.give_way(state, me);
        let mut state = self.state();
        state.threads[me].wait = None;
        !state.threads[me].timed_out
    }

    fn notify(&self, place: usize, all: bool) {
        let (_, me) = here().expect("a thread of this world");
        let mut state = self.state();
        let State {
            random, threads, ..
        } = &mut *state;
        let now_ns = threads[me].now_ns;
        let waits =
            |thread: &VirtualThread| thread.wait.as_ref().is_some_and(|wait| wait.place == place);
        let mut sleepers: Vec<usize> = (0..threads.len())
            .filter(|&index| waits(&threads[index]))
            .collect();
        random.shuffle(&mut sleepers);
        if !all {
            sleepers.truncate(1);
        }
        for sleeper in sleepers {
            let thread = &mut threads[sleeper];
            thread.wait = None;
            thread.timed_out = false;
            // An idle core takes a while to wake.
            thread.now_ns = thread.now_ns.max(now_ns) + random.below(self.costs.wake_ns);
        }
    }

    fn spawn(&self, name: &str) -> ThreadTicket {
        let (_, me) = here().expect("a thread of this world");
        let mut state = self.state();
        let now_ns = state.threads[me].now_ns + state.random.below(50_000);
        state.threads.push(VirtualThread::new(name, now_ns));
        ThreadTicket(state.threads.len() - 1)
    }

    fn begin(self: Arc<Self>, ticket: ThreadTicket) {
        let me = ticket.0;
        HERE.set(Some((Arc::clone(&self), me)));
        self.state().threads[me].system = Some(SystemThread::current());
        while self.running.load(Ordering::Acquire) != me {
            thread::park();
        }
    }

    fn this_thread(&self) -> ThreadTicket {
        let (_, me) = here().expect("a thread of this world");
        ThreadTicket(me)
    }

    fn own_ns(&self, thread: ThreadTicket) -> u64 {
        self.state().threads[thread.0].own_ns
    }

    fn step(&self) {
        if self.faults.pauses_in == 0 {
            return;
        }
        let (_, me) = here().expect("a thread of this world");
        let mut state = self.state();
        if !state.random.once_in(self.faults.pauses_in) {
            return;
        }
        let pause_ns = state.random.below(LONGEST_PAUSE_NS) + 1;
        let from_ns = state.threads[me].now_ns;
        state.stalls.push((from_ns, from_ns + pause_ns));
        state.threads[me].now_ns += pause_ns;
        drop(state);
        self.advance(me, 0);
    }

    fn signal(&self, thread: i32) {
        let (_, me) = here().expect("a thread of this world");
        let mut state = self.state();
        let State {
            random, threads, ..
        } = &mut *state;
        let due_ns = threads[me].now_ns + 200 + random.below(SIGNAL_NS);
        let is_it = |virtual_thread: &&mut VirtualThread| {
            let system = virtual_thread.system.as_ref();
            !virtual_thread.ended && system.is_some_and(|system| system.id == thread)
        };
        // Signals that are not met yet count as one, as the system's do.
        if let Some(receiver) = threads.iter_mut().find(is_it)
            && receiver.signal_ns.is_none()
        {
            receiver.signal_ns = Some(due_ns);
            self.signals.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn end(&self) {
        let Some((_, me)) = HERE.take() else {
            return;
        };
        let mut state = self.state();
        state.threads[me].ended = true;
        match state.next() {
            Some(next) => self.hand_over(state, next),
            None if state.threads.iter().all(|thread| thread.ended) => {}
            None => self.fail(&state.all_asleep()),
        }
    }
}

/// What is left of a world that has ended.
pub(crate) struct Past {
    pub(crate) turns: u64,
    /// Times in which a core stood still, ns.
    pub(crate) stalls: Vec<(u64, u64)>,
    /// The workers' places among the threads.
    pub(crate) workers: Vec<usize>,
    /// Threads that did not end.
    pub(crate) left: Vec<String>,
}

impl Past {
    /// Whether a core stood still for some of this time.
    pub(crate) fn stalled(&self, within: &Range<u64>) -> bool {
        let mut stalls = self.stalls.iter();
        stalls.any(|&(from_ns, to_ns)| from_ns.max(within.start) < to_ns.min(within.end))
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;

    /// Set where the process is the one that ends.
    const ENDS: &str = "HEADWAY_WORLD_ENDS";

    /// What a thread has until its end, and then waits for others of its world, as a thread of fibers does.
    struct MeetsTheWorld;

    impl Drop for MeetsTheWorld {
        fn drop(&mut self) {
            spend(1);
        }
    }

    thread_local! {
        static AT_THE_END: MeetsTheWorld = const { MeetsTheWorld };
    }

    #[test]
    fn a_world_that_cannot_go_on_ends_its_process() {
        if env::var_os(ENDS).is_some() {
            let costs = CoreCosts {
                most_turns: 10,
                ..CoreCosts::USUAL
            };
            let watched = Watched {
                label: "seed 7".to_owned(),
                ..Watched::default()
            };
            World::run(
                watched,
                Random::new(7),
                costs,
                CoreFaults::default(),
                || {
                    AT_THE_END.with(|_| ());
                    while spend(1) > 0 {}
                },
            );
        }
        let this_test = "scheduler::tests::a_world_that_cannot_go_on_ends_its_process";
        let ended = Command::new("timeout")
            .arg("60")
            .arg(env::current_exe().unwrap())
            .args(["--exact", this_test, "--nocapture"])
            .env(ENDS, "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(1), "{told}");
        assert!(
            told.contains("seed 7\n  the threads keep each other busy"),
            "{told}"
        );
    }
}
