//! Policies that interrupt requests: every request is answered once, in full, by whatever it is interrupted and wherever it goes on. One binary for all
//! of them: each would compile every engine anew.

mod clock;
#[path = "../common/mod.rs"]
mod common;
mod crash;
mod dispatchers;
mod feedback;
mod held;
mod looks;
mod overload;
mod overtaking;
mod pull;
mod slower;
mod synergy;
mod tardis;
mod thread_state;
mod timer;
mod tuning;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{FOREVER, assert_all_answered, laid_out, play, replay, wait_until, with_room};
use headway_policy::Resume;
use headway_runtime::{Builder, Call, Idle, Layout, Pin, Server, Service, Spin, Stats, checkpoint};
use overtaking::shorts_overtake;
use slower::{slower_replay, until_interrupted};

/// One of each kind: by a dispatcher's flag, by the worker's own clock, with a dispatcher that works.
const POLICIES: [&str; 12] = [
    "shinjuku-sq,q=5us",
    "shinjuku-ci,q=5us",
    "shinjuku-mq,q=5us",
    "concord,q=5us",
    "concord,q=2us,k=4",
    "concord,q=5us,k=1,dispatcher=dedicated",
    TINY_QUANTA,
    "mlfq",
    EARLIEST_DEADLINE,
    "on-blocked",
    "compose,discipline=typed,placement=reserved,preemption=quantum,control=darc,window=200,q=5us",
    "compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,q=5us",
];
/// Interrupts at arrivals only, while a long one runs. A dispatcher that waits for a core finds what arrived meanwhile before it begins a long one: that
/// it interrupts is shown where longs wait for shorts to overtake them.
const EARLIEST_DEADLINE: &str = "compose,discipline=edf,preemption=edf";
/// Under the thread sanitizer a turn takes longer than 2 µs, and a request would never get on.
const TINY_QUANTA: &str = if cfg!(headway_tsan) {
    "tiny-quanta,q=50us"
} else {
    "tiny-quanta,q=2us"
};
const REQUESTS: u32 = 300;
const LONG_NS: u64 = 200_000;
/// More than two workers can serve, for as long as the requests come: something always waits, and shorts arrive while longs run.
const GAP_NS: u64 = 40_000;
/// These tests need the machine's cores: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dispatcher's thread interrupts, or the workers themselves do.
const LAYOUTS: [Layout; 2] = [Layout::Dedicated, Layout::Inline];

fn in_both_layouts<const N: usize>(
    policies: [&'static str; N],
) -> impl Iterator<Item = (&'static str, Layout)> {
    policies
        .into_iter()
        .flat_map(|policy| LAYOUTS.map(|layout| (policy, layout)))
}

fn builder(policy: &str, workers: usize, layout: Layout) -> Builder {
    let builder = laid_out(Server::builder(), policy, layout)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(LONG_NS))
        .workers(workers)
        .pin(Pin::Off);
    with_room(builder, policy, 2 * REQUESTS as usize)
}

/// Lets interrupted requests resume on any worker, if they roam.
fn roam<S, D>(builder: Builder<S, D>, roams: bool) -> Builder<S, D> {
    if !roams {
        return builder.resume(Resume::OwnWorker);
    }
    builder.resume(Resume::Anywhere)
}

/// Runs a replay, so much slower, to its end and checks that each request came back once, having had its service.
fn all_answered(
    stretch: u64,
    policy: &str,
    workers: usize,
    roams: bool,
    idle: Idle,
    layout: Layout,
) -> Stats {
    let (datapath, control) = slower_replay(stretch);
    let server = roam(builder(policy, workers, layout), roams)
        .idle(idle)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    assert_eq!(server.layout(), Some(layout));
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    let context = format!("{policy}, {workers} workers, roams {roams}, {idle:?}, {layout:?}");
    assert_all_answered(&stats, &control, LONG_NS * stretch, &context);
    assert!(
        stats.preemptions_asked >= stats.preemptions,
        "{context}: {stats:?}"
    );
    stats
}

#[test]
fn everything_is_answered_once_under_every_policy() {
    let _alone = alone();
    for policy in POLICIES {
        for layout in LAYOUTS {
            for roams in [false, true] {
                let run = |stretch| {
                    all_answered(stretch, policy, 2, roams, Idle::default(), layout).preemptions
                };
                if policy == EARLIEST_DEADLINE {
                    run(1);
                } else {
                    until_interrupted(policy, run);
                }
            }
        }
    }
}

#[test]
fn one_worker_and_more_workers_than_cores_do_too() {
    let _alone = alone();
    for policy in ["concord,q=5us", "shinjuku-sq,q=5us", TINY_QUANTA] {
        for layout in LAYOUTS {
            for workers in [1, 5] {
                all_answered(1, policy, workers, true, Idle::default(), layout);
            }
        }
    }
}

