//! The barrier that the locks and cells of a process share: between the store and the load of each side, a common operation pays nothing, the rare one for
//! both.

pub(crate) use real::{heavy, light, prepare};

#[cfg(not(loom))]
mod real {
    use std::sync::LazyLock;

    use headway_kthread::SleeperBarrier;

    static BARRIER: LazyLock<SleeperBarrier> = LazyLock::new(SleeperBarrier::new);

    /// Registers the process, so that [`light`] need not.
    pub(crate) fn prepare() {
        LazyLock::force(&BARRIER);
    }

    /// The rare side's.
    pub(crate) fn heavy() {
        BARRIER.before_sleep();
    }

    /// The common side's.
    #[inline(always)]
    pub(crate) fn light() {
        BARRIER.after_work();
    }
}

/// For loom, which models no barrier from outside: both sides pay.
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
