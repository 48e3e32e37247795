//! Every request and reply is counted where it belongs.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use crate::support::{Fate, LOSSY_NS, Server, load};
use headway_load::{Flaw, Load, LoadReport, ReceiveClock, ReplySource, Statuses, Threads};
use headway_net::header::Status;
use proptest::prelude::*;

fn run(load: &Load) -> LoadReport {
    load.run(|_| ControlFlow::Continue(())).unwrap()
}

/// Five of each kind, so that a sum of several kinds differs from one kind.
fn all_fates() -> Vec<Fate> {
    use Fate::*;
    let statuses = [
        Status::Shed,
        Status::TooLarge,
        Status::Error,
        Status::Draining,
        Status::BadRequest,
    ];
    let kinds = [Drop, Twice, Hold, Short, Echo, WrongClass, WrongIndex];
    let one_of_each = kinds.into_iter().chain(statuses.map(Refuse));
    let five_of_each = one_of_each.flat_map(|fate| [fate; 5]);
    [Answer; 39]
        .into_iter()
        .chain(five_of_each)
        .chain([Answer])
        .collect()
}

#[test]
fn classes_go_out_as_the_types_that_they_are_given() {
    let server = Server::with(Vec::new());
    let mut load = load(server.addr, 200);
    // The server answers with the type it was sent, so replies match only where both ends heed the map.
    load.types = vec![7, 200];
    load.keep_trace = true;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let classes = std::sync::Arc::clone(&seen);
    load.body = std::sync::Arc::new(move |class, _, _: &mut [u8]| {
        classes.lock().unwrap().push(u16::from(class));
        0
    });
    let report = run(&load);
    assert_eq!(report.delivery.invalid, 0);
    assert_eq!(report.statuses.ok, report.delivery.answered);
    assert_eq!(server.types(), [7, 200]);
    let traced: Vec<u16> = report.trace.iter().map(|record| record.class).collect();
    assert_eq!(traced, *seen.lock().unwrap(), "bodies are those of classes");
    assert!(report.trace.is_sorted_by_key(|record| record.at_ns));
    assert!(
        report
            .trace
            .iter()
            .map(|record: &headway_workload::TraceRecord| record.service_ns)
            .all(|ns| ns == crate::support::EXECUTION_NS)
    );
    load.types = vec![7];
    assert!(load.run(|_| ControlFlow::Continue(())).is_err());
}

/// A rack's servers in direct mode answer in their own names.
#[test]
fn replies_from_other_addresses_count_where_the_load_says_so() {
    for threads in [Threads::One, Threads::Two] {
        for (replies_of, answered) in [(ReplySource::Target, 20), (ReplySource::Anyone, 60)] {
            let fates = [
                [Fate::Answer; 20],
                [Fate::Elsewhere; 20],
                [Fate::Elsewhere; 20],
            ]
            .concat();
            let server = Server::with(fates);
            let mut load = load(server.addr, 60);
            load.timeout_ns = LOSSY_NS;
            (load.threads, load.replies_of) = (threads, replies_of);
            let delivery = run(&load).delivery;
            let counts = (delivery.sent, delivery.answered, delivery.lost);
            assert_eq!(counts, (60, answered, 60 - answered), "{replies_of:?}");
            assert_eq!((delivery.invalid, delivery.duplicates), (0, 0));
        }
    }
}

fn check_all_fates(threads: Threads) {
    let fates = all_fates();
    let server = Server::with(fates.clone());
    let mut load = load(server.addr, fates.len() as u64);
    load.threads = threads;
    load.timeout_ns = LOSSY_NS;
    let report = run(&load);
    let delivery = report.delivery;
    assert_eq!(delivery.sent, 100);
    assert_eq!(delivery.lost, 25, "dropped and garbled");
    assert_eq!(delivery.answered, 75);
    assert_eq!(delivery.duplicates, 5);
    assert_eq!(delivery.invalid, 20);
    let statuses = Statuses {
        ok: 50,
        shed: 5,
        too_large: 5,
        error: 5,
        draining: 5,
        bad_request: 5,
    };
    assert_eq!(report.statuses, statuses);
    assert_eq!(report.corrected.overall().count(), 50);
    assert_eq!(report.run.meta.dropped, 35, "lost, shed and draining");
    assert_eq!(report.corrected.overall().dropped(), 35);
    assert!(report.flaws.contains(&Flaw::Lost { fraction: 0.25 }));
    assert!(report.flaws.contains(&Flaw::Failed { fraction: 0.15 }));
}

