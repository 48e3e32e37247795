//! What a policy in Python sees.

use headway_policy::server::role::Backlog;
use headway_policy::{ClassHint, Job, WorkerId};
use pyo3::prelude::*;

/// A request.
#[pyclass(frozen, name = "Job", module = "headway._native")]
pub(crate) struct JobView(pub(crate) Job);

#[pymethods]
impl JobView {
    /// Its identity while it lives.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id.0
    }

    /// Its class, as the classifier said: an index into the shape's classes, or their number where it is unknown.
    #[getter]
    fn class_index(&self) -> u16 {
        self.0.class.0
    }

    /// Connection or flow hash.
    #[getter]
    fn flow(&self) -> u32 {
        self.0.flow
    }

    /// When it reached the server.
    #[getter]
    fn arrived_ns(&self) -> u64 {
        self.0.arrived_ns
    }

    /// Its whole service time, which a simulation knows.
    #[getter]
    fn size_ns(&self) -> u64 {
        self.0.size_ns
    }

    /// Service it received before its last interruption.
    #[getter]
    fn attained_ns(&self) -> u64 {
        self.0.attained_ns
    }

    /// Service it still wants.
    #[getter]
    fn remaining_ns(&self) -> u64 {
        self.0.remaining_ns()
    }
}

/// The workers' queues, as they are now.
#[pyclass(frozen, name = "QueuesNow", module = "headway._native", get_all)]
pub(crate) struct QueuesView {
    /// Lengths by worker, running requests not included.
    lengths: Vec<usize>,
}

impl QueuesView {
    pub(crate) fn of(queues: &impl Backlog) -> Self {
        let workers = 0..queues.workers() as u16;
        Self {
            lengths: workers.map(|worker| queues.len(WorkerId(worker))).collect(),
        }
    }
}

/// The server that a policy is built for.
#[pyclass(frozen, name = "Shape", module = "headway._native", get_all)]
pub(crate) struct ShapeView {
    /// Number of workers.
    pub(crate) workers: usize,
    /// Names of the classes.
    pub(crate) classes: Vec<String>,
    /// Their mean service times, ns.
    pub(crate) mean_ns: Vec<f64>,
    /// Their shares of the requests.
    pub(crate) shares: Vec<f64>,
    /// Seed of every random choice.
    pub(crate) seed: u64,
}

impl ShapeView {
    pub(crate) fn of(workers: usize, classes: &[&str], hints: &[ClassHint], seed: u64) -> Self {
        Self {
            workers,
            classes: classes.iter().map(|&name| name.to_owned()).collect(),
            mean_ns: hints.iter().map(|hint| hint.mean_ns).collect(),
            shares: hints.iter().map(|hint| hint.share).collect(),
            seed,
        }
    }
}
