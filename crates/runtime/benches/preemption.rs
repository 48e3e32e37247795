//! The cost of interrupting requests: the same work with and without, one worker and a dispatcher, through the replay datapath.
//!
//! Fifty requests of half a millisecond of counted work wait from the start, so that every quantum's end finds something else to run.
//! Each system runs once in each round, and is set against the same server that interrupts nobody in that round. It runs once more with the
//! clock read around every probe: from before the one that gives way to after the one that another request goes on from is the
//! *gap*, whose median a machine's stalls do not move; what caches lose by it, and where else time goes, it does not hold.
//!
//! Arguments are parts of the names of the systems to run.

mod common;

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::backlog::{serve, turn, turn_ns, work};
use common::median;
use headway_fiber::suspensions;
use headway_machine::Clock;
use headway_runtime::checkpoint;

const ROUNDS: usize = 15;
const REQUESTS: u32 = 50;
const WORK_NS: f64 = 500_000.0;

/// The same dispatcher, queues, hand-over and fibers; a quantum that never ends.
const BASELINE: &str = "concord,dispatcher=dedicated,q=1s";
const SYSTEMS: [&str; 10] = [
    "jbsq,k=2",
    "concord,dispatcher=dedicated,q=20us",
    "concord,dispatcher=dedicated,q=10us",
    "concord,dispatcher=dedicated,q=5us",
    "concord,dispatcher=dedicated,q=2us",
    "concord,dispatcher=dedicated,q=1us",
    "shinjuku-ci,q=5us",
    "shinjuku-ci,q=2us",
    "tiny-quanta,q=5us",
    "tiny-quanta,q=2us",
];

/// One system's rounds.
#[derive(Default)]
struct Series {
    /// Its time over the baseline's.
    ratios: Vec<f64>,
    /// The added time per interruption, ns.
    costs_ns: Vec<f64>,
    /// Interruptions per request.
    interruptions: Vec<f64>,
    /// Medians of the gaps, ns.
    gaps_ns: Vec<f64>,
}

fn main() {
    let turns = (WORK_NS / turn_ns()) as u64;
    let systems = chosen();
    let mut series: Vec<Series> = systems.iter().map(|_| Series::default()).collect();
    for _ in 0..ROUNDS {
        let (base_ns, _) = run(BASELINE, turns, work);
        for (policy, series) in systems.iter().zip(&mut series) {
            let (ns, preemptions) = run(policy, turns, work);
            series.ratios.push(ns / base_ns);
            series.interruptions.push(preemptions / f64::from(REQUESTS));
            if preemptions > 0.0 {
                series.costs_ns.push((ns - base_ns) / preemptions);
                run(policy, turns, timed_work);
                let mut gaps = std::mem::take(&mut *GAPS.lock().expect("nobody panicked"));
                series.gaps_ns.push(median(&mut gaps));
            }
        }
    }
    println!(
        "{REQUESTS} requests of {:.0} µs on one worker, medians of {ROUNDS} interleaved rounds, beside {BASELINE}\n",
        WORK_NS / 1e3
    );
    for (policy, series) in systems.iter().zip(&mut series) {
        let lost = 100.0 * (median(&mut series.ratios) - 1.0);
        let often = median(&mut series.interruptions);
        print!("{policy:<36} {lost:6.2} % lost {often:7.1} interruptions/request");
        if series.costs_ns.is_empty() {
            println!();
        } else {
            println!(
                " {:7.1} ns each, gap {:6.1} ns",
                median(&mut series.costs_ns),
                median(&mut series.gaps_ns)
            );
        }
    }
}

/// The systems that the command line names, all without a name.
fn chosen() -> Vec<&'static str> {
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|part| !part.starts_with("--"))
        .collect();
    SYSTEMS
        .into_iter()
        .filter(|system| parts.is_empty() || parts.iter().any(|part| system.contains(part)))
        .collect()
}

/// ns of a whole run, and how often it interrupted.
fn run(policy: &str, turns: u64, work: fn(u64)) -> (f64, f64) {
    let served = serve(policy, REQUESTS, WORK_NS as u64, move || work(turns));
    (served.whole_ns, served.preemptions)
}

/// The gaps of the one worker there is.
static GAPS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
/// When that worker came to its last probe, ticks.
static PROBED: AtomicU64 = AtomicU64::new(0);

/// Does the same as [`work`], and records the gaps.
fn timed_work(turns: u64) {
    let clock = Clock::global();
    let mut state = turns;
    let mut gaps = Vec::with_capacity(1024);
    let mut suspended = suspensions();
    for _ in 0..turns {
        state = turn(state);
        PROBED.store(clock.ticks(), Ordering::Relaxed);
        checkpoint();
        if suspensions() != suspended {
            suspended = suspensions();
            let gap = clock.ticks().saturating_sub(PROBED.load(Ordering::Relaxed));
            gaps.push(clock.ns_in(gap) as f64);
        }
    }
    black_box(state);
    GAPS.lock().expect("nobody panicked").append(&mut gaps);
}
