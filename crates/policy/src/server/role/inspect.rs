//! What an ingress shows.

use crate::ClassId;
use crate::server::{Job, JobId, Plan};

/// How urgent a request is: the least goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UrgencyIndex {
    /// Service that it is expected to take for each completion, ns.
    pub ns: u64,
    /// The index is this one until the request has had so much service, ns.
    pub until_ns: u64,
}

/// What monitors and engines may look at.
pub trait Inspect {
    /// The request that would be dispatched after `others` more, in case these leave first; 0 asks for the next. `None` where
    /// there is none or the discipline cannot tell.
    fn peek(&self, others: usize) -> Option<&Job>;

    /// What the ingress knows of a request that it dispatched and that has not finished.
    fn dispatched(&self, job: JobId) -> Option<&Job>;

    /// How urgent a request of the class is after so much service; `None` where the order goes by something else.
    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex>;

    /// Who may run what, where the ingress follows such a plan.
    fn plan(&self) -> Option<&Plan>;

    /// How often the plan was revised.
    fn revisions(&self) -> u64;
}

/// Shows nothing, follows no plan.
pub trait WithoutInspection {}

impl<I: WithoutInspection> Inspect for I {
    #[inline]
    fn peek(&self, _others: usize) -> Option<&Job> {
        None
    }

    #[inline]
    fn dispatched(&self, _job: JobId) -> Option<&Job> {
        None
    }

    #[inline]
    fn index(&self, _class: ClassId, _attained_ns: u64) -> Option<UrgencyIndex> {
        None
    }

    fn plan(&self) -> Option<&Plan> {
        None
    }

    #[inline]
    fn revisions(&self) -> u64 {
        0
    }
}
