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

/// Queues are allocated before the run.
const MOST_SHARED_QUEUES: usize = 1 << 16;
/// Costs are added to the clock, which ends.
const MOST_COST_NS: u64 = 1_000_000_000;

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
    /// What the policy says, refused where no server can be so.
    pub(crate) fn read(policy: &Bound<'_, PyAny>) -> PyResult<Self> {
        let read: PyResult<Self> = policy.extract();
        let about = read.map_err(|error| {
            let py = policy.py();
            let cause = error.cause(py).unwrap_or_else(|| error.clone_ref(py));
            HeadwayError::new_err(format!("policy: {}: {}", error.value(py), cause.value(py)))
        })?;
        about.check()?;
        Ok(about)
    }

    fn check(&self) -> PyResult<()> {
        if self.depth == 0 {
            return Err(HeadwayError::new_err("policy: depth is 1 or more"));
        }
        if !(1..=MOST_SHARED_QUEUES).contains(&self.shared_queues) {
            let why = format!("policy: shared_queues is 1 to {MOST_SHARED_QUEUES}");
            return Err(HeadwayError::new_err(why));
        }
        let costs = [self.notif_ns, self.switch_ns, self.next_ns];
        if costs.iter().any(|ns| *ns > MOST_COST_NS) {
            let why = "policy: notif_ns, switch_ns and next_ns are 1 s (1_000_000_000) or less";
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
    let end = Cutoff::of_run(cutoff);
    let (mut experiment, note) = asked.experiment(SIM_REQUESTS, &end.cutoff)?;
    recorded(&mut experiment, &recording)?;
    let about = CustomPolicy::read(policy)?;
    let fault = Fault::new(&end);
    let (names, hints) = (
        experiment.workload.class_names(),
        class_hints(&experiment.workload),
    );
    let shape = ShapeView::of(experiment.workers, &names, &hints, experiment.seed);
    let roles = roles(policy, shape, &about, &fault)?;
    let outcome = apart(py, &end, None, |_| {
        // The thread stays known to the interpreter, so that each call of a role is cheap.
        Python::attach(|py| {
            end.on_this_thread(py, || py.detach(|| run(&experiment, &about, roles)))
        })
    })?;
    if let Some(error) = fault.take() {
        return Err(error);
    }
    let left = fault.waiting();
    if left > 0 && !experiment.is_cut_off() {
        let why = format!("poll: {left} requests were accepted and never dispatched");
        return Err(HeadwayError::new_err(why));
    }
    if let Err(SimError::OutOfRange { what, .. }) = &outcome
        && *what == "the virtual time of a run"
        && experiment.check().is_ok()
    {
        let why = "next: requests were accepted and never run to their end: workers idle beside them, or services end beyond the clock's range";
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
    about: &CustomPolicy,
    fault: &Arc<Fault>,
) -> PyResult<Roles> {
    let workers = shape.workers;
    let shape = Bound::new(policy.py(), shape)?;
    let classes = policy.py().import("headway.custom")?;
    let role = |method: &str, class: &str, object: Bound<'_, PyAny>| -> PyResult<Option<Role>> {
        if object.is_none() {
            return Ok(None);
        }
        if !object.is_instance(&classes.getattr(class)?)? {
            let why = format!(
                "{method}: gives a headway.{class} or None, not {}",
                object.repr()?
            );
            return Err(HeadwayError::new_err(why));
        }
        Role::new(&object, fault).map(Some)
    };
    let local = |worker: usize| {
        let object = policy.call_method1("local", (&shape, worker))?;
        Ok(PyLocal {
            role: role("local", "Local", object)?,
            shared_queues: about.shared_queues,
        })
    };
    let locals: PyResult<Vec<PyLocal>> = (0..workers).map(local).collect();
    Ok(Roles {
        ingress: role(
            "ingress",
            "Ingress",
            policy.call_method1("ingress", (&shape,))?,
        )?,
        locals: locals?,
        monitor: PyMonitor::new(role(
            "monitor",
            "Monitor",
            policy.call_method1("monitor", (&shape,))?,
        )?),
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
