//! Tardis: nobody dispatches. Workers take batches of N from the global queue, then steal, and a
//! timer of their own interrupts them; what it interrupts is back in the global queue.

use crate::{assert_same, audited, bimodal, shinjuku};
use headway_policy::Shape;
use headway_policy::locals::{Stealing, Take};
use headway_policy::role::{Local, Never, Next, Queues, Unplaced};
use headway_policy::spec::Params;
use headway_policy::systems::System;
use headway_sim::{Experiment, Outcome};

struct Batches {
    batch: usize,
    slice_ns: Option<u64>,
    thief: Stealing,
}

impl Local for Batches {
    const STEALS: bool = true;

    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next {
        if queues.len(queues.me()) == 0 {
            for _ in 0..self.batch {
                let Some(job) = queues.pop_shared() else {
                    break;
                };
                queues.push(job);
            }
        }
        let slice_ns = self.slice_ns;
        match self.thief.next(now_ns, queues) {
            Next::Run { job, .. } => Next::Run { job, slice_ns },
            other => other,
        }
    }

    fn renew<Q: Queues>(&mut self, _now_ns: u64, queues: &Q) -> Option<u64> {
        let (popped, pushed) = queues.shared_counters();
        let alone = popped == pushed && queues.len(queues.me()) == 0;
        self.slice_ns.filter(|_| alone)
    }
}

fn run(experiment: &Experiment, batch: usize, slice_ns: Option<u64>) -> Outcome {
    let build = |shape: &Shape| System {
        name: "tardis",
        params: Params::new(),
        ingress: Unplaced,
        locals: (0..shape.workers as u64)
            .map(|worker| Batches {
                batch,
                slice_ns,
                thief: Stealing::new(Take::Half, shape.seed ^ worker),
            })
            .collect(),
        monitor: Never,
        depth: usize::MAX,
    };
    audited(experiment, |_| false, build)
}

#[test]
fn batches_of_one_are_c_fcfs() {
    assert_same(&run(&bimodal(), 1, None), &bimodal().run().unwrap());
}

#[test]
fn on_one_worker_the_timer_is_shinjukus_quantum() {
    let one = bimodal().workers(1).load(0.8);
    assert_same(&run(&one, 1, Some(2_000)), &shinjuku::run(&one, 2_000));
}

/// Stealing repairs what batches unbalance: nobody is ever idle while something waits.
#[test]
fn no_batch_keeps_a_worker_waiting() {
    for batch in [2, 16] {
        let outcome = run(&bimodal(), batch, Some(5_000));
        assert_eq!(outcome.wasted_cores, 0.0);
        assert!(outcome.run.meta.preemptions > 0);
    }
}
