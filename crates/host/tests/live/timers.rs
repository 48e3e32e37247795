//! Timers of kthreads: an application that has nothing to do gets no core.

use crate::signals::runtime_of;
use crate::stage::{Stage, cores_of, may, report, turn, until};
use headway_threads::{STOP_AT_SIGNAL, sleep};
use std::hint::black_box;
use std::thread;
use std::time::Duration;

/// Each leaves the kthreads' timers in another state.
const ROUNDS: usize = 12;
const THREADS: usize = 16;
/// In a second without work.
const GRANTS_MAX: u64 = 10;

/// Threads that compute and sleep, so that kthreads fire each other's timers.
#[test]
fn an_application_without_work_is_granted_no_core() {
    let _turn = turn();
    if !may("an_application_without_work_is_granted_no_core") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let grants = || report(&daemon).grant.count;
    for round in 0..ROUNDS {
        let (_client, runtime) = runtime_of(2, &stage.socket(), STOP_AT_SIGNAL);
        let threads: Vec<_> = (0..THREADS)
            .map(|index| runtime.spawn(move || compute_and_sleep(index + round)))
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        until("the cores are given back", || {
            cores_of(&report(&daemon), "web") == Some(0)
        });
        let before = grants();
        thread::sleep(Duration::from_secs(1));
        let more = grants() - before;
        assert!(more <= GRANTS_MAX, "{more} grants of round {round}");
        drop(runtime);
        until("it is gone", || report(&daemon).apps.is_empty());
    }
    daemon.stop();
}

fn compute_and_sleep(index: usize) {
    for turn in 0..30 {
        for turn in 0..1_000 * (index % 7) {
            black_box(turn);
        }
        let pause_us = 20 + (index * 37 + turn * 53) % 300;
        sleep(Duration::from_micros(pause_us as u64));
    }
}
