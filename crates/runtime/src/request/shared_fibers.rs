//! What the fibers of all threads share.

use std::sync::Arc;

use headway_fiber::{Mechanism, Stacks};
use headway_machine::Clock;
use headway_net::pool::SlotPool;
use headway_policy::Resume;

use crate::request::rescue::Rescue;
use crate::request::sayers::Sayers;
use crate::request::service::Service;
use crate::request::suspended::SuspendedRequests;
use crate::stats::overruns::Overruns;

/// What the fibers of all threads share.
pub(crate) struct FiberContext {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) stacks: Arc<Stacks>,
    /// Stacks with a thread's state, for requests that may be interrupted; `None` where they need none.
    pub(crate) donors: Option<Arc<Stacks>>,
    /// The classes whose requests may say that they are long.
    pub(crate) sayers: Arc<Sayers>,
    /// Who sends suspended requests home.
    pub(crate) rescue: Arc<Rescue>,
    pub(crate) suspended: Arc<SuspendedRequests>,
    pub(crate) pool: Arc<SlotPool>,
    pub(crate) resume: Resume,
    /// By what the dispatcher interrupts.
    pub(crate) mechanism: Mechanism,
    /// Whether requests are interrupted only where they say that they are long.
    pub(crate) feedback: bool,
    /// Whether who limits a request's slices goes by its saying that it is long.
    pub(crate) heeds_length: bool,
    /// What becomes of requests that do not yield.
    pub(crate) overruns: Arc<Overruns>,
    pub(crate) clock: Clock,
}

impl Clone for FiberContext {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            stacks: Arc::clone(&self.stacks),
            donors: self.donors.clone(),
            sayers: Arc::clone(&self.sayers),
            rescue: Arc::clone(&self.rescue),
            suspended: Arc::clone(&self.suspended),
            pool: Arc::clone(&self.pool),
            resume: self.resume,
            mechanism: self.mechanism,
            feedback: self.feedback,
            heeds_length: self.heeds_length,
            overruns: Arc::clone(&self.overruns),
            clock: self.clock,
        }
    }
}
