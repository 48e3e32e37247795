//! State of a thread beyond its registers that a suspended fiber must find again: floating point's control and status words, and C++ exceptions.
#![expect(
    unsafe_code,
    reason = "control registers, and C++'s thread-local state"
)]

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{mem, ptr};

use crate::no_preempt::{in_one_thread, in_one_thread_before_leaving};

/// Rounding, masked exceptions, flushing of denormals and raised exceptions in `MXCSR`, and the x87 unit's control and status words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FloatWords {
    mxcsr: u32,
    x87_control: u16,
    /// Of the status word, the raised exceptions.
    x87_raised: u16,
}

/// The control words of this process's threads, as the last attached thread had them.
static HOME: AtomicU64 = AtomicU64::new(FloatWords::INITIAL.packed());

/// The status bits of `MXCSR`, and of the x87 unit's status word: raised exceptions.
const RAISED: u32 = 0x3f;

/// A bit of the x87 unit's control word that is kept and has no effect, the infinity control of the 80287 (Intel SDM volume 1, section 8.1.5.4; AMD64 APM volume 1,
/// section 6.2.3). Threads that run fibers set it, and fibers take it along. Linux starts each signal handler with the words of a new process, and gives the
/// interrupted code its own back: so a fiber without it is in a handler.
pub(crate) const OUTSIDE_HANDLERS: u16 = 1 << 12;

/// The x87 unit's environment as instructions store it, for 32 bits and protected mode (Intel SDM volume 1, section 8.1.10).
type X87Environment = [u32; 7];

impl FloatWords {
    /// As a process starts with (System V ABI for x86-64, section 3.4.1).
    const INITIAL: FloatWords = FloatWords {
        mxcsr: 0x1f80,
        x87_control: 0x037f,
        x87_raised: 0,
    };

    #[inline]
    fn now() -> FloatWords {
        let (mut mxcsr, mut x87_control, x87_status): (u32, u16, u16);
        (mxcsr, x87_control) = (0, 0);
        // SAFETY: stores three registers to variables.
        unsafe {
            asm!("stmxcsr [{}]", "fnstcw [{}]", "fnstsw ax", in(reg) &raw mut mxcsr, in(reg) &raw mut x87_control,
                out("ax") x87_status, options(nostack, preserves_flags));
        }
        FloatWords {
            mxcsr,
            x87_control,
            x87_raised: x87_status & RAISED as u16,
        }
    }

    #[inline]
    fn control_now() -> u16 {
        let mut x87_control = 0_u16;
        // SAFETY: stores a register to a variable.
        unsafe {
            asm!("fnstcw [{}]", in(reg) &raw mut x87_control, options(nostack, preserves_flags));
        }
        x87_control
    }

    /// What fibers start with: nothing is raised.
    fn home() -> FloatWords {
        let packed = HOME.load(Ordering::Relaxed);
        FloatWords {
            mxcsr: packed as u32,
            x87_control: (packed >> 32) as u16,
            x87_raised: 0,
        }
    }

    const fn packed(self) -> u64 {
        (self.mxcsr & !RAISED) as u64 | (self.x87_control as u64) << 32
    }

    /// Whether they are those of a thread outside of signal handlers.
    const fn is_marked(self) -> bool {
        self.x87_control & OUTSIDE_HANDLERS != 0
    }

    /// Makes these the thread's, which has `now`. Each is rarely another, and dear to set.
    #[inline]
    fn replace(self, now: FloatWords) {
        if self.mxcsr != now.mxcsr {
            // SAFETY: it was read from this register, so no reserved bit is set.
            unsafe {
                asm!("ldmxcsr [{}]", in(reg) &raw const self.mxcsr, options(nostack, preserves_flags, readonly));
            }
        }
        if (self.x87_control, self.x87_raised) != (now.x87_control, now.x87_raised) {
            self.replace_x87();
        }
    }

    #[cold]
    fn replace_x87(self) {
        let mut environment: X87Environment = [0; 7];
        // SAFETY: the words were read from the unit. Its registers are empty: this is a function's call (System V ABI, section 3.2.1).
        unsafe {
            asm!("fnstenv [{}]", in(reg) &raw mut environment, options(nostack, preserves_flags));
            environment[0] = environment[0] & !0xffff | u32::from(self.x87_control);
            environment[1] = environment[1] & !RAISED | u32::from(self.x87_raised);
            asm!("fldenv [{}]", in(reg) &raw const environment, options(nostack, preserves_flags, readonly));
        }
    }
}

