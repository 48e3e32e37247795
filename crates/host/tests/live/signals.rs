//! Threads in user space that compute without probes: the daemon's signal takes their kthread off its core.

use crate::stage::{Open, Stage, cores_of, may, report, turn, until};
use headway_host::client::{ClientOptions, HostClient};
use headway_kthread::{AtSignal, CoreSource};
use headway_threads::{
    JoinHandle, Migration, Runtime, STOP_AT_SIGNAL, current_kthread, suspend_at_signal,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// An affine map of 64-bit words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Affine {
    factor: u64,
    summand: u64,
}

const STEP: Affine = Affine {
    factor: 6_364_136_223_846_793_005,
    summand: 1_442_695_040_888_963_407,
};

impl Affine {
    fn of(self, word: u64) -> u64 {
        word.wrapping_mul(self.factor).wrapping_add(self.summand)
    }

    /// The map that does this `times` times.
    fn repeated(self, mut times: u64) -> Affine {
        let (mut all, mut square) = (
            Affine {
                factor: 1,
                summand: 0,
            },
            self,
        );
        while times > 0 {
            if times % 2 == 1 {
                all = square.after(all);
            }
            square = square.after(square);
            times /= 2;
        }
        all
    }

    fn after(self, first: Affine) -> Affine {
        Affine {
            factor: self.factor.wrapping_mul(first.factor),
            summand: self.of(first.summand),
        }
    }
}

/// What a thread computed: a function of the number of its turns, if no interruption changed a register of it.
#[derive(Debug)]
struct Computed {
    turns: u64,
    word: u64,
    sum: f64,
}

impl Computed {
    fn check(&self) {
        assert_eq!(self.word, STEP.repeated(self.turns).of(0), "{self:?}");
        assert_eq!(self.sum, self.turns as f64, "{self:?}");
    }
}

/// A runtime on granted cores, whose kthreads leave them by signal.
pub(crate) fn runtime_of(
    kthreads: usize,
    socket: &Path,
    at_signal: AtSignal,
) -> (Arc<HostClient>, Runtime) {
    let options = ClientOptions {
        at_signal,
        ..ClientOptions::new("web", kthreads)
    };
    let client = Arc::new(HostClient::register(socket, &options).unwrap());
    #[expect(unsafe_code, reason = "the threads may change kthreads")]
    // SAFETY: the threads use no thread-local variable of `std`.
    let migration = unsafe { Migration::allow() };
    let source: Arc<HostClient> = Arc::clone(&client);
    let runtime = Runtime::builder().source(source, migration);
    (client, runtime.start().unwrap())
}

/// An application whose threads compute until it is dropped or [ends](Computing::end).
struct Computing {
    client: Arc<HostClient>,
    /// The turns of the thread that each kthread runs.
    turns: Arc<[AtomicU64]>,
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Computed>>,
    runtime: Option<Runtime>,
}

impl Computing {
    /// One thread for each kthread. No thread meets a scheduling point.
    fn start(kthreads: usize, socket: &Path) -> Computing {
        let (client, runtime) = runtime_of(kthreads, socket, STOP_AT_SIGNAL);
        let turns: Arc<[AtomicU64]> = (0..kthreads).map(|_| AtomicU64::new(0)).collect();
        let done = Arc::new(AtomicBool::new(false));
        let threads = (0..kthreads).map(|_| {
            let (turns, done) = (Arc::clone(&turns), Arc::clone(&done));
            runtime.spawn(move || {
                let kthread = current_kthread().expect("a thread of the runtime");
                compute(&turns[kthread], &done)
            })
        });
        Computing {
            threads: threads.collect(),
            client,
            turns,
            done,
            runtime: Some(runtime),
        }
    }

    fn turns(&self) -> Vec<u64> {
        let turns = self.turns.iter();
        turns.map(|turns| turns.load(Ordering::Acquire)).collect()
    }

    /// The kthreads that a signal stopped.
    fn stopped(&self) -> Vec<usize> {
        let kthreads = 0..self.turns.len();
        kthreads
            .filter(|&kthread| self.client.line(kthread).is_interrupted())
            .collect()
    }

