//! The barrier between a thread that is about to sleep and a thread that brings work.
#![expect(unsafe_code, reason = "membarrier has no wrapper")]

use std::io;
use std::sync::atomic::compiler_fence;

#[cfg(loom)]
use loom::sync::atomic::{Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{Ordering, fence};

/// Orders a store before a load on both sides (Dekker). The sleeper announces its sleep and then looks for work; the other thread queues work and
/// then looks for sleepers.
///
/// Sleeping is rarer than queueing work, so the sleeper pays for both: its `membarrier` is a barrier in every running thread of the process.
#[derive(Debug)]
pub struct SleeperBarrier {
    asymmetric: bool,
}

impl Default for SleeperBarrier {
    fn default() -> Self {
        Self::new()
    }
}

impl SleeperBarrier {
    /// Registers the process where the kernel has `membarrier`; otherwise both sides pay. So they do under loom, which models no barrier that another
    /// thread imposes.
    pub fn new() -> Self {
        Self {
            asymmetric: !cfg!(loom)
                && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).is_ok(),
        }
    }

    /// The sleeper's side: called between the announcement of the sleep and the last look for work.
    pub fn before_sleep(&self) {
        fence(Ordering::SeqCst);
        if self.asymmetric {
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).expect("the process registered");
        }
    }

    /// The other side: called between queueing work and the look for sleepers.
    #[inline]
    pub fn after_work(&self) {
        if self.asymmetric {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
