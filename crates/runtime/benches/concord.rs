//! Two of Concord's figures, through the replay datapath, one worker and a dispatcher: what a second place in a worker's queue saves (§ 3.2), and
//! what a dispatcher that works adds (§ 3.3). All requests wait from the start; systems take turns.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::backlog::{serve, turn_ns, work};
use common::median;
use headway_machine::Clock;

const ROUNDS: usize = 31;

/// The reference policy for the time from handler to handler, since its queue is never empty.
const DEEP: &str = "jbsq,k=8";
const QUEUES: [&str; 3] = [DEEP, "c-fcfs", "jbsq,k=2"];

fn main() {
    let turn_ns = turn_ns();
    idle_time((1_000.0 / turn_ns) as u64);
    dispatcher_at_work((25_000.0 / turn_ns) as u64);
}

/// When the worker's last handler returned, and how long it then took to the next, ticks.
static RETURNED: AtomicU64 = AtomicU64::new(0);
static BETWEEN: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// How long a worker has nothing to run: between two handlers of a microsecond, what a single queue takes more than a deep one.
fn idle_time(turns: u64) {
    const REQUESTS: u32 = 1000;
    let mut between: Vec<Vec<f64>> = vec![Vec::new(); QUEUES.len()];
    for _ in 0..ROUNDS {
        for (policy, between) in QUEUES.iter().zip(&mut between) {
            RETURNED.store(0, Ordering::Relaxed);
            serve(policy, REQUESTS, 1_000, move || {
                let clock = Clock::global();
                let before = RETURNED.load(Ordering::Relaxed);
                let begun = clock.ticks();
                if before != 0 {
                    let ns = clock.ns_in(begun.saturating_sub(before)) as f64;
                    BETWEEN.lock().expect("nobody panicked").push(ns);
                }
                work(turns);
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
fn dispatcher_at_work(turns: u64) {
    const REQUESTS: u32 = 400;
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let time = |policy| serve(policy, REQUESTS, 25_000, move || work(turns)).whole_ns;
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
