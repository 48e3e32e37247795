//! In which order the systems of `ordered.rs` serve, request by request.

use headway_contract::PlainQueues;
use headway_policy::server::role::{Dispatch, Ingress, Local, Monitor, Preempt};
use headway_policy::server::systems::{self, System, VisitInstance};
use headway_policy::{ClassId, Job, JobId, Shape, WorkerId};
use proptest::prelude::*;

/// A class that takes 1 µs and one that takes 100 µs.
fn shape(workers: usize) -> Shape {
    Shape::new(workers).class(1_000, 0.5).class(100_000, 0.5)
}

/// Everything arrives while one worker is busy; then it serves all of it, one after the other.
struct Serve(Vec<Job>);

impl VisitInstance for Serve {
    type Output = Vec<Job>;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(
        self,
        mut system: System<I, L, M>,
    ) -> Vec<Job> {
        let ingress = &mut system.ingress;
        let mut now_ns = 1 << 40;
        for &job in &self.0 {
            ingress.arrived(now_ns, job).expect("there is no bound");
        }
        let mut order = Vec::new();
        while let Some(Dispatch { worker, job }) = ingress.poll(now_ns) {
            let job = self.0[job.index()];
            assert_eq!(ingress.poll(now_ns), None, "there is one worker");
            now_ns += job.size_ns;
            ingress.finished(now_ns, worker, job.id, job.size_ns);
            order.push(job);
        }
        order
    }
}

fn served(policy: &str, jobs: Vec<Job>) -> Vec<Job> {
    systems::with(&policy.parse().unwrap(), &shape(1), Serve(jobs)).unwrap()
}

fn job(id: usize, class: u16, arrived_ns: u64, size_ns: u64) -> Job {
    Job {
        size_ns,
        ..Job::new(JobId(id as u32), ClassId(class), arrived_ns)
    }
}

/// This many requests of each class in turn, all present from the start, with their class's service time.
fn backlog(each: usize) -> Vec<Job> {
    (0..2 * each)
        .map(|id| match id % 2 {
            0 => job(id, 0, 0, 1_000),
            _ => job(id, 1, 0, 100_000),
        })
        .collect()
}

fn requests() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec((0..3u16, 0..1_000_000u64, 1..200_000u64), 1..100).prop_map(|drawn| {
        drawn
            .into_iter()
            .enumerate()
            .map(|(id, (class, arrived_ns, size_ns))| job(id, class, arrived_ns, size_ns))
            .collect()
    })
}

proptest! {
    #[test]
    fn the_shortest_goes_first(jobs in requests()) {
        for policy in ["sjf", "srpt"] {
            let mut expected = jobs.clone();
            expected.sort_by_key(|job| job.size_ns);
            prop_assert_eq!(served(policy, jobs.clone()), expected);
        }
    }

    /// SLOs are 10 times the mean: 10 µs and 1 ms. UNKNOWN has none, and comes last.
    #[test]
    fn the_earliest_deadline_goes_first(jobs in requests()) {
        let mut expected = jobs.clone();
        expected.sort_by_key(|job: &Job| match job.class {
            ClassId(0) => job.arrived_ns + 10_000,
            ClassId(1) => job.arrived_ns + 1_000_000,
            _ => (1 << 62) + job.arrived_ns,
        });
        prop_assert_eq!(served("edf", jobs), expected);
    }

    /// Deficit round robin's bound (Shreedhar and Varghese, Lemma 2 and Theorem 2): while both
    /// classes wait, what they were served differs by less than a quantum and two requests.
    #[test]
    fn deficit_round_robin_is_fair_in_time(quantum_ns in 1u64..300_000) {
        let order = served(&format!("drr,quantum={quantum_ns}ns"), backlog(2_000));
        let mut served_ns = [0i64; 2];
        let both = order.iter().take_while({
            let mut left = [2_000; 2];
            move |job| {
                left[job.class.index()] -= 1;
                left.iter().all(|&left| left > 0)
            }
        });
        let mut checked = 0;
        for job in both {
            served_ns[job.class.index()] += job.size_ns as i64;
            let bound_ns = quantum_ns as i64 + 2 * 100_000;
            prop_assert!((served_ns[0] - served_ns[1]).abs() <= bound_ns, "{served_ns:?}");
            checked += 1;
        }
        prop_assert!(checked > 1_000);
    }
}

fn classes(order: &[Job]) -> Vec<u16> {
    order.iter().map(|job| job.class.0).collect()
}

