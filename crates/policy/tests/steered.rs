//! The promises of the systems without a dispatcher, over random traffic: nothing is lost or run
//! twice, a queue is first come first served, and a thief idles only when there is nothing to take.

mod toy;

use headway_policy::server::locals::{StealAmount, Stealing};
use headway_policy::server::role::{
    Backlog, Dispatch, Ingress, Local, Monitor, Next, Owner, Queues,
};
use headway_policy::server::systems::{self, NAMES, System, VisitInstance};
use headway_policy::{ClassId, Job, JobId, Shape, WorkerId};
use proptest::prelude::*;
use toy::Toy;

const WORKERS: usize = 5;
const MOST: usize = 512;

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive { flow: u32 },
    Look { worker: usize },
}

struct Drive<'a>(&'a [Event]);

impl VisitInstance for Drive<'_> {
    type Output = Result<(), TestCaseError>;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(
        self,
        mut system: System<I, L, M>,
    ) -> Self::Output {
        if I::OWNER != Owner::Steering {
            return Ok(());
        }
        let mut toy = Toy::new(WORKERS, MOST);
        let mut home: Vec<usize> = Vec::new();
        let mut ran: Vec<bool> = Vec::new();
        for (now_ns, event) in self.0.iter().enumerate() {
            match *event {
                Event::Arrive { flow } => {
                    let id = JobId(ran.len() as u32);
                    ran.push(false);
                    let job = Job {
                        flow,
                        ..Job::new(id, ClassId(0), now_ns as u64)
                    };
                    prop_assert!(system.ingress.arrived(now_ns as u64, job).is_ok());
                    let Some(Dispatch { worker, job }) = system.ingress.poll(now_ns as u64) else {
                        return Err(TestCaseError::fail("steering decides at once"));
                    };
                    home.push(worker.index());
                    toy.deliver(worker, job);
                }
                Event::Look { worker } => {
                    look::<L>(&mut system.locals, worker, &mut toy, &home, &mut ran)?;
                }
            }
        }
        while waiting(&toy) > 0 {
            for worker in 0..WORKERS {
                look::<L>(&mut system.locals, worker, &mut toy, &home, &mut ran)?;
            }
        }
        prop_assert!(ran.iter().all(|&ran| ran), "{} lost a request", system.name);
        Ok(())
    }
}

fn waiting(toy: &Toy) -> usize {
    (0..WORKERS as u16)
        .map(|worker| toy.len(WorkerId(worker)))
        .sum()
}

fn look<L: Local>(
    locals: &mut [L],
    worker: usize,
    toy: &mut Toy,
    home: &[usize],
    ran: &mut [bool],
) -> Result<(), TestCaseError> {
    toy.me = worker;
    match locals[worker].next(0, toy) {
        Next::Run { job, .. } => {
            prop_assert!(!ran[job.index()], "{job:?} ran twice");
            ran[job.index()] = true;
            prop_assert!(
                L::STEALS || home[job.index()] == worker,
                "{job:?} left its queue"
            );
            let older =
                (0..job.index()).find(|&older| home[older] == home[job.index()] && !ran[older]);
            prop_assert!(
                L::STEALS || older.is_none(),
                "{older:?} was overtaken in its queue"
            );
        }
        Next::Retry => {}
        Next::Idle => {
            let reachable = if L::STEALS {
                waiting(toy)
            } else {
                toy.len(toy.me())
            };
            prop_assert_eq!(
                reachable,
                0,
                "worker {} idles beside work it may take",
                worker
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_steered_system_keeps_its_promises(
        events in prop::collection::vec(
            prop_oneof![
                any::<u32>().prop_map(|flow| Event::Arrive { flow }),
                (0..WORKERS).prop_map(|worker| Event::Look { worker }),
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
        let mut toy = Toy::new(WORKERS, 16);
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
