//! The signal with which the daemon makes a kthread read its orders.
#![expect(unsafe_code, reason = "a signal handler, and a thread's word for it")]

use super::links::Links;
use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::{Arc, Once};

/// The calling thread's kthread.
#[derive(Clone, Copy)]
struct OwnKthread {
    links: *const Links,
    kthread: usize,
}

const NOBODY: OwnKthread = OwnKthread {
    links: ptr::null(),
    kthread: 0,
};

thread_local! {
    static OWN: Cell<OwnKthread> = const { Cell::new(NOBODY) };
}

/// Makes the calling thread this kthread, and keeps the links alive until [`go`].
pub(super) fn come(links: &Arc<Links>, kthread: usize) {
    go();
    let links = Arc::into_raw(Arc::clone(links));
    OWN.set(OwnKthread { links, kthread });
}

/// Ends the calling thread's role as a kthread.
pub(super) fn go() {
    let OwnKthread { links, .. } = OWN.replace(NOBODY);
    if !links.is_null() {
        // SAFETY: `come` made the pointer of an Arc, and only this call takes it back, since it has left the thread's word.
        drop(unsafe { Arc::from_raw(links) });
    }
}

/// Installs the handler, once.
pub(super) fn install() -> io::Result<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = install_handler());
    result
}

fn install_handler() -> io::Result<()> {
    // SAFETY: all fields are integers and a null pointer, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = heed as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is a function of the kind that is asked for, and safe in a signal: see there.
    match unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stops the kthread at this point, if it must leave its core. It only loads and stores atomic words and sleeps on a futex.
extern "C" fn heed(_signal: libc::c_int) {
    let OwnKthread { links, kthread } = OWN.get();
    if links.is_null() {
        return;
    }
    // SAFETY: this thread's `errno` is what the interrupted code may be about to read.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: `come` keeps them until `go`, which this thread does not run meanwhile.
    let links = unsafe { &*links };
    if (links.options.may_stop)() {
        links.stop_here(kthread);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
