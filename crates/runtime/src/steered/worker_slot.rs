//! What a worker shares with the monitor's thread: which request it runs, and the flag by which it is interrupted.

use std::sync::{Mutex, OnceLock, PoisonError};

use headway_fiber::Asker;
use headway_policy::{ClassId, Job, JobId};

use crate::request::assignment::EpochCell;
use crate::stats::own_time::OwnTime;
use headway_sync::atomic::{AtomicBool, Ordering};

/// Of the word with a request's identity and its class: whether it has said that it is long.
const SAID_LONG_BIT: u32 = 48;

/// A worker's side of its watching. The worker writes, the monitor's thread reads.
#[derive(Default)]
pub(super) struct SteeredWorkerSlot {
    running: EpochCell<3>,
    /// The worker's flag, until the monitor's thread takes it.
    asker: Mutex<Option<Asker>>,
    /// The time that the worker's thread has had a core; known once it runs.
    pub(super) own_time: OnceLock<OwnTime>,
    /// The worker runs nothing any more.
    gone: AtomicBool,
}

/// A request that runs on a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Running {
    pub(super) epoch: u64,
    /// The request as monitors see it.
    pub(super) job: Job,
    /// Since when, ns; of one that has said that it is long, since then.
    pub(super) since_ns: u64,
}

impl SteeredWorkerSlot {
    /// Hands the worker's flag over.
    pub(super) fn set_asker(&self, asker: Asker) {
        *self.asker.lock().unwrap_or_else(PoisonError::into_inner) = Some(asker);
    }

    /// The worker's flag, once.
    pub(super) fn take_asker(&self) -> Option<Asker> {
        let mut asker = self.asker.lock().unwrap_or_else(PoisonError::into_inner);
        asker.take()
    }

    /// The worker begins or resumes a request, or the request says that it is long.
    #[inline]
    pub(super) fn begin(&self, epoch: u64, job: &Job, since_ns: u64) {
        let said_long = u64::from(job.said_long) << SAID_LONG_BIT;
        let id_and_class = u64::from(job.id.0) | u64::from(job.class.0) << 32 | said_long;
        self.running
            .publish(epoch, [id_and_class, job.arrived_ns, since_ns]);
    }

    /// The request finished, or yielded.
    #[inline]
    pub(super) fn end(&self) {
        self.running.withdraw();
    }

    /// The request that runs, if there is one.
    #[inline]
    pub(super) fn running(&self) -> Option<Running> {
        let (epoch, [id_and_class, arrived_ns, since_ns]) = self.running.read()?;
        let (id, class) = (
            JobId(id_and_class as u32),
            ClassId((id_and_class >> 32) as u16),
        );
        Some(Running {
            epoch,
            job: Job {
                said_long: id_and_class >> SAID_LONG_BIT & 1 == 1,
                ..Job::new(id, class, arrived_ns)
            },
            since_ns,
        })
    }

    /// The worker's thread ends: from now on nobody takes its flag, and whoever has it drops it.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::Release);
        drop(self.take_asker());
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_runs_what_it_began_until_it_ends() {
        let slot = SteeredWorkerSlot::default();
        assert_eq!(slot.running(), None);
        let job = Job::new(JobId(7), ClassId(3), 11);
        slot.begin(1, &job, 13);
        let running = Running {
            epoch: 1,
            job,
            since_ns: 13,
        };
        assert_eq!(slot.running(), Some(running));
        let job = Job {
            said_long: true,
            ..job
        };
        slot.begin(1, &job, 17);
        assert_eq!(slot.running().unwrap().job, job);
        slot.end();
        assert_eq!(slot.running(), None);
    }
}
