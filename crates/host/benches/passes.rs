//! The daemon's time per decision, its core moves per second, and a grant and a revocation beside the bare calls of the kernel.
//!
//! The first two have applications that exist in memory only, so that they count the daemon's own work and its futex calls. The third has threads.

#![expect(unsafe_code, reason = "the bare calls beside the engine")]

use criterion::{Criterion, criterion_group};
use headway_host::arbiter::{Arbiter, Newcomer, NewcomerWork};
use headway_host::cgroup::{Confiner, ProgramGroups};
use headway_host::memory::SharedLines;
use headway_host::topology::HostCores;
use headway_host::{HostPeer, PeerProcess};
use headway_machine::thread::{pin_current, stay_responsive};
use headway_machine::{Clock, Topology};
use headway_policy::host::{AppKind, AppShape, HostShape, HostTopology, Shenango, ShenangoRules};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

/// Tells a process of a bench how many threads it has.
const THREADS: &str = "HEADWAY_BENCH_THREADS";

/// A process without threads: it skips the kernel's calls that move them.
struct NoThreads;

impl HostPeer for NoThreads {
    fn owns(&self, _tid: u32) -> bool {
        true
    }
    fn pin(&self, _tid: u32, _cores: &CpuSet) -> bool {
        true
    }
    fn may_run_on(&self, _tid: u32, _core: usize) -> bool {
        true
    }
    fn interrupt(&self, _tid: u32) -> bool {
        true
    }
    fn demote(&self, _tid: u32, _demoted: bool) {}
    fn pin_all(&mut self, _cores: &CpuSet) -> usize {
        0
    }
    fn pin_known(&mut self, _cores: &CpuSet) {}
    fn let_all_go(&mut self, _home: &CpuSet) {}
    fn cpu_ns(&self) -> u64 {
        0
    }
}

struct FakeHost {
    arbiter: Arbiter<Shenango, NoThreads>,
    apps: Vec<(SharedLines, OwnedFd)>,
    now_ns: AtomicU64,
}

impl FakeHost {
    /// Half of the applications serve, half are batch; each has a kthread for each core.
    fn new(cores: usize, apps: usize) -> Self {
        let vacant = HostShape::vacant(HostTopology::flat(cores), apps, 1);
        let allocator = Shenango::new(&vacant, ShenangoRules::default());
        let host = HostCores {
            dealt: (0..cores).collect(),
            siblings: HostTopology::flat(cores),
            own: None,
            shared: cores,
        };
        let mut arbiter = Arbiter::new(allocator, host, false);
        let mut lines = Vec::new();
        for id in 0..apps {
            let (memory, own) = SharedLines::create(cores).expect("memory");
            for kthread in 0..cores {
                own.line(kthread).set_tid((1 + id * cores + kthread) as u32);
            }
            let newcomer = Newcomer {
                id: id as u64,
                name: format!("app-{id}"),
                shape: AppShape {
                    guaranteed: 0,
                    most: cores,
                    kind: if id % 2 == 0 {
                        AppKind::Latency
                    } else {
                        AppKind::Batch
                    },
                },
                work: NewcomerWork::Kthreads {
                    lines: SharedLines::adopt(&memory, cores).expect("memory"),
                    probes: true,
                    resumed: false,
                },
                peer: NoThreads,
                home: CpuSet::new(),
            };
            arbiter.admit(newcomer, &|| 0).expect("there is room");
            lines.push((own, memory));
        }
        Self {
            arbiter,
            apps: lines,
            now_ns: AtomicU64::new(0),
        }
    }

    fn pass(&mut self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
        let now_ns = &self.now_ns;
        self.arbiter.pass(&|| now_ns.load(Ordering::Relaxed));
    }

    /// Every kthread with an order to leave leaves; the others of `app` give their cores back.
    fn park(&self, app: usize) {
        let lines = &self.apps[app].0;
        for kthread in 0..lines.kthreads() {
            lines.line(kthread).leave(lines.orders(kthread).granted());
        }
    }

    fn want(&self, app: usize) {
        self.apps[app].0.app().wants.fetch_add(1, Ordering::Relaxed);
    }

    fn grants(&self) -> u64 {
        self.arbiter.report(0, 0, 0).grant.count
    }
}

