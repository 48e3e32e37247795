//! The daemon's data plane as the engine sees it.

use crate::fakes::{kthreads, shape};
use crate::promises::shenango;
use headway_policy::host::{AppKind, Counters, KthreadId};
use std::sync::atomic::Ordering;

/// Counters of a lane out of which this many packets were taken, of so many put into it.
fn counters(taken: u64, put: u64) -> Counters {
    Counters {
        head: taken,
        tail: put,
    }
}

/// A second grant before the kthread has run would make it leave its core once for nothing.
#[test]
fn a_packet_for_an_application_without_a_core_brings_one_grant() {
    let (mut arbiter, clock) = shenango(2);
    let (app, newcomer) = kthreads(1, shape(0, 1, AppKind::Latency));
    let number = arbiter.admit(newcomer, &|| 0).unwrap();
    clock.pass(&mut arbiter, 5_000);
    assert_eq!(app.lines.orders(0).granted().0, 0);
    assert!(arbiter.is_woken_for(number));
    for packets in 1..20 {
        arbiter.show_packets(number, KthreadId(0), counters(packets - 1, packets));
        for _ in 0..3 {
            clock.pass(&mut arbiter, 200);
            assert_eq!(app.lines.orders(0).granted().0, packets);
            assert!(!arbiter.is_woken_for(number));
        }
        arbiter.show_packets(number, KthreadId(0), counters(packets, packets));
        let grant = app.running(0).expect("it was granted a core");
        app.lines.line(0).leave(grant);
        clock.pass(&mut arbiter, 200);
        assert!(arbiter.is_woken_for(number));
    }
}

#[test]
fn applications_know_the_core_of_a_daemon_without_its_own_and_it_knows_who_has_it() {
    let (mut arbiter, clock) = shenango(2);
    let told = |app: &crate::fakes::FakeApp| {
        let line = app.lines.arbiter();
        line.daemons_core.load(Ordering::Relaxed)
    };
    let (first, newcomer) = kthreads(1, shape(0, 1, AppKind::Latency));
    let number = arbiter.admit(newcomer, &|| 0).unwrap();
    assert_eq!(told(&first), 0);
    assert!(arbiter.runs_on(10), "nobody has it");
    assert!(!arbiter.runs_on(900), "it is not dealt out");
    assert!(arbiter.runs_on(11));
    assert_eq!(told(&first), 12);
    let (second, newcomer) = kthreads(2, shape(0, 1, AppKind::Latency));
    arbiter.admit(newcomer, &|| 0).unwrap();
    assert_eq!(told(&second), 12);
    arbiter.show_packets(number, KthreadId(0), counters(0, 1));
    clock.pass(&mut arbiter, 5_000);
    let core = first.lines.orders(0).core() as usize;
    assert!(!arbiter.runs_on(core), "the first application has it");
    assert!(arbiter.runs_on(21 - core), "the other one is idle");
}
