//! Tardis.

use super::{Experiment, Outcome, assert_same, audited, bimodal, never, shinjuku, spec};
use headway_policy::server::systems;

fn run(experiment: &Experiment, params: &str) -> Outcome {
    let spec = spec(&format!("tardis,cost=0,{params}"));
    audited(experiment, never, |shape| {
        systems::tardis(shape, &spec).expect("a valid spec")
    })
}

#[test]
fn batches_of_one_are_c_fcfs() {
    assert_same(&run(&bimodal(), "n=1,q=100us"), &bimodal().run().unwrap());
}

#[test]
fn on_one_worker_the_timer_is_shinjukus_quantum() {
    let one = bimodal().workers(1).load(0.8);
    assert_same(&run(&one, "n=1,q=2us"), &shinjuku::run(&one, "q=2us"));
}

/// Stealing repairs what batches unbalance: nobody is ever idle while something waits.
#[test]
fn no_batch_keeps_a_worker_waiting() {
    for batch in [2, 16] {
        let outcome = run(&bimodal(), &format!("n={batch},q=5us"));
        assert_eq!(outcome.wasted_cores, 0.0);
        assert!(outcome.run.meta.preemptions > 0);
    }
}