#[test]
fn one_thread_counts_every_fate_exactly() {
    check_all_fates(Threads::One);
}

#[test]
fn two_threads_count_every_fate_exactly() {
    check_all_fates(Threads::Two);
}

#[test]
fn a_server_that_answers_everything_leaves_nothing_to_object_to() {
    let server = Server::with(Vec::new());
    let mut load = load(server.addr, 1_000);
    load.warm_up = 0.1;
    load.late_bound_ns = u64::MAX;
    let report = run(&load);
    assert!(report.is_valid(), "{:?}", report.flaws);
    assert_eq!(report.delivery.answered, 1_000);
    assert_eq!(report.run.meta.requests, 1_000);
    assert_eq!(
        report.corrected.overall().count(),
        900,
        "warm-up is left out"
    );
    assert_eq!(report.raw.overall().count(), 900);
    assert_eq!(report.run.extras.delivery, Some(report.delivery));
    assert!(matches!(report.receive_clock, ReceiveClock::Kernel { .. }));
}

#[test]
fn nobody_listening_is_said() {
    // An address of this process's own, and a port that the system gives to no socket that asks for any.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let addr = SocketAddr::from(([127, 128 | high, middle, low], 9));
    let mut load = load(addr, 50);
    load.timeout_ns = 1_000_000;
    let report = run(&load);
    assert_eq!((report.delivery.sent, report.delivery.lost), (50, 50));
    assert!(
        matches!(report.flaws[0], Flaw::Refused { .. }),
        "{:?}",
        report.flaws
    );
    let told = report.flaws[0].to_string();
    let named = format!("no server listens on udp://{addr}");
    assert!(told.contains(&named), "{told}");
}

#[test]
fn stopping_early_reports_what_was_sent() {
    let server = Server::with(Vec::new());
    let report = load(server.addr, 1_000_000)
        .run(|_| ControlFlow::Break(()))
        .unwrap();
    assert!(report.delivery.sent < 1_000_000);
    assert_eq!(report.delivery.answered, report.delivery.sent);
}

fn any_fate() -> impl Strategy<Value = Fate> {
    use Fate::*;
    prop_oneof![
        4 => Just(Answer),
        1 => Just(Drop),
        1 => Just(Twice),
        1 => Just(Hold),
        1 => Just(Short),
        1 => Just(WrongIndex),
        1 => Just(Refuse(Status::Shed)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_or_lost(
        fates in prop::collection::vec(any_fate(), 1..200),
        two in any::<bool>(),
    ) {
        let count = |wanted: &[Fate]| fates.iter().filter(|fate| wanted.contains(fate)).count() as u64;
        let server = Server::with(fates.clone());
        let mut load = load(server.addr, fates.len() as u64);
        load.timeout_ns = 50_000_000;
        load.threads = if two { Threads::Two } else { Threads::One };
        let delivery = run(&load).delivery;
        prop_assert_eq!(delivery.sent, fates.len() as u64);
        prop_assert_eq!(delivery.answered + delivery.lost, delivery.sent);
        prop_assert!(delivery.lost >= count(&[Fate::Drop, Fate::Short, Fate::WrongIndex]));
        prop_assert!(delivery.duplicates <= count(&[Fate::Twice]));
        prop_assert!(delivery.invalid <= count(&[Fate::Short, Fate::WrongIndex]));
    }
}
