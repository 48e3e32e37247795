//! Preemption by signal: the handler itself yields, and returns to the interrupted instruction when its fiber resumes.
//!
//! The handler runs on the fiber's stack. The kernel has put all registers there, vector state included, and the handler is suspended
//! there like any other frame. It unmasks the signal while it is suspended, so the thread's other fibers stay interruptible.
//! (With `SA_NODEFER` instead, signals that come faster than they are handled pile up frames until the stack is full.)
//!
//! A [timer](crate::slice_timer) sends the same signal. For it the handler only raises the thread's flag.
#![expect(unsafe_code, reason = "a signal handler")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::LazyLock;
use std::{io, mem, ptr};

use headway_sync::Guarded;
use headway_sync::world;

use crate::control::FiberControl;
use crate::kernel_mask;
use crate::local;
use crate::signal_frames::interrupted_handler;
use crate::slow;
use crate::switch::may_leave;

/// Ignored by default, so a late signal does no harm. Hardly any program uses it: it announces out-of-band data of sockets.
pub(crate) const SIGNAL: libc::c_int = libc::SIGURG;

/// Interrupts a thread of this process; its handler reads its flag.
#[inline]
pub(crate) fn send(thread: libc::pid_t) {
    // A thread of a deterministic world that waits for its turn must not be interrupted there: it sends the signal to itself in its turn.
    if let Some(scheduler) = world::current() {
        return scheduler.signal(thread);
    }
    // SAFETY: at worst the thread is gone, or its number belongs to another thread of this process, whose flag has no request.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) };
}

/// The reason why the signal cannot be used; none if it can.
pub(crate) fn obstacle() -> Option<String> {
    let present = match present() {
        Ok(present) => present,
        Err(error) => return Some(error.to_string()),
    };
    let ours = interrupted as *const () as usize;
    let free = [libc::SIG_DFL, libc::SIG_IGN, ours].contains(&present);
    (!free).then(|| "another handler of SIGURG is installed".into())
}

/// Whether our handler is there still. The program may have replaced it.
pub(crate) fn is_installed() -> bool {
    present().is_ok_and(|present| present == interrupted as *const () as usize)
}

/// The signal's handler, by its address.
fn present() -> io::Result<usize> {
    // SAFETY: only asks; a zeroed structure is valid.
    unsafe {
        let mut present: libc::sigaction = mem::zeroed();
        if libc::sigaction(SIGNAL, ptr::null(), &mut present) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(present.sa_sigaction)
    }
}

/// The value that a slice's timer sends along, which no other timer of the program does.
pub(crate) fn slice_timer_value() -> *mut c_void {
    (interrupted as *const ()).cast_mut().cast()
}

/// The stack that the handler needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum HandlerStack {
    /// Any: it runs on the alternate one, and a fiber need not have room for it.
    Any,
    /// The fiber's, where its frame stays while other fibers run.
    Fiber,
}

/// Installs the handler for the process, unless it is there and has the stack that it needs.
pub(crate) fn install(stack: HandlerStack) -> Result<(), String> {
    static INSTALLED: LazyLock<Guarded<Option<HandlerStack>>> = LazyLock::new(Guarded::default);
    let mut installed = INSTALLED.lock();
    if *installed < Some(stack) {
        obstacle().map_or_else(|| install_now(stack), Err)?;
        *installed = Some(stack);
    }
    Ok(())
}

fn install_now(stack: HandlerStack) -> Result<(), String> {
    // SAFETY: the handler has the type that SA_SIGINFO demands, and keeps what it interrupts.
    let installed = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = interrupted as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        if stack == HandlerStack::Any {
            action.sa_flags |= libc::SA_ONSTACK;
        }
        libc::sigaction(SIGNAL, &action, ptr::null_mut())
    };
    if installed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error().to_string())
    }
}

/// A fiber that is asked again while it is suspended yields again from the same frame: a second handler, which interrupts this one, leaves
/// the request to it. So a stack never holds more than two frames of handlers, however fast signals come.
extern "C" fn interrupted(
    _: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel's information about this signal; one of a timer has a value.
    let is_slice_timer = unsafe {
        (*info).si_code == libc::SI_TIMER && (*info).si_value().sival_ptr == slice_timer_value()
    };
    if is_slice_timer {
        return local::raise_self_timed();
    }
    let mut left = false;
    // SAFETY: this signal's context.
    let is_nested = || unsafe { interrupts_handler(context) };
    while !in_handler()
        && !is_nested()
        && let Some(control) = slow::signalled()
    {
        // SAFETY: the fiber is current and was granted to yield.
        unsafe { suspend_in_handler(control, SIGNAL) };
        left = true;
    }
    if left {
        // SAFETY: this signal's context.
        unsafe { return_on_this_thread(context) };
    }
}

/// Suspends the fiber that a signal interrupted, for the handler of that signal. Returns `true` once the fiber is resumed, maybe in another thread. Returns
/// `false`, without an effect, where no fiber runs or it cannot be suspended: in a no-preempt section, while it panics, in another handler that suspends it.
///
/// # Safety
/// The caller handles `signal`, on the stack of the code that it interrupted, and `context` is the `ucontext_t` that it was given. The signal is blocked
/// meanwhile. The fiber may be suspended after any instruction: see [`BySignal::new`](crate::BySignal::new).
pub unsafe fn suspend_interrupted(signal: libc::c_int, context: *mut c_void) -> bool {
    let Some(control) = NonNull::new(local::fiber()) else {
        return false;
    };
    // SAFETY: this thread's current fiber, left only where it may be; the caller's promise.
    unsafe {
        if in_handler()
            || local::no_preempt() > 0
            || interrupted_handler(control, context.cast())
            || !may_leave(control)
        {
            return false;
        }
        suspend_in_handler(control, signal);
        return_on_this_thread(context.cast());
    }
    true
}

/// # Safety
/// The fiber is current and may leave; the caller handles the signal, which is blocked.
unsafe fn suspend_in_handler(control: NonNull<FiberControl>, signal: libc::c_int) {
    // SAFETY: the caller's promise.
    unsafe {
        let in_handler = &control.as_ref().in_handler;
        in_handler.set(true);
        mask(libc::SIG_UNBLOCK, signal);
        slow::suspend(control);
        mask(libc::SIG_BLOCK, signal);
        in_handler.set(false);
    }
}

/// On return the kernel restores the alternate stack saved in `context`: that of the thread which the signal interrupted. This replaces it by that of the
/// thread which runs the handler now.
///
/// # Safety
/// The context is that of the signal being handled, on this stack.
unsafe fn return_on_this_thread(context: *mut libc::ucontext_t) {
    // SAFETY: the caller's promise.
    unsafe { libc::sigaltstack(ptr::null(), &raw mut (*context).uc_stack) };
}

/// Whether the code that the signal interrupted is in a handler of the program's.
///
/// # Safety
/// The context is that of the signal being handled.
unsafe fn interrupts_handler(context: *mut libc::ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    NonNull::new(local::fiber()).is_some_and(|fiber| unsafe { interrupted_handler(fiber, context) })
}

/// Whether the running fiber is in a handler that suspends it already.
fn in_handler() -> bool {
    // SAFETY: null, or this thread's current fiber.
    unsafe { local::fiber().as_ref() }.is_some_and(|control| control.in_handler.get())
}

/// Blocks or unblocks a signal in this thread. The job that it interrupted did not ask for that.
fn mask(how: libc::c_int, signal: libc::c_int) {
    let set: u64 = 1 << (signal - 1);
    // SAFETY: a set of one signal.
    unsafe { kernel_mask::change(how, &raw const set, ptr::null_mut()) };
}