    fn end(mut self) -> Vec<Computed> {
        self.done.store(true, Ordering::Release);
        let threads = self.threads.drain(..);
        threads
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    }
}

impl Drop for Computing {
    /// The runtime waits for its kthreads, and these for the threads that compute.
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.runtime.take();
    }
}

fn compute(shown: &AtomicU64, done: &AtomicBool) -> Computed {
    let mut all = Computed {
        turns: 0,
        word: 0,
        sum: 0.0,
    };
    while !done.load(Ordering::Relaxed) {
        all.turns += 1;
        all.word = STEP.of(all.word);
        all.sum += 1.0;
        shown.store(all.turns, Ordering::Release);
    }
    all
}

/// An application with one kthread, which computes while the test wants it to.
struct OnDemand {
    client: HostClient,
    is_wanted: AtomicBool,
    runs: AtomicBool,
    ended: AtomicBool,
}

impl OnDemand {
    fn register(name: &str, socket: &Path) -> OnDemand {
        OnDemand {
            client: HostClient::register(socket, &ClientOptions::new(name, 1)).unwrap(),
            is_wanted: AtomicBool::new(false),
            runs: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    fn run(&self) {
        let mut grant = self.client.enter(0);
        while !self.ended.load(Ordering::Acquire) {
            while self.is_wanted.load(Ordering::Acquire) {
                self.runs.store(true, Ordering::Release);
            }
            self.runs.store(false, Ordering::Release);
            let mut finds_nothing = || !self.is_wanted.load(Ordering::Acquire);
            grant = self.client.leave(0, grant, &mut finds_nothing);
        }
        self.client.exit();
    }

    fn want(&self) {
        self.is_wanted.store(true, Ordering::Release);
        self.client.notify();
    }
}

/// Ends the application, also when the test fails.
struct EndOnDrop<'a>(&'a OnDemand);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_wanted.store(false, Ordering::Release);
        self.0.ended.store(true, Ordering::Release);
        self.0.client.close();
    }
}

/// The policy moves nobody away, so the second application gets a core only where the signal stops a kthread in the middle of a thread.
#[test]
fn threads_without_probes_leave_their_core_by_signal() {
    let _turn = turn();
    if !may("threads_without_probes_leave_their_core_by_signal") {
        return;
    }
    let stage = Stage::new();
    let before = Open::now();
    let daemon = stage.daemon_of("shenango,evict=100s");
    let cores = daemon.cores().dealt.len();
    let web = Computing::start(cores, &stage.socket());
    let has_every_core = |what| {
        until(what, || {
            cores_of(&report(&daemon), "web") == Some(cores) && !web.turns().contains(&0)
        });
    };
    has_every_core("it has every core");
    let kv = OnDemand::register("kv", &stage.socket());
    thread::scope(|scope| {
        scope.spawn(|| kv.run());
        let _end = EndOnDrop(&kv);
        for _ in 0..20 {
            kv.want();
            until("the other application runs", || {
                kv.runs.load(Ordering::Acquire)
            });
            until("one kthread is stopped", || web.stopped().len() == 1);
            assert_eq!(cores_of(&report(&daemon), "web"), Some(cores - 1));
            let stopped = web.stopped()[0];
            let parked = web.turns();
            until("the others go on", || {
                let mut pairs = parked.iter().zip(web.turns()).enumerate();
                pairs.all(|(kthread, (before, now))| kthread == stopped || now > *before)
            });
            assert_eq!(web.turns()[stopped], parked[stopped], "it is parked");
            kv.is_wanted.store(false, Ordering::Release);
            has_every_core("it has every core again");
            until("the thread goes on", || {
                web.turns()[stopped] > parked[stopped]
            });
        }
    });
    let told = report(&daemon);
    let counts = told.apps.iter().find(|app| app.name == "web").unwrap();
    assert!(
        counts.revocations >= 20 && counts.evictions == 0,
        "{counts:?}"
    );
    drop(kv);
    for computed in web.end() {
        computed.check();
    }
    until("both are gone", || report(&daemon).apps.is_empty());
    daemon.stop();
    until("nothing stays open or mapped", || {
        Open::now().is_within(before)
    });
}

