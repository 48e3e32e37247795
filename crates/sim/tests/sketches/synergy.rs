//! SYNERGY: hashed steering, Algorithm 5.2 on each worker, Algorithm 5.3 on the timer core. The
//! two share flags, as in the paper: each has one writer.

mod timer_core;
mod worker;

use crate::{LONG, Sight, assert_same, audited, bimodal};
use headway_policy::Shape;
use headway_policy::systems::{self, System};
use headway_sim::{Experiment, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use timer_core::TimerCore;
use worker::Worker;

#[derive(Clone, Copy)]
struct Params {
    factor: u64,
    congested_factor: u64,
    steal_threshold: usize,
    /// 0: never congested.
    thresh_wqd_ns: u64,
    first_quantum_ns: u64,
}

const DEFAULT: Params = Params {
    factor: 2,
    congested_factor: 2,
    steal_threshold: 0,
    thresh_wqd_ns: 0,
    first_quantum_ns: 5_000,
};

/// What workers and timer core tell each other.
struct Flags {
    check_wait_queue: AtomicBool,
    /// Per worker the moving average of its shorts, 0 before the first.
    short_ns: Vec<AtomicU64>,
}

fn synergy(shape: &Shape, params: Params) -> System<systems::Steered, Worker, TimerCore> {
    let flags = Arc::new(Flags {
        check_wait_queue: AtomicBool::new(false),
        short_ns: (0..shape.workers).map(|_| AtomicU64::new(0)).collect(),
    });
    let base = systems::d_fcfs(shape);
    let worker = |me| Worker {
        me,
        params,
        flags: flags.clone(),
    };
    System {
        name: "synergy",
        params: base.params,
        ingress: base.ingress,
        locals: (0..shape.workers).map(worker).collect(),
        monitor: TimerCore::new(shape.workers, params, flags.clone()),
        depth: base.depth,
    }
}

/// Only longs, and only for what is in the worker's own queue.
fn may_interrupt(sight: &Sight) -> bool {
    sight.job.class.0 == LONG && sight.own > 0
}

fn run(experiment: &Experiment, params: Params) -> Outcome {
    audited(experiment, may_interrupt, |shape: &Shape| {
        synergy(shape, params)
    })
}

#[test]
fn longs_give_way_and_shorts_never() {
    let outcome = run(&bimodal(), DEFAULT);
    assert!(outcome.run.meta.preemptions > 0);
    assert_eq!(outcome.wasted_cores, 0.0);
    let stealing = Experiment {
        policy: "work-stealing".parse().unwrap(),
        ..bimodal()
    };
    let short = |outcome: &Outcome| outcome.run.classes[0].latency_us.p99;
    assert!(short(&outcome) < short(&stealing.run().unwrap()) / 2.0);
}

/// Queues at the threshold stay alone, but what is in the wait queue anyone idle takes at once:
/// the audit would see an idle worker beside it.
#[test]
fn a_preempted_long_wakes_whoever_is_idle() {
    let steal_threshold = 2;
    let outcome = run(
        &bimodal().load(0.5),
        Params {
            steal_threshold,
            ..DEFAULT
        },
    );
    assert!(outcome.run.meta.preemptions > 0 && outcome.wasted_cores > 0.0);
}

/// Twice a millisecond is longer than any request: with one worker nothing but FIFO is left.
#[test]
fn the_quantum_follows_the_shorts() {
    let one = bimodal().workers(1).load(0.8);
    let (factor, first_quantum_ns) = (2_000, 2_000_000);
    let endless = Params {
        factor,
        first_quantum_ns,
        ..DEFAULT
    };
    assert_same(&run(&one, endless), &one.run().unwrap());
    let interruptions = |factor| run(&one, Params { factor, ..DEFAULT }).run.meta.preemptions;
    assert!(interruptions(2) > interruptions(10));
}

/// A wait queue that stands still turns the workers to it and lengthens the quantum: longs gain.
#[test]
fn congestion_helps_the_longs() {
    let (thresh_wqd_ns, congested_factor) = (20_000, 8);
    let watched = Params {
        thresh_wqd_ns,
        congested_factor,
        ..DEFAULT
    };
    let long = |params| run(&bimodal(), params).run.classes[1].latency_us.mean;
    assert!(long(watched) < long(DEFAULT));
    // The flag alone, without the longer quantum, already does it.
    assert!(
        long(Params {
            thresh_wqd_ns,
            ..DEFAULT
        }) < long(DEFAULT)
    );
}
