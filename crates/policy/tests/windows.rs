//! DARC's profiling windows: when they close, and what a new reservation needs.

use headway_policy::server::role::{Ingress, Inspect, Local, Monitor};
use headway_policy::server::systems::{
    self, DarcParams, DarcStart, ServerSpec, System, VisitInstance, darc, darc_stable,
};
use headway_policy::{ClassId, Job, JobId, Order, Shape, WorkerId};

const WINDOW: u64 = 100;

fn params() -> DarcParams {
    let mut params = DarcParams {
        start: DarcStart::Observed,
        ..DarcParams::default()
    };
    params.rules.window = WINDOW;
    params
}

fn declared() -> DarcParams {
    DarcParams {
        start: DarcStart::Declared,
        ..params()
    }
}

fn shape(workers: usize) -> Shape {
    Shape::new(workers).class(1_000, 0.5).class(100_000, 0.5)
}

/// One request after the other: arrives, waits, runs, finishes.
struct Traffic<I> {
    ingress: I,
    now_ns: u64,
}

impl<I: Ingress> Traffic<I> {
    fn new(ingress: I) -> Self {
        Self { ingress, now_ns: 0 }
    }

    /// `count` requests of a class with these waiting and service times.
    fn serve(&mut self, count: u64, class: u16, waited_ns: u64, cpu_ns: u64) {
        for _ in 0..count {
            let job = Job::new(JobId(0), ClassId(class), self.now_ns);
            self.ingress.arrived(self.now_ns, job).unwrap();
            self.now_ns += waited_ns;
            let dispatch = self.ingress.poll(self.now_ns).unwrap();
            self.now_ns += cpu_ns;
            self.ingress
                .finished(self.now_ns, dispatch.worker, dispatch.job, cpu_ns);
        }
    }

    fn reserved(&self, class: u16) -> Vec<usize> {
        self.ingress
            .plan()
            .unwrap()
            .reserved(ClassId(class))
            .iter()
            .collect()
    }

    /// A full window of the declared mix, nobody waiting.
    fn first_window(&mut self) {
        self.serve(WINDOW / 2, 0, 0, 1_000);
        self.serve(WINDOW / 2, 1, 0, 100_000);
    }
}

#[test]
fn starts_in_order_of_arrival_and_reserves_after_the_minimum_of_samples() {
    let mut traffic = Traffic::new(darc(&shape(14), params()).ingress);
    traffic.serve(WINDOW / 2, 0, 0, 1_000);
    traffic.serve(WINDOW / 2 - 1, 1, 0, 100_000);
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Arrival);
    traffic.serve(1, 1, 0, 100_000);
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Rank);
    assert_eq!(traffic.reserved(0), [0]);
    assert_eq!(traffic.reserved(1), (1..14).collect::<Vec<_>>());
}

#[test]
fn a_change_of_demand_alone_does_not_revise() {
    let mut traffic = Traffic::new(darc(&shape(14), params()).ingress);
    traffic.first_window();
    traffic.serve(3 * WINDOW, 0, 0, 1_000);
    assert_eq!(traffic.ingress.revisions(), 1);
}

#[test]
fn delay_alone_does_not_revise() {
    let mut traffic = Traffic::new(darc(&shape(14), params()).ingress);
    traffic.first_window();
    traffic.serve(1, 0, 10_001, 1_000);
    traffic.serve(WINDOW / 2 - 1, 0, 0, 1_000);
    traffic.serve(WINDOW / 2, 1, 0, 100_000);
    assert_eq!(traffic.ingress.revisions(), 1);
}

#[test]
fn delay_and_deviation_together_revise() {
    let mut traffic = Traffic::new(darc(&shape(14), params()).ingress);
    traffic.first_window();
    // Service times swap: what was short is long now.
    traffic.serve(WINDOW / 2, 1, 0, 1_000);
    traffic.serve(WINDOW / 2, 0, 10_001, 100_000);
    assert_eq!(traffic.ingress.revisions(), 2);
    assert_eq!(traffic.reserved(1), [0]);
    assert_eq!(traffic.reserved(0), (1..14).collect::<Vec<_>>());
}

#[test]
fn a_delay_of_exactly_the_target_does_not_count() {
    let mut traffic = Traffic::new(darc(&shape(14), params()).ingress);
    traffic.first_window();
    traffic.serve(WINDOW / 2, 1, 0, 1_000);
    traffic.serve(WINDOW / 2, 0, 10_000, 100_000);
    assert_eq!(traffic.ingress.revisions(), 1);
}

#[test]
fn a_class_that_vanished_still_runs_on_the_spillway() {
    let mut traffic = Traffic::new(darc(&shape(14), params()).ingress);
    traffic.first_window();
    traffic.serve(WINDOW, 0, 10_001, 1_000);
    assert_eq!(traffic.reserved(0), (0..14).collect::<Vec<_>>());
    assert_eq!(traffic.reserved(1), [13]);
    traffic.serve(1, 1, 0, 100_000);
}

#[test]
fn reservations_follow_cores_that_come_and_go() {
    let mut traffic = Traffic::new(darc(&shape(4), params()).ingress);
    traffic.first_window();
    assert_eq!(
        (traffic.reserved(0), traffic.reserved(1)),
        (vec![0], vec![1, 2, 3])
    );
    traffic.ingress.worker_removed(traffic.now_ns, WorkerId(0));
    assert_eq!(
        (traffic.reserved(0), traffic.reserved(1)),
        (vec![1], vec![2, 3])
    );
    traffic.ingress.worker_added(traffic.now_ns, WorkerId(0));
    assert_eq!(
        (traffic.reserved(0), traffic.reserved(1)),
        (vec![0], vec![1, 2, 3])
    );
}

