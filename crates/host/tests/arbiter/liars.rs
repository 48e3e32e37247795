//! Single lies, and the arbiter's reaction.

use crate::fakes::{SHARED, Turned, host_cores, kthreads, shape};
use headway_host::arbiter::{AdmissionError, Arbiter};
use headway_kthread::Grant;
use headway_policy::host::{AppKind, HostShape, HostTopology, Shenango, ShenangoRules};
use std::sync::atomic::Ordering;

fn engine(cores: usize) -> (Arbiter<Shenango, crate::fakes::FakePeer>, Turned) {
    let vacant = HostShape::vacant(HostTopology::flat(cores), 8, 1);
    let allocator = Shenango::new(&vacant, ShenangoRules::default());
    (
        Arbiter::new(allocator, host_cores(cores), true),
        Turned::default(),
    )
}

/// A kthread claims to have left its core and runs on: the arbiter confines it elsewhere as soon as the core has another tenant.
#[test]
fn who_says_that_it_left_and_did_not_loses_the_core_all_the_same() {
    let (mut arbiter, clock) = engine(1);
    let now = || clock.0.get();
    let (liar, newcomer) = kthreads(1, shape(0, 1, AppKind::Latency));
    arbiter.admit(newcomer, &now).unwrap();
    liar.lines.app().wants.fetch_add(1, Ordering::Relaxed);
    clock.pass(&mut arbiter, 1_000);
    assert_eq!(liar.mask(0), [10]);
    liar.lines.line(0).leave(Grant(u64::MAX));
    clock.pass(&mut arbiter, 1_000);
    let (honest, newcomer) = kthreads(2, shape(0, 1, AppKind::Latency));
    arbiter.admit(newcomer, &now).unwrap();
    honest.lines.app().wants.fetch_add(1, Ordering::Relaxed);
    clock.pass(&mut arbiter, 1_000);
    assert_eq!((liar.mask(0), honest.mask(0)), (vec![SHARED], vec![10]));
}

/// A kthread names a thread of another process: no thread is moved or signalled.
#[test]
fn a_thread_of_another_process_is_left_alone() {
    let (mut arbiter, clock) = engine(2);
    let now = || clock.0.get();
    let (victim, newcomer) = kthreads(1, shape(0, 1, AppKind::Latency));
    arbiter.admit(newcomer, &now).unwrap();
    let (liar, newcomer) = kthreads(2, shape(0, 1, AppKind::Latency));
    liar.lines.line(0).set_tid(victim.tid(0));
    arbiter.admit(newcomer, &now).unwrap();
    liar.lines.app().wants.fetch_add(1, Ordering::Relaxed);
    clock.pass(&mut arbiter, 1_000);
    assert_eq!(arbiter.report(0, 0, 0).apps[1].cores, [10], "it has a core");
    assert_eq!(victim.mask(0), [0, 1], "and the other stays where it was");
    assert_eq!(liar.process.lock().unwrap().touched_strangers, 0);
    assert!(victim.process.lock().unwrap().signals.is_empty());
}

/// Two claim the same core of the last daemon: the first gets it, and the other is ordered to leave and moved off that core.
#[test]
fn a_core_that_two_claim_is_the_firsts() {
    let (mut arbiter, clock) = engine(2);
    let now = || clock.0.get();
    for id in [1, 2] {
        let shape = shape(0, 1, AppKind::Latency);
        let (app, _) = kthreads(id, shape);
        app.lines.orders(0).grant_as(10, Grant(5));
        arbiter.admit(app.newcomer(shape, true), &now).unwrap();
        let expected = if id == 1 { 10 } else { SHARED };
        assert_eq!(app.mask(0), [expected]);
        assert_eq!(app.lines.orders(0).is_revoked(Grant(5)), id == 2);
        assert_eq!(
            app.process.lock().unwrap().signals.len(),
            usize::from(id == 2)
        );
    }
}

#[test]
fn memory_that_says_what_cannot_be_is_refused() {
    let (mut arbiter, _) = engine(1);
    let shape = shape(0, 1, AppKind::Latency);
    let (app, _) = kthreads(1, shape);
    app.lines.orders(0).grant_as(10, Grant(u64::MAX));
    let refused = arbiter.admit(app.newcomer(shape, true), &|| 0).unwrap_err();
    assert_eq!(refused, AdmissionError::Grants(u64::MAX));
}

/// A claim to a core that does not exist has no effect.
#[test]
fn a_claim_of_a_core_that_is_not_dealt_out_is_ignored() {
    let (mut arbiter, _) = engine(1);
    let shape = shape(0, 1, AppKind::Latency);
    let (app, _) = kthreads(1, shape);
    app.lines.orders(0).grant_as(77, Grant(1));
    arbiter.admit(app.newcomer(shape, true), &|| 0).unwrap();
    assert!(arbiter.report(0, 0, 0).cores[0].app.is_none());
}
