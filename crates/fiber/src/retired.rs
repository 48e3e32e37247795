//! Donors that are to end, kept for as long as another thread may still write to their lines.
#![expect(unsafe_code, reason = "ends threads whose words others may write")]

use std::mem;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::donor::{self, Donor};

/// Ends a donor, unless a [flag](crate::YieldFlag) may still be raised in its line: then with the last flag of the process.
pub(crate) fn retire(donor: NonNull<Donor>) {
    let mut lines = lines();
    if lines.flags > 0 {
        lines.retired.push(Retired(donor));
        return;
    }
    drop(lines);
    // SAFETY: the stack was the only handle, and its fiber is gone.
    unsafe { donor::end(donor) };
}

/// Counts a flag that points into a thread's line, or may.
pub(crate) fn flag_made() {
    lines().flags += 1;
}

/// A flag is no more.
pub(crate) fn flag_dropped() {
    let mut lines = lines();
    lines.flags -= 1;
    if lines.flags > 0 {
        return;
    }
    let retired = mem::take(&mut lines.retired);
    drop(lines);
    for Retired(donor) in retired {
        // SAFETY: as in `retire`, and nobody knows its line any more.
        unsafe { donor::end(donor) };
    }
}

/// Who may write to the lines of donors.
struct Lines {
    flags: usize,
    retired: Vec<Retired>,
}

struct Retired(NonNull<Donor>);

// SAFETY: any thread may end a donor.
unsafe impl Send for Retired {}

static LINES: Mutex<Lines> = Mutex::new(Lines {
    flags: 0,
    retired: Vec::new(),
});

fn lines() -> MutexGuard<'static, Lines> {
    // What is done under the lock leaves it whole.
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}
