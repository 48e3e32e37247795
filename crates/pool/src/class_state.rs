//! One class of a pool: its queue, and what became of its jobs.

use headway_policy::server::admission_control::ClassAdmission;

use crate::class_queue::ClassQueue;
use crate::stats::{ClassCounts, ClassRuns};

/// A class as its pool was built.
#[derive(Clone, Debug)]
pub(crate) struct BuiltClass {
    pub(crate) name: String,
    pub(crate) admission: ClassAdmission,
    pub(crate) uninterrupted: bool,
}

#[cfg(test)]
impl BuiltClass {
    /// One without limits, of which nothing is known.
    pub(crate) fn open(name: &str) -> Self {
        Self {
            name: name.into(),
            admission: ClassAdmission::OPEN,
            uninterrupted: false,
        }
    }
}

/// What the pool knows of a class.
pub(crate) struct ClassState {
    pub(crate) name: String,
    pub(crate) uninterrupted: bool,
    pub(crate) queue: ClassQueue,
    pub(crate) running: usize,
    pub(crate) asleep: usize,
    pub(crate) counts: ClassCounts,
    pub(crate) runs: ClassRuns,
    /// How often a job met a probe when its slice was over.
    pub(crate) probes_met: u64,
    /// Whether it was named as one whose jobs meet no probe.
    pub(crate) is_named: bool,
}

impl ClassState {
    pub(crate) fn new(built: BuiltClass) -> Self {
        Self {
            name: built.name,
            uninterrupted: built.uninterrupted,
            queue: ClassQueue::default(),
            running: 0,
            asleep: 0,
            counts: ClassCounts::default(),
            runs: ClassRuns::default(),
            probes_met: 0,
            is_named: false,
        }
    }
}
