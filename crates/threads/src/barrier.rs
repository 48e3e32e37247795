//! The asymmetric barrier that a process's locks and cells share. It stands between the store and the load of each side: free for the common operation,
//! while the rare one pays for both.

pub(crate) use real::{heavy, light, prepare};

#[cfg(not(loom))]
mod real {
    use std::sync::LazyLock;

    use headway_kthread::SleeperBarrier;

    static BARRIER: LazyLock<SleeperBarrier> = LazyLock::new(SleeperBarrier::new);

    /// Registers the process, so that [`light`] does without.
    pub(crate) fn prepare() {
        LazyLock::force(&BARRIER);
    }

    /// The barrier of the rare side.
    pub(crate) fn heavy() {
        BARRIER.before_sleep();
    }

    /// The barrier of the common side.
    #[inline(always)]
    pub(crate) fn light() {
        BARRIER.after_work();
    }
}

/// For loom, which models no barrier that another thread imposes: both sides execute a fence.
#[cfg(loom)]
mod real {
    use loom::sync::atomic::{Ordering, fence};

    pub(crate) fn prepare() {}

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn light() {
        fence(Ordering::SeqCst);
    }
}
