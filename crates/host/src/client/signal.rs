//! The signal with which the daemon makes a kthread read its orders.
#![expect(unsafe_code, reason = "a signal handler, and a thread's word for it")]

use super::links::Links;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
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
    // On the stack of the interrupted code: a thread that is suspended keeps its frame there.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler is a function of the kind that is asked for, and safe in a signal: see there.
    match unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes the kthread off its core at this point, if it must leave. Suspends the thread in user space that it runs, which other kthreads may continue; if
/// there is none, or it cannot be suspended, the kthread stops here. It only loads and stores words, switches stacks and sleeps on a futex.
extern "C" fn heed(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // What the interrupted code may be about to read.
    let errno = errno();
    // A thread that was suspended is resumed here by any kthread, which may have to leave by now.
    while let Some((links, kthread)) = own()
        && links.must_leave(kthread)
        && links.options.at_signal.may_stop()
    {
        let at_signal = links.options.at_signal;
        // SAFETY: this is the handler of the signal, installed without a stack of its own and without `SA_NODEFER`; the context is the kernel's.
        if !unsafe { at_signal.suspend(signal, context) } {
            links.stop_here(kthread);
            break;
        }
    }
    set_errno(errno);
}

/// The calling thread's kthread. Not inlined: the handler may go on in another kernel thread, where the address of a thread-local variable is another.
#[inline(never)]
fn own<'a>() -> Option<(&'a Links, usize)> {
    let OwnKthread { links, kthread } = OWN.get();
    // SAFETY: null, or kept by `come` until `go`, which this kernel thread does not run before the handler returns or suspends its thread.
    Some((unsafe { links.as_ref() }?, kthread))
}

/// The calling thread's `errno`. Not inlined, as [`own`].
#[inline(never)]
fn errno() -> c_int {
    // SAFETY: always valid to call, and this thread's own.
    unsafe { *libc::__errno_location() }
}

#[inline(never)]
fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
