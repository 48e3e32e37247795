//! Any idle worker: the single queue of c-FCFS.

use super::{Placement, Workers};
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// The idle worker of the lowest index.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleWorker;

impl Placement for IdleWorker {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, workers: &Workers) -> bool {
        !workers.idle().is_empty()
    }

    #[inline]
    fn place(&mut self, _job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        workers.idle().first().map(|worker| WorkerId(worker as u16))
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