#[test]
fn weighted_round_robin_serves_by_weight() {
    let order = classes(&served("wrr,weights=3/1", backlog(6)));
    assert_eq!(order, [0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1]);
    let order = classes(&served("wrr", backlog(3)));
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn an_slo_that_is_declared_replaces_the_multiple_of_the_mean() {
    let mut shape = shape(1);
    shape.classes[1].slo_ns = Some(5_000);
    let jobs = vec![job(0, 0, 0, 1_000), job(1, 1, 1, 100_000)];
    let order = systems::with(&"edf".parse().unwrap(), &shape, Serve(jobs)).unwrap();
    assert_eq!(classes(&order), [1, 0]);
}

/// Waits of 1 µs for an SLO of 10 µs and of 50 µs for one of 1 ms: the short is nearer to its own.
#[test]
fn the_multi_queue_goes_by_the_wait_for_the_slo() {
    let now_ns = 1 << 40;
    let jobs = vec![
        job(0, 1, now_ns - 50_000, 100_000),
        job(1, 0, now_ns - 1_000, 1_000),
    ];
    assert_eq!(classes(&served("shinjuku-mq", jobs)), [0, 1]);
    let jobs = vec![
        job(0, 1, now_ns - 500_000, 100_000),
        job(1, 0, now_ns - 1_000, 1_000),
    ];
    assert_eq!(classes(&served("shinjuku-mq", jobs)), [1, 0]);
}

/// After one long of 100 µs, a hundred shorts have the same service behind them.
#[test]
fn by_virtual_time_classes_get_the_same_service() {
    let order = classes(&served("shinjuku-mq,pick=bvt", backlog(300)));
    let shorts_between: Vec<usize> = order[..303]
        .split(|&class| class == 1)
        .map(<[u16]>::len)
        .collect();
    assert_eq!(shorts_between, [1, 100, 100, 99]);
}

/// Two hosts, one of them for longs. The second long waits even beside an idle worker; a short
/// does not; and whichever host is free first takes over as the long host.
#[test]
fn cycle_stealing_runs_shorts_on_the_long_host_while_no_long_waits() {
    let spec = "cscq,long=1".parse().unwrap();
    systems::with(&spec, &shape(2), StealCycles).unwrap();
}

struct StealCycles;

impl VisitInstance for StealCycles {
    type Output = ();

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, mut system: System<I, L, M>) {
        steal_cycles(&mut system.ingress);
    }
}

fn steal_cycles(ingress: &mut impl Ingress) {
    fn arrive(ingress: &mut impl Ingress, id: usize, class: u16) -> Option<Dispatch> {
        ingress.arrived(0, job(id, class, 0, 1_000)).unwrap();
        ingress.poll(0)
    }
    let at = |worker, job| {
        Some(Dispatch {
            worker: WorkerId(worker),
            job: JobId(job),
        })
    };
    assert_eq!(arrive(ingress, 0, 1), at(0, 0));
    assert_eq!(arrive(ingress, 1, 1), None, "one long at a time");
    assert_eq!(arrive(ingress, 2, 0), at(1, 2));
    assert_eq!(arrive(ingress, 3, 0), None, "both hosts are busy");
    ingress.finished(0, WorkerId(1), JobId(2), 1_000);
    assert_eq!(
        ingress.poll(0),
        at(1, 3),
        "the short, though a long came before it"
    );
    ingress.finished(0, WorkerId(0), JobId(0), 1_000);
    assert_eq!(
        ingress.poll(0),
        at(0, 1),
        "the long is first on the long host"
    );
    ingress.finished(0, WorkerId(0), JobId(1), 1_000);
    assert_eq!(
        arrive(ingress, 4, 0),
        at(0, 4),
        "which steals cycles when no long waits"
    );
    assert_eq!(arrive(ingress, 5, 1), None);
    ingress.finished(0, WorkerId(1), JobId(3), 1_000);
    assert_eq!(ingress.poll(0), at(1, 5), "the hosts change names");
}

/// The policy interrupts one long request per blocked short request, the earliest begun first. A
/// long request at the head interrupts none.
#[test]
fn as_many_longs_stop_as_shorts_are_blocked() {
    let spec = "on-blocked,cost=1us".parse().unwrap();
    systems::with(&spec, &shape(3), StopLongs).unwrap();
}

struct StopLongs;

impl VisitInstance for StopLongs {
    type Output = ();

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, system: System<I, L, M>) {
        stop_longs(system);
    }
}

fn stop_longs<I: Ingress, L: Local, M: Monitor>(mut system: System<I, L, M>) {
    let toy = PlainQueues::new(3, 8);
    for worker in 0..3usize {
        let long = job(worker, 1, 0, 100_000);
        system.ingress.arrived(0, long).unwrap();
        let dispatch = system.ingress.poll(0).expect("a worker is idle");
        let began_ns = 10 - worker as u64;
        system
            .monitor
            .started(began_ns, dispatch.worker, &long, 7, &toy);
    }
    let System {
        ingress, monitor, ..
    } = &mut system;
    let mut told = |id, class| {
        ingress.arrived(20, job(id, class, 20, 1_000)).unwrap();
        assert_eq!(ingress.poll(20), None, "all are busy");
        let stops = std::iter::from_fn(|| monitor.poll(20, ingress, &toy));
        stops.collect::<Vec<Preempt>>()
    };
    let stop = |worker| {
        let worker = WorkerId(worker);
        vec![Preempt { worker, epoch: 7 }]
    };
    assert_eq!(told(3, 0), stop(2), "it was begun first");
    assert_eq!(told(4, 0), stop(1));
    assert_eq!(told(5, 1), [], "a long may wait");
    assert_eq!(told(6, 0), [], "and a short behind it");
}
