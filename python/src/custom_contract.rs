//! The contract of every policy, played to one in Python.

use crate::custom::{Fault, PyIngress, PyLocal};
use crate::custom_run::{CustomPolicy, Roles, roles};
use crate::errors::{HeadwayError, guarded};
use crate::interrupt::Cutoff;
use crate::views::ShapeView;
use headway_contract::dispatcher::{self, DispatcherContract};
use headway_contract::workers::{self, WorkerPromises, WorkersContract};
use headway_policy::ClassHint;
use headway_policy::server::role::{Ingress, Unplaced};
use headway_policy::server::systems::Promises;
use pyo3::prelude::*;
use std::sync::Arc;

/// Plays so many random events to the policy, then lets everything run to its end, and gives the first promise that it breaks.
#[pyfunction]
pub(crate) fn play_contract(policy: &Bound<'_, PyAny>, seed: u64, events: usize) -> PyResult<()> {
    guarded(|| play(policy, seed, events))
}

fn play(policy: &Bound<'_, PyAny>, seed: u64, events: usize) -> PyResult<()> {
    let about = CustomPolicy::read(policy)?;
    let play = Play {
        py: policy.py(),
        fault: Fault::new(&Cutoff::of_run(None)),
        seed,
        events,
    };
    let shape = dispatcher::shape();
    let view = view(dispatcher::WORKERS, &shape.classes, seed);
    match roles(policy, view, &about, &play.fault)?.ingress {
        Some(role) if !about.steers => {
            let (depth, limit) = (about.depth, shape.queue_limit);
            let ingress = PyIngress::<false>::new(role, dispatcher::WORKERS, depth, limit);
            play.dispatcher(ingress, &about)
        }
        _ => {
            let view = self::view(workers::WORKERS, &[ClassHint::new(1_000.0, 1.0)], seed);
            let Roles {
                ingress, locals, ..
            } = roles(policy, view, &about, &play.fault)?;
            match ingress {
                None => play.workers(Unplaced, locals, &about, false),
                Some(role) => {
                    let (depth, limit) = (usize::MAX, usize::MAX);
                    let ingress = PyIngress::<true>::new(role, workers::WORKERS, depth, limit);
                    play.workers(ingress, locals, &about, true)
                }
            }
        }
    }
}

fn view(workers: usize, classes: &[ClassHint], seed: u64) -> ShapeView {
    let names: Vec<String> = (0..classes.len()).map(|it| format!("class {it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ShapeView::of(workers, &names, classes, seed)
}

/// Traffic for one policy.
struct Play<'py> {
    py: Python<'py>,
    fault: Arc<Fault>,
    seed: u64,
    events: usize,
}

impl Play<'_> {
    fn dispatcher(&self, ingress: impl Ingress, about: &CustomPolicy) -> PyResult<()> {
        let promises = Promises {
            bound_per_class: false,
            work_conserving: about.work_conserving,
            fcfs_in_class: about.fcfs_in_class,
        };
        let mut contract = DispatcherContract::new(ingress, about.depth, promises);
        for (number, event) in dispatcher::events(self.seed, self.events).enumerate() {
            self.judge(number + 1, contract.play(event))?;
        }
        self.judge(self.events, contract.drain())
    }

    /// Workers without decisions of their own take the head of their queues, and promise what that gives.
    fn workers(
        &self,
        ingress: impl Ingress,
        locals: Vec<PyLocal>,
        about: &CustomPolicy,
        is_placed: bool,
    ) -> PyResult<()> {
        let take_heads = locals.iter().all(PyLocal::takes_the_head);
        let promises = WorkerPromises {
            own_queue_in_order: is_placed && (take_heads || about.fcfs_in_class),
            finds_its_own: take_heads || about.work_conserving,
            finds_all: about.work_conserving,
        };
        let mut contract = WorkersContract::new(ingress, locals, about.shared_queues, promises);
        for (number, event) in workers::events(self.seed, self.events).enumerate() {
            self.judge(number + 1, contract.play(event))?;
        }
        self.judge(self.events, contract.drain())
    }

    /// An exception of the policy, a fault of its decision, or a promise that it broke.
    fn judge(&self, events: usize, step: Result<(), String>) -> PyResult<()> {
        self.py.check_signals()?;
        if let Some(error) = self.fault.take() {
            return Err(error);
        }
        step.map_err(|broken| HeadwayError::new_err(format!("after {events} events: {broken}")))
    }
}