#[test]
fn every_way_to_wait_does_too() {
    let _alone = alone();
    for policy in ["concord,q=5us", TINY_QUANTA] {
        for layout in LAYOUTS {
            for idle in [Idle::Spin, Idle::Park] {
                all_answered(1, policy, 2, true, idle, layout);
            }
        }
    }
}

/// Longs run until one of them has been on two threads, or it is late.
struct Wander {
    moved: AtomicBool,
    at_most: Duration,
}

impl Service for Wander {
    fn handle(&self, call: &mut Call<'_>) {
        let (begun, first) = (Instant::now(), kernel_thread());
        let waits = || call.class().0 == 1 && !self.moved.load(Ordering::Relaxed);
        while waits() && begun.elapsed() < self.at_most {
            if kernel_thread() != first {
                self.moved.store(true, Ordering::Relaxed);
            }
            checkpoint();
        }
    }
}

/// What the kernel takes the caller for: a request has an identity of its own.
fn kernel_thread() -> PathBuf {
    std::fs::read_link("/proc/thread-self").expect("/proc is there")
}

/// Whether an interrupted request is ever seen on a second thread.
fn moves(policy: &str, layout: Layout, roams: bool, at_most: Duration) -> bool {
    let wander = Arc::new(Wander {
        moved: AtomicBool::new(false),
        at_most,
    });
    let (datapath, control) = replay(1, 40, 2_000, [0, 0]);
    let service = Arc::clone(&wander);
    let server = roam(builder(policy, 2, layout), roams)
        .service(move |call: &mut Call<'_>| service.handle(call))
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered, 40);
    // A request that its own thread went on with, since a worker was seen asleep, is on a second one anywhere.
    let was_rescued = stats.classes.iter().any(|class| class.rescued > 0);
    wander.moved.load(Ordering::Relaxed) && (roams || !was_rescued)
}

#[test]
fn an_interrupted_request_changes_threads_only_where_the_service_allows() {
    let _alone = alone();
    for policy in ["shinjuku-sq,q=5us", "concord,q=5us,dispatcher=dedicated"] {
        for layout in LAYOUTS {
            let at_most = Duration::from_millis(5);
            assert!(!moves(policy, layout, false, at_most), "{policy}");
            assert!(
                moves(policy, layout, true, FOREVER),
                "{policy} never moved a request, {layout:?}"
            );
        }
    }
}

/// A short request does not wait for a long one that runs already: with one worker that could only be interrupted.
#[test]
fn a_short_request_overtakes_a_long_one_that_runs() {
    let _alone = alone();
    let policies = [
        "concord,q=5us,dispatcher=dedicated",
        "shinjuku-sq,q=5us",
        "tiny-quanta,q=5us",
        // Interrupts as soon as something shorter waits.
        EARLIEST_DEADLINE,
    ];
    for (policy, layout) in in_both_layouts(policies) {
        let context = format!("{policy}, {layout:?}");
        shorts_overtake(builder(policy, 1, layout), 1_000, &context);
    }
}

/// The same for a handler without a single probe.
#[test]
fn a_signal_interrupts_a_handler_without_probes() {
    let _alone = alone();
    static SHORT_DONE: AtomicU64 = AtomicU64::new(0);
    let (datapath, control) = replay(1, 4, 1_000, [0, 0]);
    let server = builder("shinjuku-sq,q=200us", 1, Layout::Dedicated)
        .service(|call: &mut Call<'_>| match call.class().0 {
            1 => {
                let end = Instant::now() + FOREVER;
                while SHORT_DONE.load(Ordering::Relaxed) < 2 && Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            _ => {
                SHORT_DONE.fetch_add(1, Ordering::Relaxed);
            }
        })
        .datapath(datapath);
    // SAFETY: the handler reads an atomic and a clock, which keep no state.
    #[expect(unsafe_code, reason = "the handler may be interrupted anywhere")]
    let server = unsafe { server.interrupt_by_signal() }.start().unwrap();
    let begun = Instant::now();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered, 4, "{stats:?}");
    assert!(
        stats.preemptions > 0 && begun.elapsed() < FOREVER,
        "{stats:?}"
    );
}

#[test]
fn a_panic_in_an_interrupted_handler_costs_its_request_only() {
    let _alone = alone();
    for layout in LAYOUTS {
        until_interrupted("concord", |stretch| {
            let (datapath, control) = slower_replay(stretch);
            let server = builder("concord,q=5us", 2, layout)
                .service(|call: &mut Call<'_>| {
                    Spin::default().handle(call);
                    assert_ne!(call.class().0, 1, "longs panic");
                })
                .datapath(datapath)
                .start()
                .unwrap();
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            let half = u64::from(REQUESTS) / 2;
            assert_eq!((stats.answered, stats.panics), (2 * half, half));
            stats.preemptions
        });
    }
}

