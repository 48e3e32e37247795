//! The cost of SYNERGY's scheduling beside the handlers: requests of a worker's own queue, slices, feedback.
//!
//! Each round measures every row once, so that rows of one run can be compared. A row's bound stands beside it. Arguments are parts of the names of the rows to measure.

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::backlog::{turn_ns, work};
use common::median;
use headway_machine::Clock;
use headway_net::replay::{Replay, ReplayArrival};
use headway_runtime::{Builder, Call, Idle, Layout, Server, Stats};

const ROUNDS: usize = 31;

/// A round's figure is the least of this many short tries: the machine has other work, and does not interrupt each of them.
const TRIES: usize = 4;
/// The same as [`TRIES`] for slices, whose cost is a small part of a try.
const SLICE_TRIES: usize = 24;
/// The service time of a sliced request: so short that the kernel's tick misses most tries.
const SLICED_NS: f64 = 3e5;

struct Row {
    name: &'static str,
    /// None where the row is there to be compared with.
    bound_ns: Option<f64>,
    /// One round, ns.
    measure: fn(&Bench) -> f64,
}

/// The inputs of all rounds.
struct Bench {
    clock: Clock,
    /// Turns of [`work`] that take about [`SLICED_NS`].
    turns: u64,
}

const ROWS: [Row; 16] = [
    Row {
        name: "a reading of the clock",
        bound_ns: None,
        measure: reading,
    },
    Row {
        name: "own queue, synergy",
        bound_ns: Some(60.0),
        measure: |_| own_queue("synergy", Layout::Inline),
    },
    Row {
        name: "own queue, synergy, longs get a thread's state",
        bound_ns: Some(60.0),
        measure: |_| own_queue_of(own_task("synergy", Layout::Inline, Longs::OwnThreadState)),
    },
    Row {
        name: "own queue, synergy, monitor's own core",
        bound_ns: Some(60.0),
        measure: |_| own_queue("synergy", Layout::Dedicated),
    },
    Row {
        name: "own queue, one of 2 workers",
        bound_ns: None,
        measure: |_| among_busy(2),
    },
    Row {
        name: "own queue, one of 16 workers",
        bound_ns: None,
        measure: |_| among_busy(16),
    },
    Row {
        name: "own queue, one of 64 workers",
        bound_ns: None,
        measure: |_| among_busy(64),
    },
    Row {
        name: "own queue, one of 256 workers",
        bound_ns: None,
        measure: |_| among_busy(256),
    },
    Row {
        name: "own queue, work-stealing (no fibers)",
        bound_ns: None,
        measure: |_| own_queue("work-stealing", Layout::Auto),
    },
    Row {
        name: "own queue, d-fcfs (no fibers, no thieves)",
        bound_ns: None,
        measure: |_| own_queue("d-fcfs", Layout::Auto),
    },
    Row {
        name: "a slice renewed",
        bound_ns: Some(25.0),
        measure: |bench| slice(bench, "synergy,parts=ws+wq+cp", 1),
    },
    Row {
        name: "a slice yielded to another long, wait queue",
        bound_ns: None,
        measure: |bench| slice(bench, "synergy,parts=ws+wq", 2),
    },
    Row {
        name: "a slice yielded to another long, own queue",
        bound_ns: None,
        measure: |bench| slice(bench, "synergy,parts=ws", 2),
    },
    Row {
        name: "feedback_start + feedback_finished",
        bound_ns: Some(40.0),
        measure: |_| feedback(true),
    },
    Row {
        name: "the same where no feedback is heard",
        bound_ns: None,
        measure: |_| feedback(false),
    },
    Row {
        name: "the first pair of a request, which is told",
        bound_ns: Some(40.0),
        measure: |_| first_feedback(),
    },
];

fn main() {
    let bench = Bench {
        clock: Clock::global(),
        turns: (SLICED_NS / turn_ns()) as u64,
    };
    let rows = chosen();
    let mut series: Vec<Vec<f64>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (row, times) in rows.iter().zip(&mut series) {
            times.push((row.measure)(&bench));
        }
    }
    println!("synergy, medians of {ROUNDS} interleaved rounds");
    for (row, times) in rows.iter().zip(&mut series) {
        let name = row.name;
        let (time_ns, least_ns) = (median(times), times[0]);
        print!("  {name:<46} {time_ns:7.1} ns (least {least_ns:.1})");
        match row.bound_ns {
            Some(bound_ns) => println!("  {:5.2} × its bound", time_ns / bound_ns),
            None => println!(),
        }
    }
}

