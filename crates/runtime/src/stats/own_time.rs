//! The time that a thread itself had a core: by the system's account, or by that of a deterministic world.

use std::sync::Arc;

use headway_fiber::ReadsOwnTime;
use headway_machine::thread::CpuClock;
use headway_sync::world::{self, Scheduler, ThreadTicket};

/// Reads a thread's own time, also from other threads.
#[derive(Clone)]
pub(crate) enum OwnTime {
    System(CpuClock),
    World {
        scheduler: Arc<dyn Scheduler>,
        thread: ThreadTicket,
    },
}

impl OwnTime {
    /// The calling thread's.
    pub(crate) fn of_current() -> Self {
        match world::current() {
            Some(scheduler) => Self::World {
                thread: scheduler.this_thread(),
                scheduler,
            },
            None => Self::System(CpuClock::of_current()),
        }
    }

    /// For how long the thread has had a core, ns; `None` where nobody knows. Outside of a world it is a system call.
    #[cold]
    pub(crate) fn read_ns(&self) -> Option<u64> {
        match self {
            Self::System(clock) => clock.read_ns(),
            Self::World { scheduler, thread } => Some(scheduler.own_ns(*thread)),
        }
    }
}

impl ReadsOwnTime for OwnTime {
    fn own_ns(&self) -> Option<u64> {
        self.read_ns()
    }
}

/// The watch over a request that was asked to yield and goes on: how long its thread itself has had a core since it was first suspected.
#[derive(Clone, Copy, Default)]
pub(crate) struct SuspectedRun {
    /// The thread's own time at the first suspicion, ns.
    since_ns: Option<u64>,
}

impl SuspectedRun {
    /// The thread's own time since the first call, ns, which is 0 then and where nobody knows.
    pub(crate) fn own_ns(&mut self, thread: &OwnTime) -> u64 {
        let Some(now_ns) = thread.read_ns() else {
            return 0;
        };
        now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns))
    }
}
