//! The start and the content of a measurement. The bounds follow from the order of events, so the
//! machine's speed does not matter.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{EXECUTION_NS, Fate, Server, load, workload};
use headway_load::{Extent, Flaw, Load, LoadError, LoadReport, MAX_BODY_BYTES, ServiceTime};
use headway_workload::{Generator, Offered, Workload};

fn run(load: &Load) -> LoadReport {
    load.run(|_| ControlFlow::Continue(())).unwrap()
}

fn max_ns(report: &LoadReport) -> (u64, u64) {
    let max = |recorder: &headway_report::Recorder| recorder.overall().latency_ns().max().unwrap();
    (max(&report.corrected), max(&report.raw))
}

#[test]
fn a_stalled_server_does_not_stall_the_sends() {
    let server = Server::with(vec![Fate::Hold; 200]);
    let load = load(server.addr, 200);
    let times: Vec<u64> = Generator::new(&load.workload, load.offered, load.seed)
        .take(200)
        .map(|arrival| arrival.at_ns)
        .collect();
    let report = run(&load);
    assert_eq!(report.delivery.answered, 200);
    // No reply came before the last request left, so a client that waited for any would never end.
    assert!(max_ns(&report).0 >= times[199] - times[0]);
}

#[test]
fn latency_counts_from_the_intended_time_and_raw_from_the_send() {
    const STALL: Duration = Duration::from_millis(30);
    let server = Server::with(Vec::new());
    let mut load = load(server.addr, 300);
    load.keep_answers = true;
    load.body = Arc::new(|_, index, _| {
        if index == 100 {
            std::thread::sleep(STALL);
        }
        0
    });
    let report = run(&load);
    let (corrected_ns, raw_ns) = max_ns(&report);
    assert!(u128::from(corrected_ns) >= STALL.as_nanos());
    assert!(raw_ns <= corrected_ns);
    assert!(report.delivery.late >= 1);
    let kept = report.answers.iter();
    let kept_ns = kept.map(|answer| (answer.since_due_ns, answer.since_sent_ns));
    let (due_ns, sent_ns): (Vec<u64>, Vec<u64>) = kept_ns.unzip();
    let most = |values: &[u64]| values.iter().max().copied();
    assert_eq!(
        (most(&due_ns), most(&sent_ns)),
        (Some(corrected_ns), Some(raw_ns))
    );
    let lag_ns = report.lag_ns.max().unwrap();
    assert!(u128::from(lag_ns) >= STALL.as_nanos() && report.lag_ns.count() == 300);
}

#[test]
fn a_client_that_cannot_keep_up_says_so() {
    let server = Server::with(Vec::new());
    let mut load = load(server.addr, 50);
    load.late_bound_ns = 100_000;
    load.body = Arc::new(|_, _, _| {
        std::thread::sleep(Duration::from_millis(1));
        0
    });
    let report = run(&load);
    assert_eq!(report.delivery.late, 50);
    let late = Flaw::Late {
        fraction: 1.0,
        bound_ns: 100_000,
    };
    assert_eq!(report.flaws, [late]);
    assert!(
        late.to_string()
            .starts_with("100.00 % of the requests left more than 0.1 ms late")
    );
}

#[test]
fn slowdown_divides_by_the_nominal_or_the_reported_service_time() {
    let server = Server::with(Vec::new());
    let mut load = load(server.addr, 200);
    let nominal = run(&load);
    assert_eq!(nominal.run.classes[0].service_us, 1.0);
    assert_eq!(nominal.run.classes[1].service_us, 10.0);
    load.service_time = ServiceTime::Reported;
    let reported = run(&load);
    for class in &reported.run.classes {
        assert_eq!(class.service_us, EXECUTION_NS as f64 / 1e3);
        let ratio = class.slowdown.max * class.service_us / class.latency_us.max;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}

#[test]
fn bodies_get_their_class_and_index_and_all_the_room() {
    let server = Server::with(Vec::new());
    // Few enough for the least buffer a kernel gives, should the larger one be refused.
    let mut load = load(server.addr, 40);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    load.body = Arc::new(move |class, index, room| {
        record.lock().unwrap().push((class, index));
        room.len()
    });
    let report = run(&load);
    assert_eq!(report.delivery.answered, 40);
    let expected: Vec<(u8, u32)> = Generator::new(&load.workload, load.offered, load.seed)
        .zip(0..40)
        .map(|(arrival, index)| (arrival.class as u8, index))
        .collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
#[should_panic(expected = "longer than its buffer")]
fn a_body_longer_than_its_room_is_a_mistake_of_the_caller() {
    let server = Server::with(Vec::new());
    let mut load = load(server.addr, 10);
    load.threads = headway_load::Threads::Two;
    load.body = Arc::new(|_, _, _| MAX_BODY_BYTES + 1);
    run(&load);
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let target = "127.0.0.1:9".parse().unwrap();
    let with = |extent| {
        let load = Load::new(target, workload(), Offered::Rate(1_000.0), extent);
        load.run(|_| ControlFlow::Continue(()))
    };
    let nothing = with(Extent::Duration { ns: 1 }).unwrap_err();
    assert!(
        nothing.to_string().contains("\"two\" has no request"),
        "{nothing}"
    );
    let huge = with(Extent::Requests { count: u64::MAX }).unwrap_err();
    assert!(matches!(huge, LoadError::TooMany { .. }), "{huge}");
    let mut all_warm_up = load(target, 10);
    all_warm_up.warm_up = 1.0;
    let error = all_warm_up.run(|_| ControlFlow::Continue(())).unwrap_err();
    assert!(error.to_string().contains("nothing to measure"), "{error}");
}

#[test]
fn more_classes_than_the_header_can_name_are_refused() {
    let workload = Workload::new(
        "wide",
        (0..256)
            .map(|i: usize| headway_workload::Class {
                name: format!("class-{i}"),
                share: 1.0 / 256.0,
                ..workload().classes[0].clone()
            })
            .collect(),
    );
    let mut load = load("127.0.0.1:9".parse().unwrap(), 10);
    load.workload = workload;
    let error = load.run(|_| ControlFlow::Continue(())).unwrap_err();
    assert!(error.to_string().contains("256 classes"), "{error}");
}
