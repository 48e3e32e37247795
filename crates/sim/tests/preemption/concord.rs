//! Concord: bounded queues at the workers (the audit holds them to k), flags for the quantum, a
//! dispatcher that works.

use super::{
    Experiment, Outcome, assert_same, audited, bimodal, experiment, flood, policy, shinjuku,
    something_waits, spec,
};
use headway_policy::Shape;
use headway_policy::server::systems::{self, System};
use headway_policy::spec::Spec;
use headway_sim::Costs;
use headway_workload::{Class, ServiceDistribution, Workload};

/// Without costs and without a working dispatcher unless the parameters say otherwise.
fn run(experiment: &Experiment, params: &str) -> Outcome {
    let text = format!("concord,notif=0,switch=0,next=0,dispatcher=dedicated,{params}");
    let spec = spec(&text);
    audited(experiment, something_waits, |shape| build(shape, &spec))
}

/// The system of its one dispatcher.
fn build(
    shape: &Shape,
    spec: &Spec,
) -> System<
    systems::Concord,
    headway_policy::server::locals::LocalFifo,
    headway_policy::server::monitors::Quantum,
> {
    let mut replicas = systems::concord(shape, spec).expect("a valid spec");
    assert_eq!(replicas.instances.len(), 1);
    replicas.instances.remove(0)
}

#[test]
fn depth_one_is_the_single_queue() {
    let outcome = run(&bimodal(), "k=1");
    assert_same(&outcome, &shinjuku::run(&bimodal(), "q=5us"));
}

#[test]
fn a_quantum_as_long_as_the_longest_request_is_jbsq() {
    let mut jbsq = bimodal();
    jbsq.policy = policy("jbsq,k=2");
    assert_same(&run(&bimodal(), "q=100us"), &jbsq.run().unwrap());
}

/// Bounded queues keep a bounded number of requests from idle workers. They lose little against the
/// single queue, and shorts still overtake longs.
#[test]
fn bounded_queues_cost_little() {
    let shallow = run(&bimodal(), "k=1");
    let outcome = run(&bimodal(), "k=2");
    assert!(outcome.run.meta.preemptions > 0);
    assert!(
        outcome.wasted_cores > 0.0,
        "one queue per worker wastes some"
    );
    let mean = |outcome: &Outcome| outcome.run.classes[0].latency_us.mean;
    assert!(mean(&outcome) < 2.0 * mean(&shallow));
}

/// With k = 2 a worker finds its next request locally: c_next is all but gone (§ 3.2).
#[test]
fn a_queue_at_the_worker_hides_the_wait_for_the_dispatcher() {
    let short = ServiceDistribution::Constant { mean_ns: 1_000 };
    let workload = Workload::new("constant", vec![Class::new("request", 1.0, short)]);
    let base = experiment(workload).workers(1).load(2.0).requests(10_000);
    let longest = |params: &str| {
        let text = format!("concord,notif=0,switch=0,dispatcher=dedicated,{params}");
        let spec = spec(&text);
        let outcome = base.run_system(|shape| build(shape, &spec)).unwrap();
        outcome.run.overall.latency_us.max
    };
    let (free, waits) = (longest("k=1,next=0"), longest("k=1,next=154ns"));
    // 9 000 of the 10 000 are behind the queue's start; each waited 154 ns.
    assert!(waits - free > 0.15 * 9_000.0, "{waits} against {free}");
    let hidden = longest("k=2,next=154ns");
    assert!(hidden - free < 1.0, "{hidden} against {free}");
}

/// Saturated, a free dispatcher is one more worker (§ 3.3).
#[test]
fn a_dispatcher_that_works_is_one_more_worker() {
    let saturated = flood().workers(4).requests(5_000);
    let last = |params: &str| run(&saturated, params).run.overall.latency_us.max;
    let ratio = last("q=1ms,dispatcher=dedicated") / last("q=1ms,dispatcher=works");
    assert!((ratio - 5.0 / 4.0).abs() < 0.01, "{ratio}");
}

/// Its clock-reading code is slower: what a worker does in 20 µs takes it longer.
#[test]
fn a_request_takes_longer_on_the_dispatcher() {
    let costs = Costs {
        dispatcher_slowdown_percent: 25,
        ..Costs::default()
    };
    let last = |costs| {
        let outcome = run(&flood().costs(costs), "q=1ms,dispatcher=works");
        outcome.run.overall.latency_us.max
    };
    let ratio = last(costs) / last(Costs::default());
    // Two of equal speed against one of speed 1 and one of speed 0.8.
    assert!((ratio - 2.0 / 1.8).abs() < 0.01, "{ratio}");
}

/// It takes only requests that have not begun: after every request's first quantum, the worker is alone.
#[test]
fn a_dispatcher_that_works_leaves_what_a_worker_began() {
    let last = |dispatcher: &str| {
        let outcome = run(&flood(), &format!("q=5us,dispatcher={dispatcher}"));
        outcome.run.overall.latency_us.max
    };
    let ratio = last("dedicated") / last("works");
    assert!((1.0..1.5).contains(&ratio), "{ratio}");
}

/// Interrupted requests pass the dispatcher one by one (§ 2.2.2). At 4 µs each, the dispatcher and
/// not the workers limits the rate of 5 µs quanta.
#[test]
fn what_comes_back_takes_the_dispatcher_time() {
    let requeue_ns = 4_000;
    let costs = Costs {
        requeue_ns,
        ..Costs::default()
    };
    let base = flood().workers(4);
    let free = run(&base, "k=1,q=5us");
    let paid = run(&base.costs(costs), "k=1,q=5us");
    let last_us = |outcome: &Outcome| outcome.run.overall.latency_us.max;
    let returns_us = (paid.run.meta.preemptions * requeue_ns) as f64 / 1_000.0;
    // Nobody comes back from the last quantum: there four workers set the pace again.
    let finishing_us = 1_000.0 * 5.0 / 4.0;
    assert!(last_us(&paid) > 2.0 * last_us(&free));
    let ratio = last_us(&paid) / (returns_us + finishing_us);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn probes_slow_every_request() {
    let costs = Costs {
        proc_permille: Some(100),
        ..Costs::default()
    };
    let mut alone = experiment(Workload::named("fixed-1us").unwrap());
    alone.policy = policy("concord,notif=0,switch=0,next=0");
    let outcome = alone.load(0.01).requests(1_000).costs(costs).run().unwrap();
    assert_eq!(outcome.run.overall.latency_us.p50, 1.1);
}
