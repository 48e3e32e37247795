//! Jobs that [block](crate::blocking()): another thread stands in, up to a bound, and whatever was accepted has one end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headway_sync::Guarded;
use headway_sync::thread::JoinHandle;
use shuttle::rand::Rng;
use shuttle::thread;

use super::{
    CLASSES, ModelCounts, ModelParts, accepted_of, assert_over, check, join_all, started_with,
    submit, submit_job,
};
use crate::blocking::blocking;
use crate::future::JobFuture;
use crate::layout::PoolLayout;
use crate::shared::{SharedPool, StartThread};
use crate::worker;

/// What a job waits for.
#[derive(Default)]
struct ModelGate(Guarded<bool>);

impl ModelGate {
    fn open(&self) {
        *self.0.lock() = true;
        self.0.notify_all();
    }

    fn wait(&self) {
        drop(self.0.wait_while(self.0.lock(), |is_open| !*is_open));
    }
}

/// A pool of one worker for which so many threads may stand in, and the jobs in the middle of their closures.
struct BlockingModel {
    shared: Arc<SharedPool>,
    counts: Arc<ModelCounts>,
    stand_ins: usize,
    begun: Arc<AtomicUsize>,
}

impl BlockingModel {
    fn new(policy: &str, layout: PoolLayout, stand_ins: usize, start: StartThread) -> Self {
        let parts = ModelParts {
            workers: 1,
            stand_ins,
            start,
            ..ModelParts::default()
        };
        Self {
            shared: started_with(policy, layout, parts),
            counts: Arc::default(),
            stand_ins,
            begun: Arc::default(),
        }
    }

    /// Submits a job that blocks until each of these gates in turn is open.
    fn blocks<const GATES: usize>(&self, gates: &[Arc<ModelGate>; GATES]) -> JobFuture<()> {
        let (gates, begun) = (gates.clone(), Arc::clone(&self.begun));
        let (shared, stand_ins) = (Arc::clone(&self.shared), self.stand_ins);
        submit_job(&self.shared, CLASSES[0], &self.counts, move || {
            let others = begun.fetch_add(1, Ordering::Relaxed);
            assert!(others <= stand_ins, "no more threads than may stand in");
            for gate in gates {
                blocking(|| {
                    assert_bound(&shared, stand_ins);
                    gate.wait();
                });
                assert_bound(&shared, stand_ins);
            }
            begun.fetch_sub(1, Ordering::Relaxed);
        })
    }

    /// Submits a job that opens the gate.
    fn opens(&self, gate: &Arc<ModelGate>) -> JobFuture<()> {
        let gate = Arc::clone(gate);
        submit_job(&self.shared, CLASSES[0], &self.counts, move || gate.open())
    }
}

/// No more threads block beside the worker, or stand in for one, than may.
fn assert_bound(shared: &SharedPool, stand_ins: usize) {
    let core = shared.core.lock();
    assert!(core.threads.blocked <= stand_ins);
    assert!(core.threads.len() <= 1 + stand_ins);
}

/// Each job blocks twice, for what later jobs do: the worker that it left is another thread's until it ends.
#[test]
fn what_jobs_that_block_wait_for_is_run_by_others() {
    const BLOCKED: usize = 2;
    check(|policy, layout| {
        let model = BlockingModel::new(policy, layout, BLOCKED, worker::start);
        let gates: [Arc<ModelGate>; 2] = Default::default();
        let blocked: [_; BLOCKED] = std::array::from_fn(|_| model.blocks(&gates));
        for gate in &gates {
            model.opens(gate).wait().unwrap();
        }
        blocked.into_iter().for_each(|job| job.wait().unwrap());
        model.shared.shutdown(Duration::from_secs(60)).unwrap();
        assert_eq!(model.shared.core.lock().blocked_in_place, 0);
        assert_over(&model.shared, &model.counts, BLOCKED + gates.len());
    });
}

/// A stand-in's thread, which the system refuses now and then.
fn start_or_not(shared: &Arc<SharedPool>, place: usize) -> io::Result<JoinHandle<()>> {
    if place > 0 && shuttle::rand::thread_rng().gen_bool(0.5) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    worker::start(shared, place)
}

/// More jobs block than may leave their worker, and the system refuses threads: all end once the gate is open.
#[test]
fn jobs_that_block_beyond_the_bound_or_without_a_thread_end() {
    const BLOCKED: usize = 3;
    for start in [worker::start as StartThread, start_or_not] {
        check(move |policy, layout| {
            let model = BlockingModel::new(policy, layout, 1, start);
            let gate = [Arc::default()];
            let blocked: [_; BLOCKED] = std::array::from_fn(|_| model.blocks(&gate));
            let other = submit(&model.shared, CLASSES[1], &model.counts);
            gate[0].open();
            blocked.into_iter().for_each(|job| job.wait().unwrap());
            other.wait().unwrap();
            model.shared.shutdown(Duration::from_secs(60)).unwrap();
            assert_over(&model.shared, &model.counts, BLOCKED + 1);
        });
    }
}

/// A pool that ends, or is shut down, while jobs block or are about to: each has one end, and every thread leaves.
#[test]
fn a_pool_ends_while_jobs_block() {
    let ends: [fn(&Arc<SharedPool>); 2] = [
        |shared| _ = shared.end(),
        |shared| _ = shared.shutdown(Duration::from_secs(60)),
    ];
    for end in ends {
        check(move |policy, layout| {
            let model = Arc::new(BlockingModel::new(policy, layout, 1, worker::start));
            let gates: [Arc<ModelGate>; 2] = Default::default();
            let (own, its) = (Arc::clone(&model), gates.clone());
            let submitter = thread::spawn(move || {
                let plain = || submit(&own.shared, CLASSES[1], &own.counts);
                accepted_of([own.blocks(&its), plain(), own.blocks(&its), plain()])
            });
            let opener = thread::spawn(move || gates.iter().for_each(|gate| gate.open()));
            end(&model.shared);
            let accepted = submitter.join().unwrap();
            opener.join().unwrap();
            join_all(&model.shared);
            assert_over(&model.shared, &model.counts, accepted);
        });
    }
}
