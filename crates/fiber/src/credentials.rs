//! Changes of credentials, while threads run with the variables of others.
//!
//! The kernel keeps credentials for a thread. So the C library's `setuid` sends its other threads a signal, whose handler makes the same call, notes it in its thread's record and wakes
//! the caller. The caller sends the signal again until every record has the note. The handler finds the record by the base of the thread-local variables: in a worker that
//! runs a fiber with a [thread's state](crate::donor) it would find the donor's, and the caller would send for ever. Another handler stands before it, which gives
//! the thread its own base meanwhile.
//!
//! Where the fiber is the caller, the C library takes the donor for the thread that calls, and sends it nothing. So the worker hands what it has then on to the donor's
//! thread, which would go on with the fiber at home by the credentials from before.
#![expect(
    unsafe_code,
    reason = "stands before a signal handler of the C library's"
)]

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr::NonNull;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use headway_machine::thread::fork;

use crate::donor_threads::{DonorThread, thread_number};
use crate::fs;
use crate::handover::ThreadWords;
use crate::kernel_action::KernelAction;
use crate::kernel_credentials::KernelCredentials;
use crate::kernel_mask::SIGSETXID;

/// The calling thread's own base, whichever it runs with.
fn own_base() -> usize {
    let mut base = fs::base();
    if fork::forked_here() {
        return base; // A plain thread now.
    }
    let thread = thread_number();
    // A fiber may run within a fiber.
    while let Some(donor) = DonorThread::with_base(base)
        && donor.thread() != thread
    {
        // SAFETY: this thread runs with the base of a donor that parks, so it runs the donor's fiber, or code of such a fiber's within which it does.
        let resumer = unsafe {
            let fiber = NonNull::new(ThreadWords::at(base).fiber().cast_mut());
            fiber.map(|fiber| fiber.as_ref().resumer_base.get())
        };
        let Some(resumer) = resumer else {
            break;
        };
        base = resumer;
    }
    base
}

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The C library's handler, by its address.
static THEIRS: AtomicUsize = AtomicUsize::new(0);

/// Has the handler stand before the C library's, which installs its own with a process's first thread. Where it has none, nothing is done.
pub(crate) fn stand_before_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(mut action) = KernelAction::of(SIGSETXID).filter(KernelAction::is_function) else {
            return;
        };
        THEIRS.store(action.handler, Ordering::Relaxed);
        action.handler = credentials_change as *const () as usize;
        // SAFETY: of the same type, with the flags, the mask and the way back of the handler before.
        unsafe { action.install(SIGSETXID) };
    });
}

/// Has the C library's handler run with the thread's own variables, and the thread whose variables they are not follow.
unsafe extern "C" fn credentials_change(
    signal: c_int,
    about: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let (base, own) = (fs::base(), own_base());
    // SAFETY: the kernel's information about this signal. A donor's thread that is given credentials finds them, whoever else sends such a signal; they stay until
    // it has taken them.
    unsafe {
        if (*about).si_code == libc::SI_QUEUE {
            let given = DonorThread::with_base(own).and_then(DonorThread::is_given);
            return given.map_or((), |given| given.as_ref().take());
        }
    }
    // SAFETY: the kernel's arguments, for the handler that was installed before. Between the two exchanges nothing here uses a thread-local variable, and the
    // handler finds those of this thread, which run nothing else meanwhile.
    unsafe {
        let theirs = mem::transmute::<usize, Handler>(THEIRS.load(Ordering::Relaxed));
        if own == base {
            return theirs(signal, about, context);
        }
        fs::set_base(own);
        theirs(signal, about, context);
        fs::set_base(base);
    }
    // SAFETY: as above.
    let calls = unsafe { signals_itself(signal, context.cast()) };
    if calls
        && let Some(donor) = DonorThread::with_base(base)
        && !hand_on(donor, signal)
    {
        // A thread with more rights than the program believes: the C library ends the program where its own threads differ.
        const WHY: &str = "headway: a thread kept its credentials where others changed theirs\n";
        // SAFETY: a message of so many bytes; a handler may end the program so.
        unsafe {
            libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
            libc::abort();
        }
    }
}

/// Whether the signal came of the interrupted thread's own `tgkill`: so it is the one that calls the C library, which sends nothing to the donor. Of another caller the
/// donor hears by itself.
///
/// # Safety
/// The context is that of the signal being handled.
unsafe fn signals_itself(signal: c_int, context: *const libc::ucontext_t) -> bool {
    // A system call leaves its arguments as they are, and 0 is success.
    // SAFETY: the caller's promise; and always valid to ask.
    let (registers, process) = unsafe { (&(*context).uc_mcontext.gregs, libc::getpid()) };
    let of = |register: c_int| registers[register as usize];
    let (from, to, sent) = (of(libc::REG_RDI), of(libc::REG_RSI), of(libc::REG_RDX));
    of(libc::REG_RAX) == 0
        && (from, to, sent) == (process.into(), thread_number().into(), signal.into())
}

/// The donor's thread, which parks, gets the credentials of the calling one. Whether it has them.
fn hand_on(donor: &DonorThread, signal: c_int) -> bool {
    // Both threads have the variables of the code that the signal interrupted.
    // SAFETY: their `errno`, in a handler, which stays in its thread.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    let present = KernelCredentials::of_current();
    let has_them = present.is_some_and(|present| donor.give(present.get(), signal));
    *errno = before;
    has_them
}
