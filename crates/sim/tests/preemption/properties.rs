//! Over random workloads and parameters, under the audit: a request's attained service never shrinks, its
//! stretches sum up to what it asked for, nobody holds more than its depth, and nobody is interrupted without need;
//! under SYNERGY never a short.

use super::{Experiment, Sight, audited, experiment, never, something_waits};
use headway_policy::Shape;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::{System, VisitInstance, with};
use headway_workload::{Class, ServiceDistribution, Workload};
use proptest::prelude::*;

/// The class that takes ten times the other's time, or more.
const LONG: u16 = 1;

fn longs_for_own(sight: &Sight) -> bool {
    sight.job.class.0 == LONG && sight.own > 0
}

/// A system, and which interruptions are in order under it.
fn systems() -> impl Strategy<Value = (String, fn(&Sight) -> bool)> {
    let quantum_ns = 200u64..30_000;
    let cost_ns = prop_oneof![Just(0u64), 1u64..2_000];
    let charge = prop_oneof![Just("blocking"), Just("request")];
    let name = 0..6usize;
    (name, quantum_ns, cost_ns, charge, 1..5u64).prop_map(|(name, q, cost, charge, n)| {
        // Costs that use up a request's whole quantum are refused.
        let cost = if charge == "request" {
            cost.min(q - 1)
        } else {
            cost
        };
        let common = format!("q={q}ns,charge={charge}");
        match name {
            0 => (
                format!("shinjuku-sq,{common},cost={cost}ns,sigma={n}us"),
                something_waits as _,
            ),
            1 => (
                format!(
                    "concord,{common},notif={cost}ns,switch=0,next=0,k={n},dispatcher=dedicated"
                ),
                something_waits as _,
            ),
            2 => (
                format!("concord,{common},notif={cost}ns,switch=0,next=0,k={n}"),
                something_waits as _,
            ),
            3 => (format!("tiny-quanta,{common},cost={cost}ns"), never as _),
            4 => (format!("tardis,{common},cost={cost}ns,n={n}"), never as _),
            _ => (
                format!(
                    "synergy,{common},cost={cost}ns,factor={n},waits={n},steal_threshold={}",
                    n - 1
                ),
                longs_for_own as _,
            ),
        }
    })
}

struct Audit<'a>(&'a Experiment, fn(&Sight) -> bool);

impl VisitInstance for Audit<'_> {
    type Output = ();

    fn visit_instance<I, L, M>(self, system: System<I, L, M>)
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        audited(self.0, self.1, |_| system);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn requests_are_served_in_full_and_interrupted_with_reason(
        (policy, may_interrupt) in systems(),
        (short_ns, times) in (500u64..5_000, 10u64..100),
        (share, load) in (0.05f64..0.95, 0.2f64..1.3),
        workers in 1..7usize,
        seed: u64,
    ) {
        let long_ns = short_ns * times;
        let classes = vec![
            Class::new("short", share, ServiceDistribution::Constant { mean_ns: short_ns }),
            Class::new("long", 1.0 - share, ServiceDistribution::Constant { mean_ns: long_ns }),
        ];
        let experiment = experiment(Workload::new("random", classes))
            .workers(workers)
            .load(load)
            .requests(1_000)
            .seed(seed);
        let mut shape = Shape::new(workers).class(short_ns, share).class(long_ns, 1.0 - share);
        shape.seed = seed;
        let audit = Audit(&experiment, may_interrupt);
        with(&policy.parse().expect("a spec"), &shape, audit).expect("a valid spec");
    }
}