fn passes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pass");
    for (cores, apps) in [(2, 2), (16, 8)] {
        let mut host = FakeHost::new(cores, apps);
        host.want(0);
        group.bench_function(
            format!("look, {cores} cores, {apps} applications"),
            |bench| {
                bench.iter(|| host.pass(5_000));
            },
        );
        let mut host = FakeHost::new(cores, apps);
        group.bench_function(format!("a core changes hands, {cores} cores"), |bench| {
            let mut app = 0;
            bench.iter(|| {
                host.park(app);
                app = (app + 2) % apps;
                host.want(app);
                host.pass(1_000);
            });
        });
    }
    group.finish();
    let mut host = FakeHost::new(16, 8);
    let start = Instant::now();
    let before = host.grants();
    for turn in 0..200_000 {
        host.park(2 * (turn % 4));
        host.want(2 * ((turn + 1) % 4));
        host.pass(1_000);
    }
    let rate = (host.grants() - before) as f64 / start.elapsed().as_secs_f64();
    println!("reallocations per second with fake applications: {rate:.0}");
}

/// A core goes from one application to another and back: an order to leave, its signal, the other's affinity and wake-up, twice. Measured through
/// the engine, with its books, checks and policy, and by the bare calls. The kthreads are the same.
fn moves(criterion: &mut Criterion) {
    let Some(core) = other_core() else {
        eprintln!("SKIPPED moves: they need two cores");
        return;
    };
    // Priority over the machine's other programs, where the system grants it. Both sides are in the same class, and neither runs for long.
    stay_responsive();
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&told))
        .expect("a handler");
    let mut group = criterion.benchmark_group("move");
    let pair = || [Kthread::start(&told), Kthread::start(&told)];
    let [batch, serving] = pair();
    let mut mask = CpuSet::new();
    mask.set(core).expect("it is there");
    let pid = std::process::id() as i32;
    batch.grant(core, &mask);
    group.bench_function("there and back, bare", |bench| {
        bench.iter(|| {
            batch.revoke(pid);
            serving.grant(core, &mask);
            serving.give_back();
            batch.grant(core, &mask);
        });
    });
    batch.give_back();
    let [batch, serving] = pair();
    let vacant = HostShape::vacant(HostTopology::flat(1), 2, 1);
    let allocator = Shenango::new(&vacant, ShenangoRules::default());
    let host = HostCores {
        dealt: vec![core],
        siblings: HostTopology::flat(1),
        own: None,
        shared: core,
    };
    let mut arbiter = Arbiter::new(allocator, host, false);
    let clock = Clock::global();
    let now = || clock.now_ns();
    for (kthread, kind) in [(&batch, AppKind::Batch), (&serving, AppKind::Latency)] {
        let newcomer = kthread.newcomer(pid, kind, mask);
        arbiter.admit(newcomer, &now).expect("there is room");
    }
    batch.lines.app().wants.fetch_add(1, Ordering::Relaxed);
    // It always has more work.
    batch.lines.app().shared_tail.store(1, Ordering::Relaxed);
    arbiter.pass(&now);
    batch.until_running();
    group.bench_function("there and back, by the engine", |bench| {
        bench.iter(|| {
            serving.lines.app().wants.fetch_add(1, Ordering::Relaxed);
            arbiter.pass(&now);
            batch.until_left();
            arbiter.pass(&now);
            serving.until_running();
            serving.give_back();
            arbiter.pass(&now);
            batch.until_running();
        });
    });
    group.finish();
}

/// An order to leave a core, to a program of so many threads: by a control group, and thread by thread.
fn programs(criterion: &mut Criterion) {
    let (Ok(groups), Ok(confiner)) = (ProgramGroups::open(), Confiner::start()) else {
        eprintln!("SKIPPED programs: no control group can be made here");
        return;
    };
    let mut group = criterion.benchmark_group("an order to a program");
    for threads in [1, 100, 1_000] {
        for by_group in [true, false] {
            let program = SleepingThreads::start(threads);
            let pid = program.0.id() as i32;
            let mut peer = PeerProcess::open(pid).expect("it runs");
            let home = peer.affinity().expect("it runs");
            if by_group {
                let made = groups.enter(pid, peer.started().unwrap_or_default(), &[]);
                peer.confine_by(confiner.serve(made.expect("a group"), home));
            }
            let mut one = CpuSet::new();
            let first = (0..CpuSet::count()).find(|&core| home.is_set(core) == Ok(true));
            one.set(first.expect("it has a core")).expect("it is there");
            peer.pin_all(&home);
            let mut turn = 0;
            let how = if by_group { "group" } else { "threads" };
            group.bench_function(format!("{threads} threads, by {how}"), |bench| {
                bench.iter(|| {
                    turn += 1;
                    peer.pin_known(if turn % 2 == 0 { &home } else { &one });
                });
            });
            peer.let_all_go(&home);
        }
    }
    group.finish();
}

/// A process whose threads sleep. It ends with this value.
struct SleepingThreads(Child);

