//! The promises of the systems without a dispatcher, over random traffic: nothing is lost or run
//! twice, a queue is first come first served, and a thief idles only when there is nothing to take.

use headway_contract::PlainQueues;
use headway_contract::workers::{QueueEvent, WORKERS, WorkerPromises, WorkersContract};
use headway_policy::server::locals::{StealAmount, Stealing};
use headway_policy::server::role::{Ingress, Local, Monitor, Next, Owner};
use headway_policy::server::systems::{self, NAMES, System, VisitInstance};
use headway_policy::{ClassId, Job, JobId, Shape, WorkerId};
use proptest::prelude::*;

struct Drive<'a>(&'a [QueueEvent]);

impl VisitInstance for Drive<'_> {
    type Output = Result<(), TestCaseError>;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(
        self,
        system: System<I, L, M>,
    ) -> Self::Output {
        if I::OWNER != Owner::Steering {
            return Ok(());
        }
        let promises = WorkerPromises {
            own_queue_in_order: !L::STEALS,
            finds_its_own: true,
            finds_all: L::STEALS,
        };
        let (name, shared) = (system.name, system.shared_queues.count);
        let mut contract = WorkersContract::new(system.ingress, system.locals, shared, promises);
        let mut events = self.0.iter();
        let played = events.try_for_each(|&event| contract.play(event));
        played
            .and_then(|()| contract.drain())
            .map_err(|broken| TestCaseError::fail(format!("{name}: {broken}")))
    }
}

proptest! {
    #[test]
    fn every_steered_system_keeps_its_promises(
        events in prop::collection::vec(
            prop_oneof![
                any::<u32>().prop_map(|flow| QueueEvent::Arrive { flow }),
                (0..WORKERS).prop_map(|worker| QueueEvent::Look { worker }),
            ],
            1..400,
        ),
        one in any::<bool>(),
    ) {
        for name in NAMES {
            let params = if *name == "work-stealing" && one { ",steal=one" } else { "" };
            let spec = format!("{name}{params}").parse().unwrap();
            systems::with(&spec, &Shape::new(WORKERS).class(1_000, 1.0), Drive(&events)).unwrap()?;
        }
    }
}

/// With as many flows as one, everything lies in one queue; with many, on all of them.
#[test]
fn flows_bound_how_many_queues_are_used() {
    struct Used;
    impl VisitInstance for Used {
        type Output = usize;
        fn visit_instance<I: Ingress, L: Local, M: Monitor>(
            self,
            mut system: System<I, L, M>,
        ) -> usize {
            let mut workers = std::collections::BTreeSet::new();
            for index in 0..1_000u32 {
                let flow = index.wrapping_mul(0x9E37_79B9);
                let job = Job {
                    flow,
                    ..Job::new(JobId(index), ClassId(0), 0)
                };
                system.ingress.arrived(0, job).unwrap();
                workers.extend(system.ingress.poll(0).map(|dispatch| dispatch.worker));
            }
            workers.len()
        }
    }
    let used = |flows: u32| {
        let spec = format!("work-stealing,flows={flows}").parse().unwrap();
        systems::with(&spec, &Shape::new(14).class(1_000, 1.0), Used).unwrap()
    };
    assert_eq!(used(1), 1);
    assert!((2..=8).contains(&used(8)));
    assert_eq!(used(0), 14);
}

/// Shenango § 5: the sibling first, even if another has more; then the others.
#[test]
fn a_thief_asks_its_sibling_first() {
    for seed in 0..50 {
        let mut thief = Stealing::new(StealAmount::One, seed);
        let mut toy = PlainQueues::new(WORKERS, 16);
        let waits_at = [(1, 0), (3, 1), (3, 2)];
        for (worker, job) in waits_at {
            toy.deliver(WorkerId(worker), JobId(job));
        }
        toy.sibling = Some(WorkerId(1));
        let mut next = || match thief.next(0, &mut toy) {
            Next::Run { job, .. } => job,
            other => panic!("{other:?}"),
        };
        assert_eq!([next(), next(), next()], [0, 1, 2].map(JobId));
        assert!(matches!(thief.next(0, &mut toy), Next::Idle));
    }
}
