//! A barrier between two threads, of which the rare one pays for both.
#![expect(unsafe_code, reason = "membarrier has no wrapper")]

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::compiler_fence;

use crate::atomic::{Ordering, fence};

/// Orders a store before a load on both sides (Dekker). A sleeper announces its sleep and then looks for work; another thread queues work and
/// then looks for sleepers. Each calls the barrier in between, and one of the two sees the other.
///
/// Sleeping is rarer than queueing work, so the sleeper pays for both: its `membarrier` is a barrier in every running thread of the process.
#[derive(Debug)]
pub struct AsymmetricBarrier {
    asymmetric: bool,
}

impl Default for AsymmetricBarrier {
    fn default() -> Self {
        Self::new()
    }
}

impl AsymmetricBarrier {
    /// Registers the process where the kernel has `membarrier`; otherwise both sides pay. So they do in models, which have no barrier that another
    /// thread imposes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            asymmetric: !cfg!(any(loom, shuttle))
                && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).is_ok(),
        }
    }

    /// The barrier of the rare side: called between the announcement of a sleep and the last look for work.
    ///
    /// # Panics
    /// Never: the kernel refuses the barrier only to a process that has not registered.
    pub fn heavy(&self) {
        fence(Ordering::SeqCst);
        if self.asymmetric {
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).expect("the process registered");
        }
    }

    /// The barrier of the common side: called between queueing work and the look for sleepers.
    #[inline]
    pub fn light(&self) {
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

/// The barrier that all locks and cells of the process share.
static PROCESS: LazyLock<AsymmetricBarrier> = LazyLock::new(AsymmetricBarrier::new);

/// Registers the process, so that [`light`] does without.
pub fn prepare() {
    LazyLock::force(&PROCESS);
}

/// As [`AsymmetricBarrier::heavy`], of a barrier that the process shares.
///
/// # Panics
/// Never, as there.
pub fn heavy() {
    PROCESS.heavy();
}

/// As [`AsymmetricBarrier::light`], of a barrier that the process shares.
#[inline(always)]
pub fn light() {
    PROCESS.light();
}