/// Stops servers in the middle of their requests until one gives some up, and checks that each counts all. A machine that delays the stop lets
/// every request end before.
fn given_up(context: &str, queues: usize, builder: impl Fn() -> Builder) -> Stats {
    let begun = Instant::now();
    loop {
        let (datapath, control) = replay(queues, 40, 1_000, [0, 0]);
        let server = builder()
            .service(|call: &mut Call<'_>| {
                let end = Instant::now() + Duration::from_millis(300);
                while call.class().0 == 1 && Instant::now() < end {
                    checkpoint();
                }
            })
            .datapath(datapath)
            .start()
            .unwrap();
        play(&control);
        wait_until("somebody was interrupted", || {
            server.stats().preemptions > 0
        });
        let stats = server.shutdown(Duration::from_millis(1)).unwrap();
        assert_eq!(
            stats.answered + stats.abandoned + stats.refused_draining,
            40,
            "{context}: {stats:?}"
        );
        if stats.abandoned > 0 {
            return stats;
        }
        assert!(begun.elapsed() < FOREVER, "{context}: {stats:?}");
    }
}

/// Requests in the middle of their service when time is up are given up, and counted with the others.
#[test]
fn what_is_given_up_is_counted() {
    let _alone = alone();
    let policies = ["shinjuku-sq,q=5us", "tiny-quanta,q=5us", "concord,q=5us"];
    for (policy, layout) in in_both_layouts(policies) {
        let context = format!("{policy}, {layout:?}");
        let stats = given_up(&context, 1, || builder(policy, 2, layout));
        assert_eq!(stats.refused_draining, 0, "{context}: {stats:?}");
    }
}

/// Ends its process, so another one has to watch it.
#[test]
#[ignore = "run by a_stack_overflow_is_reported_with_its_class"]
fn overflows() {
    fn deeper(depth: u64) -> u64 {
        let room = std::hint::black_box([depth; 64]);
        match room[0] {
            0 => 0,
            depth => deeper(depth + 1) + room[1],
        }
    }
    let (datapath, control) = replay(1, 2, 1_000, [0, 0]);
    let server = builder("concord", 1, Layout::Auto)
        .service(|call: &mut Call<'_>| {
            if call.class().0 == 1 {
                std::hint::black_box(deeper(1));
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    server.wait();
}

#[test]
fn a_stack_overflow_is_reported_with_its_class() {
    let _alone = alone();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "overflows", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{said}");
    assert!(
        said.contains("stack overflow in a request of class long"),
        "{said}"
    );
}

/// Ends its process, so another one has to watch it.
#[test]
#[ignore = "run by a_handler_may_end_the_process"]
fn exits() {
    let layout = layout_of_parent();
    let (datapath, control) = replay(1, 2, 1_000, [0, 0]);
    let server = builder("shinjuku-sq", 1, layout)
        .service(|call: &mut Call<'_>| {
            if call.class().0 == 1 {
                std::process::exit(7);
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    server.wait();
}

/// The destructors of the handler's thread run while the dispatcher still holds that thread's flag.
#[test]
fn a_handler_may_end_the_process() {
    let _alone = alone();
    for layout in LAYOUTS {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "exits", "--ignored", "--nocapture"])
        // What the ended process still had is not lost: the address sanitizer need not look for it.
        .env("HEADWAY_LAYOUT", format!("{layout:?}"))
        .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
        let end = Instant::now() + FOREVER;
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if Instant::now() > end => break child.kill().ok().and(None),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!(status, Some(7), "{layout:?}");
    }
}

/// The layout that the parent process asked for.
fn layout_of_parent() -> Layout {
    let name = std::env::var("HEADWAY_LAYOUT").unwrap();
    let named = LAYOUTS
        .into_iter()
        .find(|layout| format!("{layout:?}") == name);
    named.unwrap()
}

/// The server itself writes what another process has to read.
#[test]
#[ignore = "run by a_handler_without_probes_is_counted_and_named_once"]
fn without_probes() {
    let (policy, layout) = (std::env::var("HEADWAY_POLICY").unwrap(), layout_of_parent());
    let (datapath, control) = replay(1, 100, 100_000, [0, 0]);
    let server = builder(&policy, 1, layout)
        .service(|call: &mut Call<'_>| {
            let begun = Instant::now();
            while call.class().0 == 1 && begun.elapsed() < Duration::from_micros(500) {}
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    let long = &stats.classes[1];
    assert_eq!((stats.preemptions, long.answered), (0, 50));
    assert!(stats.preemptions_asked >= long.overruns);
    println!("overruns={}", long.overruns);
}

#[test]
fn a_handler_without_probes_is_counted_and_named_once() {
    let _alone = alone();
    let policies = ["shinjuku-sq,q=5us", TINY_QUANTA];
    for (policy, layout) in in_both_layouts(policies) {
        until_interrupted(policy, |_| {
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "without_probes", "--ignored", "--nocapture"])
                .env("HEADWAY_POLICY", policy)
                .env("HEADWAY_LAYOUT", format!("{layout:?}"))
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&child.stdout);
            let said = String::from_utf8_lossy(&child.stderr);
            assert!(child.status.success(), "{printed}{said}");
            let overruns = printed.split("overruns=").nth(1).unwrap();
            let overruns: u64 = overruns.split_whitespace().next().unwrap().parse().unwrap();
            let lines = said.matches("requests of class long do not yield").count();
            assert_eq!(lines, usize::from(overruns >= 8), "{overruns}: {said}");
            assert!(lines == 0 || said.contains("cargo headway build"), "{said}");
            overruns.saturating_sub(7)
        });
    }
}

