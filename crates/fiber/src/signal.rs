//! Preemption by signal: the handler itself yields, and returns to the interrupted instruction when its fiber goes on.
//!
//! The handler runs on the fiber's stack, on which the kernel has put all registers, vector state included; it is suspended
//! there like any other frame. Since other fibers of the thread must be interruptible meanwhile, it unmasks the signal while it is suspended.
//! (With `SA_NODEFER` instead, signals that come faster than they are handled pile up frames until the stack is full.)
#![expect(unsafe_code, reason = "a signal handler")]

use std::marker::PhantomData;
use std::sync::OnceLock;
use std::{io, mem, ptr};

use crate::attached::Attached;
use crate::local;
use crate::mechanism::{Asker, Mechanism, Preempt, Unavailable};
use crate::slow;

/// Ignored by default, so one that comes late harms nobody; used by hardly anything (out-of-band data of sockets).
const SIGNAL: libc::c_int = libc::SIGURG;

/// [`Mechanism::Signal`].
#[derive(Debug)]
pub struct BySignal<'a> {
    thread: &'a Attached,
    tid: libc::pid_t,
    bound: PhantomData<*mut ()>,
}

impl<'a> BySignal<'a> {
    /// The thread yields when it is sent `SIGURG`, wherever it is in a fiber. Probes still work.
    ///
    /// # Safety
    /// Any instruction of a fiber may be followed by a suspension. So whatever its code calls that keeps state which other
    /// fibers or the thread use (the allocator, a lock, the standard library's thread-locals, standard output) must run inside
    /// [`NoPreempt`](crate::NoPreempt) sections: [`NoPreemptAlloc`](crate::NoPreemptAlloc), [`FiberMutex`](crate::FiberMutex). Code that
    /// computes on its own memory needs nothing.
    ///
    /// # Errors
    /// Somebody else handles the signal.
    pub unsafe fn new(thread: &'a Attached) -> Result<Self, Unavailable> {
        install().map_err(|why| Unavailable {
            mechanism: Mechanism::Signal,
            why,
        })?;
        Ok(BySignal {
            thread,
            // SAFETY: no arguments, no failure.
            tid: unsafe { libc::gettid() },
            bound: PhantomData,
        })
    }
}

impl Preempt for BySignal<'_> {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Signal
    }

    #[inline]
    fn begin(&self, epoch: u64, _: u64) {
        self.thread.begin(epoch);
    }

    fn asker(&self) -> Option<Asker> {
        Some(Asker {
            flag: self.thread.flag(),
            thread: Some(self.tid),
        })
    }
}

/// Interrupts a thread of this process: it will look at its flag.
#[inline]
pub(crate) fn send(thread: libc::pid_t) {
    // SAFETY: at worst there is no such thread any more, or another of this process that has nothing in its flag.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) };
}

/// Why the signal cannot be used, if so.
pub(crate) fn obstacle() -> Option<String> {
    // SAFETY: only asks; a zeroed structure is valid.
    let present = unsafe {
        let mut present: libc::sigaction = mem::zeroed();
        if libc::sigaction(SIGNAL, ptr::null(), &mut present) != 0 {
            return Some(io::Error::last_os_error().to_string());
        }
        present.sa_sigaction
    };
    let ours = interrupted as *const () as usize;
    let free = [libc::SIG_DFL, libc::SIG_IGN, ours].contains(&present);
    (!free).then(|| "another handler of SIGURG is installed".into())
}

/// Installs the handler, once for the process.
fn install() -> Result<(), String> {
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| obstacle().map_or_else(install_now, Err))
        .clone()
}

fn install_now() -> Result<(), String> {
    // SAFETY: the handler has the type that SA_SIGINFO demands, and keeps what it interrupts.
    let installed = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = interrupted as *const () as usize;
        // On the fiber's stack, not on the alternate one: the frame stays while others run.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(SIGNAL, &action, ptr::null_mut())
    };
    if installed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error().to_string())
    }
}

/// Asked again while it was suspended, the fiber yields again from the same frame: a handler that interrupts this one leaves the request to
/// it. So there are never more than two frames, however fast the signals come.
extern "C" fn interrupted(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let mut left = false;
    while !in_handler()
        && let Some(control) = slow::signalled()
    {
        // SAFETY: the fiber is current and was granted to yield.
        unsafe {
            let in_handler = &control.as_ref().in_handler;
            in_handler.set(true);
            mask(libc::SIG_UNBLOCK);
            slow::suspend(control);
            mask(libc::SIG_BLOCK);
            in_handler.set(false);
        }
        left = true;
    }
    if left {
        // The kernel will set the thread's alternate stack to what it was when the signal came, in the thread that was running then.
        // SAFETY: the context is this signal's, on this stack; this thread's own alternate stack goes into it.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut (*context).uc_stack) };
    }
}

/// Whether the fiber that runs is in this handler already.
fn in_handler() -> bool {
    // SAFETY: null, or this thread's current fiber.
    unsafe { local::fiber().as_ref() }.is_some_and(|control| control.in_handler.get())
}

/// Lets the signal through to this thread, or no longer.
fn mask(how: libc::c_int) {
    // SAFETY: a set of one signal.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigaddset(&mut set, SIGNAL);
        libc::pthread_sigmask(how, &set, ptr::null_mut());
    }
}
