//! A wait until every packet under way has finished with its table look-ups.
#![expect(unsafe_code, reason = "membarrier has no safe wrapper")]

use std::time::Duration;

/// `MEMBARRIER_CMD_GLOBAL`: the kernel waits for an RCU grace period.
const GLOBAL: libc::c_int = 1;

/// Returns when every XDP program that was running at the call has ended: they run inside RCU read sections, and the call waits for all of
/// these. Milliseconds, on the control plane's thread.
pub(crate) fn wait() {
    // SAFETY: this command takes no pointer, and changes no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if result != 0 {
        // Kernels with full dynticks refuse the command. A program takes microseconds.
        std::thread::sleep(Duration::from_millis(10));
    }
}