/// Each long needs 15 µs and meets no probe: it ends soon after its slice, which is over at the next look for arrivals.
#[test]
#[ignore = "run by a_class_is_not_accused_of_stops_of_the_machine"]
fn brief_without_probes() {
    let (datapath, control) = replay(1, 8_000, 40_000, [0, 0]);
    let layout = layout_of_parent();
    let server = builder(TINY_QUANTA, 1, layout)
        .service(|call: &mut Call<'_>| {
            let begun = Instant::now();
            while call.class().0 == 1 && begun.elapsed() < Duration::from_micros(15) {}
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    println!("asked={}", stats.classes[1].preemptions_asked);
}

/// The process is stopped and continued all the time: its requests end milliseconds after their slices did, by no fault of theirs. A host may take a processor from its
/// guest too, unseen by the threads' clocks, so one of a few runs in which nobody is accused is enough: whoever takes stops for the class's doing accuses it in each.
#[test]
#[cfg_attr(
    headway_tsan,
    ignore = "what the sanitizer adds makes brief requests long"
)]
fn a_class_is_not_accused_of_stops_of_the_machine() {
    const ATTEMPTS: usize = 5;
    let _alone = alone();
    let is_accused = || said_while_stopped().contains("do not yield");
    let accused = (0..ATTEMPTS).take_while(|_| is_accused()).count();
    assert!(accused < ATTEMPTS, "accused in each of {ATTEMPTS} runs");
}

/// What [`brief_without_probes`] prints while it is stopped and continued all the time.
fn said_while_stopped() -> String {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "brief_without_probes",
            "--ignored",
            "--nocapture",
        ])
        .env("HEADWAY_LAYOUT", format!("{:?}", Layout::Inline))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let id = nix::unistd::Pid::from_raw(child.id() as i32);
    let end = Instant::now() + FOREVER;
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        for (signal, for_us) in [
            (nix::sys::signal::SIGSTOP, 2_000),
            (nix::sys::signal::SIGCONT, 500),
        ] {
            // It may have ended meanwhile: until it is waited for, its number is nobody else's.
            let _ = nix::sys::signal::kill(id, signal);
            std::thread::sleep(Duration::from_micros(for_us));
        }
    }
    let output = child.wait_with_output().unwrap();
    let [printed, said] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success(), "{printed}{said}");
    said
}

#[test]
fn a_policy_of_another_level_is_refused_with_who_runs_it() {
    let _alone = alone();
    for (policy, command) in [("pallas", "headway rack"), ("static", "headway host")] {
        let (datapath, _control) = replay(1, 1, 1, [0, 0]);
        let server = Server::builder().policy(policy).service(Spin::default());
        let refused = server.datapath(datapath).start().err().unwrap();
        assert!(refused.to_string().contains(command), "{refused}");
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let _alone = alone();
    let (datapath, _control) = replay(1, 1, 1, [0, 0]);
    let inline = builder("concord", 1, Layout::Inline)
        .service(Spin::default())
        .datapath(datapath);
    // SAFETY: no request is run.
    #[expect(unsafe_code, reason = "it must be refused")]
    let inline = unsafe { inline.interrupt_by_signal() }.start();
    assert!(inline.err().unwrap().to_string().contains("dedicated"));
    for (policy, advice) in [
        ("synergy", "resume anywhere"),
        ("tardis", "resume anywhere"),
    ] {
        let (datapath, _control) = replay(1, 1, 1, [0, 0]);
        let refused = roam(builder(policy, 2, Layout::Auto), false)
            .service(Spin::default())
            .datapath(datapath)
            .start();
        let message = refused.err().unwrap().to_string();
        assert!(message.contains(advice), "{policy}: {message}");
    }
}