#[test]
fn a_known_profile_needs_no_first_window() {
    let params = DarcParams {
        start: DarcStart::Known,
        ..params()
    };
    let traffic = Traffic::new(darc(&shape(14), params).ingress);
    assert_eq!(traffic.reserved(0), [0]);
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Rank);
}

#[test]
fn darc_stable_plans_as_darc_where_that_is_stable() {
    let mut published = Traffic::new(darc(&shape(14), params()).ingress);
    let mut stable = Traffic::new(darc_stable(&shape(14), params()).ingress);
    published.first_window();
    stable.first_window();
    for class in 0..2 {
        assert_eq!(published.reserved(class), stable.reserved(class));
    }
}

/// Longs fill one of two workers, which is more than a reservation may leave them: found in the first window, however late its requests come.
#[test]
fn what_a_class_brings_does_not_depend_on_when_the_first_request_comes() {
    for start_ns in [0, 1_000_000, 1 << 44] {
        let mut traffic = Traffic::new(darc_stable(&shape(2), params()).ingress);
        traffic.now_ns = start_ns;
        traffic.first_window();
        let plan = traffic.ingress.plan().unwrap();
        let starts: Vec<usize> = plan.groups.iter().map(|group| group.start).collect();
        assert_eq!(starts, [0, 0], "from {start_ns} ns on");
    }
}

#[test]
fn it_starts_from_the_declared_means() {
    let traffic = Traffic::new(darc(&shape(14), declared()).ingress);
    assert_eq!(traffic.reserved(0), [0]);
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Rank);
}

#[test]
fn without_a_declared_mean_it_starts_in_order_of_arrival() {
    let shape = Shape::new(14).class(1_000, 0.5).class(0, 0.5);
    let traffic = Traffic::new(darc(&shape, declared()).ingress);
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Arrival);
}

/// Nobody waits too long, and no demand moves from what the window shows: what was declared makes way all the same.
#[test]
fn the_first_window_replaces_what_was_declared() {
    let wrong = Shape::new(14).class(100_000, 0.5).class(1_000, 0.5);
    let mut traffic = Traffic::new(darc(&wrong, declared()).ingress);
    assert_eq!(
        (traffic.reserved(0).len(), traffic.reserved(1).len()),
        (13, 1)
    );
    traffic.first_window();
    assert_eq!(
        (traffic.reserved(0).len(), traffic.reserved(1).len()),
        (1, 13)
    );
    assert_eq!(traffic.ingress.revisions(), 1);
    // Later ones do only where somebody waited.
    traffic.serve(3 * WINDOW, 0, 0, 1_000);
    assert_eq!(traffic.ingress.revisions(), 1);
}

/// 2 000 requests a second: the paper's window would take 25 s.
#[test]
fn a_window_closes_by_its_time_too() {
    let params = DarcParams {
        start: DarcStart::Observed,
        ..DarcParams::default()
    };
    let mut traffic = Traffic::new(darc(&shape(14), params).ingress);
    let pair = |traffic: &mut Traffic<_>| {
        traffic.serve(1, 0, 0, 1_000);
        traffic.serve(1, 1, 0, 100_000);
        traffic.now_ns += 899_000;
    };
    while traffic.ingress.plan().unwrap().order == Order::Arrival {
        assert!(
            traffic.now_ns < 2_000_000_000,
            "it learnt nothing in two seconds"
        );
        pair(&mut traffic);
    }
    assert!(traffic.now_ns >= 1_000_000_000, "{} ns", traffic.now_ns);
    assert_eq!(traffic.reserved(0), [0]);
}

#[test]
fn a_window_of_few_requests_stays_open_whatever_its_time() {
    let params = DarcParams {
        start: DarcStart::Observed,
        ..DarcParams::default()
    };
    let mut traffic = Traffic::new(darc(&shape(14), params).ingress);
    for _ in 0..499 {
        traffic.serve(1, 0, 0, 1_000);
        traffic.serve(1, 1, 0, 100_000);
        traffic.now_ns += 10_000_000_000;
    }
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Arrival);
    traffic.serve(2, 1, 0, 100_000);
    assert_eq!(traffic.ingress.plan().unwrap().order, Order::Rank);
}

/// As printed: 49 999 requests over hours change nothing, one more does.
#[test]
fn darc_paper_serves_as_printed() {
    struct Serves;

    impl VisitInstance for Serves {
        type Output = ();

        fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, system: System<I, L, M>) {
            let mut traffic = Traffic::new(system.ingress);
            for _ in 0..49_999 {
                traffic.serve(1, 0, 0, 1_000);
                traffic.now_ns += 1_000_000_000;
            }
            assert_eq!(traffic.ingress.plan().unwrap().order, Order::Arrival);
            traffic.serve(1, 1, 0, 100_000);
            assert_eq!(traffic.ingress.plan().unwrap().order, Order::Rank);
        }
    }

    let spec: ServerSpec = "darc-paper".parse().unwrap();
    systems::with(&spec, &shape(14), Serves).unwrap();
    assert!("darc-paper,window_time=1s".parse::<ServerSpec>().is_err());
    assert!(
        "darc-paper,profile=declared".parse::<ServerSpec>().is_err() || {
            let spec: ServerSpec = "darc-paper,profile=declared".parse().unwrap();
            spec.check(&shape(14)).is_err()
        }
    );
}
