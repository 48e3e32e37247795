//! The dispatcher's thread, in the layout that has one.

use std::io;
use std::sync::Arc;

use headway_machine::thread::{fork, give_way, pin_current};
use headway_sync::thread::{self, JoinHandle};

use crate::core::PoolPhase;
use crate::shared::SharedPool;

/// Starts the dispatcher's thread.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn start(shared: &Arc<SharedPool>, core: Option<usize>) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let name = format!("{}-dispatch", shared.name);
    thread::Builder::new().name(name).spawn(move || {
        if let Some(core) = core {
            // Checked when the pool was built, as a worker's is.
            let _ = pin_current(core);
        }
        if shared.nice > 0 {
            let _ = give_way(shared.nice);
        }
        fork::is_worker();
        dispatch(&shared);
    })
}

/// Hears of events and places jobs until the pool has ended. From then on the workers that are left do it.
pub(crate) fn dispatch(shared: &Arc<SharedPool>) {
    loop {
        let now_ns = shared.clock.now_ns();
        let mut core = shared.core.lock();
        core.dispatch(now_ns);
        let is_over = core.phase == PoolPhase::Over;
        if !is_over {
            core.threads.park_dispatcher();
        }
        shared.settle(core);
        if is_over {
            return;
        }
        thread::park();
    }
}