/// A thread that computes until it is told to end.
struct ComputingThread {
    turns: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<Computed>>,
}

impl ComputingThread {
    fn spawn(runtime: &Runtime) -> ComputingThread {
        let (turns, done) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (shown, told) = (Arc::clone(&turns), Arc::clone(&done));
        ComputingThread {
            turns,
            done,
            thread: Some(runtime.spawn(move || compute(&shown, &told))),
        }
    }

    fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    fn end(mut self) -> Computed {
        self.done.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it ends once");
        thread.join().expect("no panic")
    }
}

impl Drop for ComputingThread {
    /// Its runtime would wait for it.
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
    }
}

fn all_turns(threads: &[ComputingThread]) -> Vec<u64> {
    threads.iter().map(ComputingThread::turns).collect()
}

/// The only thread that makes no turn while all others do.
fn suspended_among(threads: &[ComputingThread]) -> usize {
    let before = all_turns(threads);
    let still = || {
        let pairs = before.iter().zip(all_turns(threads)).enumerate();
        pairs
            .filter(|(_, (before, now))| now == *before)
            .map(|(thread, _)| thread)
            .collect::<Vec<_>>()
    };
    until("all threads but one go on", || still().len() == 1);
    still()[0]
}

/// Where threads tolerate it, the signal suspends the thread itself: another kthread continues it, while its own has no core.
#[test]
fn threads_suspended_by_signal_go_on_in_other_kthreads() {
    const TEST: &str = "threads_suspended_by_signal_go_on_in_other_kthreads";
    let _turn = turn();
    if !may(TEST) {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon_of("shenango,evict=100s");
    let cores = daemon.cores().dealt.len();
    if cores < 2 {
        println!("SKIPPED {TEST}: another kthread needs a second core");
        return daemon.stop();
    }
    #[expect(unsafe_code, reason = "the threads may be suspended anywhere")]
    // SAFETY: the threads compute on their own memory.
    let at_signal = unsafe { suspend_at_signal() };
    let (client, runtime) = runtime_of(cores, &stage.socket(), at_signal);
    let mut threads: Vec<_> = (0..cores)
        .map(|_| ComputingThread::spawn(&runtime))
        .collect();
    let kv = OnDemand::register("kv", &stage.socket());
    thread::scope(|scope| {
        scope.spawn(|| kv.run());
        let _end = EndOnDrop(&kv);
        for _ in 0..20 {
            let before = all_turns(&threads);
            until("every thread has a core", || {
                let mut pairs = before.iter().zip(all_turns(&threads));
                cores_of(&report(&daemon), "web") == Some(cores)
                    && pairs.all(|(before, now)| now > *before)
            });
            kv.want();
            until("the other application runs", || {
                kv.runs.load(Ordering::Acquire)
            });
            let suspended = suspended_among(&threads);
            let stopped = (0..cores).any(|kthread| client.line(kthread).is_interrupted());
            assert!(!stopped, "no kthread is stopped in the middle of a thread");
            // Another thread ends. Its kthread steals the suspended one.
            let suspended = threads.remove(suspended);
            let before = suspended.turns();
            threads.pop().expect("two cores").end().check();
            until("the suspended thread goes on", || {
                suspended.turns() > before
            });
            threads.extend([suspended, ComputingThread::spawn(&runtime)]);
            assert!(kv.runs.load(Ordering::Acquire));
            assert_eq!(cores_of(&report(&daemon), "web"), Some(cores - 1));
            kv.is_wanted.store(false, Ordering::Release);
        }
    });
    for thread in threads {
        thread.end().check();
    }
    drop(kv);
    drop(runtime);
    drop(client);
    until("both are gone", || report(&daemon).apps.is_empty());
    daemon.stop();
}