/// Takes the control words of an attaching thread as those that all fibers start with, and marks them.
pub(crate) fn adopt_control_words() {
    mark_outside_handlers();
    // Where the mark does not stay (valgrind), nothing is told by it.
    HOME.store(FloatWords::now().packed(), Ordering::Relaxed);
}

/// Whether the calling thread, which is attached, may be in a signal handler: it lacks the mark. That is so also after code that initialised the x87 unit.
#[inline]
pub(crate) fn lacks_mark() -> bool {
    lacks_mark_in(FloatWords::control_now())
}

/// As [`lacks_mark`], of code with this control word.
#[inline]
pub(crate) fn lacks_mark_in(x87_control: u16) -> bool {
    x87_control & OUTSIDE_HANDLERS == 0 && FloatWords::home().is_marked()
}

/// Marks the calling thread as one outside of signal handlers.
#[cold]
pub(crate) fn mark_outside_handlers() {
    let now = FloatWords::now();
    let marked = FloatWords {
        x87_control: now.x87_control | OUTSIDE_HANDLERS,
        ..now
    };
    marked.replace(now);
}

/// Calls `leave` with the threads' control words, no exception of floating-point raised and the x87 registers empty, and restores the caller's own words
/// afterwards.
#[inline]
pub(crate) fn keeping_control_words(leave: impl FnOnce()) {
    let words = FloatWords::now();
    FloatWords::home().replace(words);
    // Code with `MMX` registers leaves the x87 unit's in use, where others find no place then. Their values a call does not preserve.
    // SAFETY: marks the registers as empty.
    unsafe { asm!("emms", options(nostack, preserves_flags, nomem)) };
    leave();
    words.replace(FloatWords::now());
}

/// A thread's caught exceptions, and the number of its thrown exceptions that are not caught yet (Itanium C++ ABI, section 2.2.2). They form
/// a stack, from which fibers that take turns in `catch` blocks would pop each other's exceptions.
#[repr(C)]
#[derive(Clone, Copy)]
struct CxaEhGlobals {
    caught: *mut u8,
    uncaught: u32,
}

impl CxaEhGlobals {
    const NONE: CxaEhGlobals = CxaEhGlobals {
        caught: ptr::null_mut(),
        uncaught: 0,
    };
}

type GetGlobals = unsafe extern "C" fn() -> *mut CxaEhGlobals;

/// The function that returns a thread's exceptions, if the program has a C++ runtime. (A runtime that `dlopen` loads later is not found.)
#[inline]
fn cxa_get_globals() -> Option<GetGlobals> {
    let get: *const ();
    // SAFETY: loads the address that the linker found for a weak symbol: null for none.
    unsafe {
        asm!(".weak __cxa_get_globals", "mov {}, qword ptr [rip + __cxa_get_globals@GOTPCREL]", out(reg) get,
            options(nostack, preserves_flags, readonly));
    }
    // SAFETY: null, or of the type that the ABI gives the function.
    unsafe { mem::transmute::<*const (), Option<GetGlobals>>(get) }
}

/// Calls `leave` without any exception in flight, and puts the fiber's exceptions back afterwards, into the thread that then runs it.
#[inline(always)]
pub(crate) fn keeping_exceptions<T>(leave: impl FnOnce() -> T) -> T {
    match cxa_get_globals() {
        Some(here) if any_in_flight(here) => keeping_those(here, leave),
        _ => leave(),
    }
}

#[inline(always)]
fn any_in_flight(here: GetGlobals) -> bool {
    // SAFETY: the C++ runtime's state of this thread, which no other thread touches.
    let now = in_one_thread_before_leaving(|| unsafe { here().read() });
    !now.caught.is_null() || now.uncaught > 0
}

#[cold]
#[inline(never)]
fn keeping_those<T>(here: GetGlobals, leave: impl FnOnce() -> T) -> T {
    // SAFETY: as above.
    let kept = in_one_thread_before_leaving(|| unsafe { here().replace(CxaEhGlobals::NONE) });
    let left = leave();
    // This may be another thread, with another address.
    // SAFETY: as above; the code that runs fibers is in no exception handler of its own, so this overwrites nothing.
    in_one_thread(|| unsafe { here().write(kept) });
    left
}
