//! A run under a policy in Python.

use crate::answers::{Recording, SIM_REQUESTS, recorded, shown, text};
use crate::asked::Asked;
use crate::custom::{Fault, PyIngress, PyLocal, PyMonitor, Role};
use crate::errors::{HeadwayError, refused};
use crate::interrupt::{Cutoff, apart};
use crate::views::ShapeView;
use headway_policy::server::PreemptionCosts;
use headway_policy::server::role::{Ingress, Unplaced};
use headway_policy::server::systems::{SharedQueues, System};
use headway_policy::{BitSet, Shape};
use headway_sim::{Experiment, Outcome, SimError, class_hints};
use pyo3::prelude::*;
use std::sync::Arc;

/// What a policy in Python says of itself.
#[derive(FromPyObject)]
pub(crate) struct CustomPolicy {
    name: String,
    pub(crate) steers: bool,
    pub(crate) depth: usize,
    pub(crate) shared_queues: usize,
    pub(crate) work_conserving: bool,
    pub(crate) fcfs_in_class: bool,
    notif_ns: u64,
    switch_ns: u64,
    next_ns: u64,
}

impl CustomPolicy {
    /// Refuses what no server can be.
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.depth == 0 || self.shared_queues == 0 {
            let why = "policy: depth and shared_queues are 1 or more";
            return Err(HeadwayError::new_err(why));
        }
        Ok(())
    }
}

/// The roles that a policy in Python built.
pub(crate) struct Roles {
    pub(crate) ingress: Option<Role>,
    pub(crate) locals: Vec<PyLocal>,
    monitor: PyMonitor,
}

/// One run of a server under a policy in Python.
#[pyfunction]
pub(crate) fn simulate_custom(
    py: Python<'_>,
    asked: Asked,
    recording: Recording,
    policy: &Bound<'_, PyAny>,
    cutoff: Option<&Cutoff>,
) -> PyResult<String> {
    let flag = Cutoff::flag(cutoff);
    let (mut experiment, note) = asked.experiment(SIM_REQUESTS, &flag)?;
    recorded(&mut experiment, &recording)?;
    let about: CustomPolicy = policy.extract()?;
    about.check()?;
    let fault = Fault::new(&flag);
    let (names, hints) = (
        experiment.workload.class_names(),
        class_hints(&experiment.workload),
    );
    let shape = ShapeView::of(experiment.workers, &names, &hints, experiment.seed);
    let roles = roles(policy, shape, &fault)?;
    let outcome = apart(py, &flag, None, |_| {
        // The thread stays known to the interpreter, so that each call of a role is cheap.
        Python::attach(|py| py.detach(|| run(&experiment, &about, roles)))
    })?;
    if let Some(error) = fault.take() {
        return Err(error);
    }
    let left = fault.waiting();
    if left > 0 && !experiment.is_cut_off() {
        let why = format!("poll: {left} requests were accepted and never dispatched");
        return Err(HeadwayError::new_err(why));
    }
    let mut outcome = outcome.map_err(refused)?;
    outcome.run.meta.policy.clone_from(&about.name);
    let mut answer = shown(&outcome);
    answer["note"] = note.into();
    answer["window_ns"] = serde_json::json!(experiment.trace_window.map(|it| [it.start, it.end]));
    text(&answer)
}

/// The roles that the policy builds for a server.
pub(crate) fn roles(
    policy: &Bound<'_, PyAny>,
    shape: ShapeView,
    fault: &Arc<Fault>,
) -> PyResult<Roles> {
    let workers = shape.workers;
    let shape = Bound::new(policy.py(), shape)?;
    let role = |object: Bound<'_, PyAny>| -> PyResult<Option<Role>> {
        if object.is_none() {
            return Ok(None);
        }
        Role::new(&object, fault).map(Some)
    };
    let local = |worker: usize| {
        let object = policy.call_method1("local", (&shape, worker))?;
        Ok(PyLocal(role(object)?))
    };
    let locals: PyResult<Vec<PyLocal>> = (0..workers).map(local).collect();
    Ok(Roles {
        ingress: role(policy.call_method1("ingress", (&shape,))?)?,
        locals: locals?,
        monitor: PyMonitor(role(policy.call_method1("monitor", (&shape,))?)?.map(Arc::new)),
    })
}

fn run(experiment: &Experiment, about: &CustomPolicy, roles: Roles) -> Result<Outcome, SimError> {
    let (locals, monitor) = (roles.locals, roles.monitor);
    let (workers, depth) = (experiment.workers, about.depth);
    let limit = experiment.queue_limit;
    match roles.ingress {
        None => experiment.run_system(|_| system(about, Unplaced, locals, monitor)),
        Some(role) if about.steers => experiment.run_system(|_: &Shape| {
            let ingress = PyIngress::<true>::new(role, workers, usize::MAX, limit);
            system(about, ingress, locals, monitor)
        }),
        Some(role) => experiment.run_system(|_: &Shape| {
            let ingress = PyIngress::<false>::new(role, workers, depth, limit);
            system(about, ingress, locals, monitor)
        }),
    }
}

fn system<I: Ingress>(
    about: &CustomPolicy,
    ingress: I,
    locals: Vec<PyLocal>,
    monitor: PyMonitor,
) -> System<I, PyLocal, PyMonitor> {
    System {
        name: "python",
        params: Vec::new(),
        ingress,
        locals,
        monitor,
        depth: about.depth,
        shared_queues: SharedQueues {
            count: about.shared_queues,
            room: usize::MAX,
        },
        sheds_first: BitSet::default(),
        preemption_costs: PreemptionCosts {
            notif_ns: about.notif_ns,
            switch_ns: about.switch_ns,
            next_ns: about.next_ns,
            ..PreemptionCosts::default()
        },
    }
}