/// The rows that the command line names, all without a name.
fn chosen() -> Vec<Row> {
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|part| !part.starts_with("--"))
        .collect();
    ROWS.into_iter()
        .filter(|row: &Row| parts.is_empty() || parts.iter().any(|part| row.name.contains(part)))
        .collect()
}

fn reading(bench: &Bench) -> f64 {
    const READINGS: u64 = 200_000;
    let start_ns = bench.clock.now_ns();
    (0..READINGS).for_each(|_| {
        black_box(bench.clock.now_ns());
    });
    (bench.clock.now_ns() - start_ns) as f64 / READINGS as f64
}

/// What a request has that is interrupted.
#[derive(Clone, Copy, PartialEq)]
enum Longs {
    PlainStack,
    /// As by default.
    OwnThreadState,
}

/// The settings of a measured server with one worker.
#[derive(Clone, Copy)]
struct Task<'a> {
    policy: &'a str,
    layout: Layout,
    feedback: bool,
    requests: u32,
    longs: Longs,
}

/// How it went.
struct Served {
    /// From the start to the last answer, ns.
    whole_ns: f64,
    stats: Stats,
}

/// One worker answers requests by `handler`; all wait at its receive queue from the start.
fn serve(task: Task<'_>, handler: impl Fn(&mut Call<'_>) + Send + Sync + 'static) -> Served {
    let schedule = (0..task.requests)
        .map(|index| ReplayArrival {
            at_ns: 0,
            service_ns: 0,
            index,
            class: 0,
        })
        .collect();
    let (datapath, control) = Replay::new(vec![schedule]).expect("the schedule is in order");
    let builder = Server::builder()
        .policy(task.policy)
        .class("work", Duration::from_micros(1))
        .workers(1)
        .layout(task.layout)
        .idle(Idle::Spin)
        .slots(256)
        .by_feedback(task.feedback);
    let builder = match task.longs {
        Longs::PlainStack => plain(builder),
        Longs::OwnThreadState => builder,
    };
    let server = builder
        .handler(handler)
        .datapath(datapath)
        .start()
        .expect("the server starts");
    control.start(Clock::global().now_ns());
    while control.taken() < control.total() {
        std::thread::sleep(Duration::from_micros(200));
    }
    let stats = server
        .shutdown(Duration::from_secs(10))
        .expect("the server stops");
    assert_eq!(stats.answered, u64::from(task.requests));
    let completions = control.take_completions();
    let last = completions.iter().map(|done| done.latency_ns).max();
    Served {
        whole_ns: last.expect("requests were answered") as f64,
        stats,
    }
}

/// The server's fibers are plain ones.
fn plain(builder: Builder) -> Builder {
    // SAFETY: the handlers of this bench keep nothing of their thread's over a checkpoint.
    #[expect(unsafe_code, reason = "the handlers are the bench's own")]
    unsafe {
        builder.plain_fibers()
    }
}

/// The fastest of several runs.
fn fastest(tries: usize, run: impl Fn() -> Served) -> Served {
    let runs = (0..tries).map(|_| run());
    let fastest = runs.min_by(|a, b| a.whole_ns.total_cmp(&b.whole_ns));
    fastest.expect("there is a run")
}

/// A request of worker 0's own queue with an empty handler, while each other worker is busy with one that waits for the end: they hold no core, and there
/// is nobody to wake.
fn among_busy(workers: usize) -> f64 {
    let runs = (0..TRIES).map(|_| one_among_busy(workers));
    runs.min_by(f64::total_cmp).expect("there is a run")
}