impl SleepingThreads {
    fn start(threads: usize) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"));
        let process = process.env(THREADS, threads.to_string()).spawn();
        let process = Self(process.expect("it starts"));
        let tasks = format!("/proc/{}/task", process.0.id());
        let runs = || std::fs::read_dir(&tasks).map_or(0, Iterator::count) == threads;
        while !runs() {
            thread::yield_now();
        }
        process
    }

    /// The role of such a process.
    fn sleep(threads: usize) -> ! {
        for _ in 1..threads {
            let small = thread::Builder::new().stack_size(16 << 10);
            small
                .spawn(|| {
                    loop {
                        thread::park();
                    }
                })
                .expect("a thread");
        }
        loop {
            thread::park();
        }
    }
}

impl Drop for SleepingThreads {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn other_core() -> Option<usize> {
    let cores = Topology::read("/sys").ok()?.pinning_order();
    pin_current(*cores.first()?).ok()?;
    cores.get(1).copied()
}

/// A thread that runs while it is granted a core, until a signal tells it to leave. It ends with the process.
struct Kthread {
    lines: Arc<SharedLines>,
    memory: OwnedFd,
    shown: Arc<Shown>,
    tid: u32,
}

/// The state that it shows a bench.
#[derive(Default)]
struct Shown {
    /// The grant under which it runs.
    running: AtomicU64,
    /// Whether it is to give its core back by itself.
    gives_back: AtomicBool,
}

impl Kthread {
    fn start(told: &Arc<AtomicBool>) -> Self {
        let (memory, lines) = SharedLines::create(1).expect("memory");
        let (lines, shown) = (Arc::new(lines), Arc::new(Shown::default()));
        let (sender, receiver) = channel();
        let (own, seen, told) = (Arc::clone(&lines), Arc::clone(&shown), Arc::clone(told));
        thread::spawn(move || {
            stay_responsive();
            let _ = sender.send(gettid());
            run(&own, &seen, &told);
        });
        let tid = receiver.recv().expect("it runs");
        lines.line(0).set_tid(tid);
        Self {
            lines,
            memory,
            shown,
            tid,
        }
    }

    fn newcomer(&self, pid: i32, kind: AppKind, home: CpuSet) -> Newcomer<PeerProcess> {
        Newcomer {
            id: u64::from(self.tid),
            name: format!("{kind:?}"),
            shape: AppShape {
                guaranteed: 0,
                most: 1,
                kind,
            },
            work: NewcomerWork::Kthreads {
                lines: SharedLines::adopt(&self.memory, 1).expect("memory"),
                probes: false,
                resumed: true,
            },
            peer: PeerProcess::open(pid).expect("this process"),
            home,
        }
    }

    /// The bare calls of a grant.
    fn grant(&self, core: usize, mask: &CpuSet) {
        assert!(sched_setaffinity(Pid::from_raw(self.tid as i32), mask).is_ok());
        let orders = self.lines.orders(0);
        orders.grant(core as u32);
        orders.wakes().fetch_add(1, Ordering::Release);
        futex(orders.wakes(), libc::FUTEX_WAKE, 1);
        self.until_running();
    }

    /// The bare calls of a revocation.
    fn revoke(&self, pid: i32) {
        self.lines.orders(0).revoke();
        // SAFETY: three integers.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, self.tid, libc::SIGUSR1) };
        assert_eq!(sent, 0);
        self.until_left();
    }

    fn give_back(&self) {
        self.shown.gives_back.store(true, Ordering::Release);
        self.until_left();
    }

    fn until_running(&self) {
        while self.shown.running.load(Ordering::Acquire) < self.lines.orders(0).granted().0 {
            std::hint::spin_loop();
        }
    }

    fn until_left(&self) {
        while self.lines.line(0).left() < self.lines.orders(0).granted() {
            std::hint::spin_loop();
        }
    }
}

fn run(lines: &SharedLines, shown: &Shown, told: &AtomicBool) {
    let (line, orders) = (lines.line(0), lines.orders(0));
    loop {
        let wakes = orders.wakes().load(Ordering::Acquire);
        let granted = orders.granted();
        if granted == line.left() {
            futex(orders.wakes(), libc::FUTEX_WAIT, wakes);
            continue;
        }
        shown.running.store(granted.0, Ordering::Release);
        while !told.swap(false, Ordering::Acquire)
            && !shown.gives_back.swap(false, Ordering::Acquire)
        {
            std::hint::spin_loop();
        }
        line.leave(granted);
    }
}

fn gettid() -> u32 {
    // SAFETY: it takes nothing.
    let tid = unsafe { libc::gettid() };
    tid as u32
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: the word outlives the call, and there is no timeout.
    unsafe {
        let none = std::ptr::null::<libc::timespec>();
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word),
            operation,
            value,
            none,
        );
    }
}

criterion_group!(benches, passes, moves, programs);

fn main() {
    if let Some(threads) = std::env::var(THREADS)
        .ok()
        .and_then(|told| told.parse().ok())
    {
        SleepingThreads::sleep(threads);
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
