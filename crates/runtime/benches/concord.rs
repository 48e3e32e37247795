//! Two of Concord's figures, through the replay datapath, one worker and a dispatcher: what a second place in a worker's queue saves (§ 3.2), and
//! what a dispatcher that works adds (§ 3.3). All requests wait from the start; systems take turns.

mod common;

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::median;
use headway_machine::Clock;
use headway_net::replay::{Replay, ReplayArrival};
use headway_runtime::{Call, Idle, Layout, Server, checkpoint};

const ROUNDS: usize = 31;

/// Handler to handler takes so long anyway: its queue is never empty.
const DEEP: &str = "jbsq,k=8";
const QUEUES: [&str; 3] = [DEEP, "c-fcfs", "jbsq,k=2"];

fn main() {
    idle_time();
    dispatcher_at_work();
}

/// When the worker's last handler returned, and how long it then took to the next, ticks.
static RETURNED: AtomicU64 = AtomicU64::new(0);
static BETWEEN: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// How long a worker has nothing to run: between two handlers of a microsecond, what a single queue takes more than a deep one.
fn idle_time() {
    const REQUESTS: u32 = 1000;
    let mut between: Vec<Vec<f64>> = vec![Vec::new(); QUEUES.len()];
    for _ in 0..ROUNDS {
        for (policy, between) in QUEUES.iter().zip(&mut between) {
            RETURNED.store(0, Ordering::Relaxed);
            run(policy, REQUESTS, |clock| {
                let before = RETURNED.load(Ordering::Relaxed);
                let begun = clock.ticks();
                if before != 0 {
                    let ns = clock.ns_in(begun.saturating_sub(before)) as f64;
                    BETWEEN.lock().expect("nobody panicked").push(ns);
                }
                work(clock, 1_000);
                RETURNED.store(clock.ticks(), Ordering::Relaxed);
            });
            let mut times = std::mem::take(&mut *BETWEEN.lock().expect("nobody panicked"));
            between.push(trimmed_mean(&mut times));
        }
    }
    let deep = between[0].clone();
    let mut idle: Vec<Vec<f64>> = between[1..].to_vec();
    println!("between two handlers of 1 µs, medians of {ROUNDS} interleaved rounds");
    for (policy, between) in QUEUES.iter().zip(&mut between) {
        println!("  {policy:<10} {:6.0} ns", median(between));
    }
    for (policy, idle) in QUEUES[1..].iter().zip(&mut idle) {
        idle.iter_mut()
            .zip(&deep)
            .for_each(|(between, deep)| *between -= deep);
        println!(
            "  {policy:<10} {:6.0} ns more than {DEEP}: idle",
            median(idle)
        );
    }
}

/// The longest 5 % are the machine's doing.
fn trimmed_mean(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let kept = &times[..times.len() - times.len() / 20];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// How many more requests a second a dispatcher that works makes of two cores.
fn dispatcher_at_work() {
    const REQUESTS: u32 = 400;
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let time = |policy| run(policy, REQUESTS, |clock| work(clock, 25_000));
            time("concord,q=5us,dispatcher=dedicated") / time("concord,q=5us")
        })
        .collect();
    let gain = 100.0 * (median(&mut ratios) - 1.0);
    let (least, most) = (ratios[ROUNDS / 4], ratios[ROUNDS * 3 / 4]);
    println!(
        "a dispatcher that works, requests of 25 µs, one worker: {gain:+.0} % throughput (quartiles {:+.0} … {:+.0} %)",
        100.0 * (least - 1.0),
        100.0 * (most - 1.0)
    );
}

/// Computes for so long, by counting: a clock would count what interrupts it.
fn work(clock: &Clock, ns: u64) {
    static TURN_PS: AtomicU64 = AtomicU64::new(0);
    if TURN_PS.load(Ordering::Relaxed) == 0 {
        TURN_PS.store(calibrate(clock), Ordering::Relaxed);
    }
    turns(1000 * ns / TURN_PS.load(Ordering::Relaxed));
}

fn turns(count: u64) {
    let mut state = count;
    for _ in 0..count {
        for _ in 0..8 {
            state = black_box(state.wrapping_mul(6_364_136_223_846_793_005) | 1);
        }
        checkpoint();
    }
    black_box(state);
}

/// What a turn takes, ps: the fastest of several tries.
fn calibrate(clock: &Clock) -> u64 {
    const TRY: u64 = 20_000;
    let time = |_| {
        let start_ns = clock.now_ns();
        turns(TRY);
        1000 * (clock.now_ns() - start_ns) / TRY
    };
    (0..50).map(time).min().expect("some tries").max(1)
}

/// ns until all requests are answered.
fn run(policy: &str, requests: u32, handler: fn(&Clock)) -> f64 {
    let arrival = |index| ReplayArrival {
        at_ns: 0,
        service_ns: 0,
        index,
        class: 0,
    };
    let schedule = (0..requests).map(arrival).collect();
    let (datapath, control) = Replay::new(vec![schedule]).expect("the schedule is in order");
    let clock = Clock::global();
    work(&clock, 1); // calibrated before anything waits
    let server = Server::builder()
        .policy(policy)
        .class("work", 1_000)
        .workers(1)
        .layout(Layout::Dedicated)
        .idle(Idle::Spin)
        .service(move |_: &mut Call<'_>| handler(&clock))
        .datapath(datapath)
        .start()
        .expect("the server starts");
    control.start(clock.now_ns());
    while control.taken() < control.total() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let stats = server
        .shutdown(std::time::Duration::from_secs(10))
        .expect("the server stops");
    assert_eq!(stats.answered, u64::from(requests));
    let latencies = control.take_completions();
    let whole_ns = latencies.iter().map(|done| done.latency_ns).max();
    whole_ns.expect("requests were answered") as f64
}