fn one_among_busy(workers: usize) -> f64 {
    const REQUESTS: u32 = 20_000;
    /// Until then the others have begun.
    const LEAD_NS: u64 = 100_000_000;
    let arrival = |at_ns, index, class| ReplayArrival {
        at_ns,
        service_ns: 0,
        index,
        class,
    };
    let own = (0..REQUESTS).map(|index| arrival(LEAD_NS, index, 0));
    let others = (1..workers).map(|worker| vec![arrival(0, REQUESTS + worker as u32, 1)]);
    let schedules = std::iter::once(own.collect()).chain(others).collect();
    let (datapath, control) = Replay::new(schedules).expect("the schedules are in order");
    let ended = Arc::new((Mutex::new(false), Condvar::new()));
    let gate = Arc::clone(&ended);
    let builder = Server::builder()
        // Whoever is done before the others has nothing to steal.
        .policy("synergy,steal_threshold=1048576")
        .class("short", Duration::from_micros(1))
        .class("waits", Duration::from_micros(1))
        .workers(workers)
        .layout(Layout::Inline)
        .idle(Idle::Park)
        .slots(256 * workers);
    let server = plain(builder)
        .handler(move |call| {
            if call.class().0 == 1 {
                let (is_over, over) = &*gate;
                let waits = over.wait_while(is_over.lock().unwrap(), |is_over| !*is_over);
                drop(waits.unwrap());
            }
        })
        .datapath(datapath)
        .start()
        .expect("the server starts");
    control.start(Clock::global().now_ns());
    while server.stats().classes[0].answered < u64::from(REQUESTS) {
        std::thread::sleep(Duration::from_millis(1));
    }
    *ended.0.lock().unwrap() = true;
    ended.1.notify_all();
    let stats = server.shutdown(Duration::from_secs(60));
    let stats = stats.expect("the server stops");
    assert_eq!(stats.answered, u64::from(REQUESTS) + workers as u64 - 1);
    assert_eq!(stats.stolen, 0, "each runs its own: {stats:?}");
    let completions = control.take_completions();
    let own = completions.iter().filter(|done| done.class == 0);
    let last = own.map(|done| done.latency_ns).max();
    last.expect("requests were answered") as f64 / f64::from(REQUESTS)
}

fn own_task(policy: &str, layout: Layout, longs: Longs) -> Task<'_> {
    Task {
        policy,
        layout,
        feedback: false,
        requests: 20_000,
        longs,
    }
}

fn own_queue(policy: &str, layout: Layout) -> f64 {
    own_queue_of(own_task(policy, layout, Longs::PlainStack))
}

/// A request with an empty handler.
fn own_queue_of(task: Task<'_>) -> f64 {
    fastest(TRIES, || serve(task, |_| {})).whole_ns / f64::from(task.requests)
}

/// The end of a slice of 1 µs of one of `longs` requests that watch themselves: what a run with such slices takes more than one whose slices
/// never end.
fn slice(bench: &Bench, policy: &str, longs: u32) -> f64 {
    let turns = bench.turns;
    let run = |q| {
        let policy = format!("{policy},q={q}");
        fastest(SLICE_TRIES, || {
            let task = Task {
                policy: &policy,
                layout: Layout::Inline,
                feedback: false,
                requests: longs,
                longs: Longs::PlainStack,
            };
            serve(task, move |_| work(turns))
        })
    };
    let (whole, sliced) = (run("1s"), run("1us"));
    let class = &sliced.stats.classes[0];
    let ends = class.renewals + class.preemptions;
    assert!(ends > 200, "slices end: {:?}", sliced.stats);
    (sliced.whole_ns - whole.whole_ns) / ends as f64
}

/// What a request takes more that says once that it is long: it leaves its stack for that, and its worker asks the policy when to look at it.
fn first_feedback() -> f64 {
    let task = Task {
        policy: "synergy,q=1s",
        layout: Layout::Inline,
        feedback: true,
        requests: 20_000,
        longs: Longs::PlainStack,
    };
    let silent = fastest(TRIES, || serve(task, |_| {}));
    let told = fastest(TRIES, || {
        serve(task, |call| {
            call.feedback_start();
            call.feedback_finished();
        })
    });
    (told.whole_ns - silent.whole_ns) / f64::from(task.requests)
}

/// A pair of calls around nothing.
fn feedback(heard: bool) -> f64 {
    const PAIRS: u64 = 200_000;
    static SPENT_NS: AtomicU64 = AtomicU64::new(0);
    let task = Task {
        policy: "synergy,q=1s",
        layout: Layout::Inline,
        feedback: heard,
        requests: 1,
        longs: Longs::PlainStack,
    };
    serve(task, |call| {
        let clock = Clock::global();
        let start_ns = clock.now_ns();
        for _ in 0..PAIRS {
            call.feedback_start();
            black_box(&mut *call);
            call.feedback_finished();
        }
        SPENT_NS.store(clock.now_ns() - start_ns, Ordering::Relaxed);
    });
    SPENT_NS.load(Ordering::Relaxed) as f64 / PAIRS as f64
}
