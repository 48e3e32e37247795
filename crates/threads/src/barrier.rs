//! The barrier that the locks and cells of a process share.

use std::sync::LazyLock;

use headway_kthread::SleeperBarrier;

/// Between the store and the load of each side: a common operation pays nothing, the rare one for both.
pub(crate) static BARRIER: LazyLock<SleeperBarrier> = LazyLock::new(SleeperBarrier::new);
