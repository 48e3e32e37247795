//! State of a thread beyond its registers that a suspended fiber must find again: control words and C++ exceptions.
#![expect(
    unsafe_code,
    reason = "control registers, and C++'s thread-local state"
)]

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{mem, ptr};

use crate::no_preempt::{in_one_thread, in_one_thread_before_leaving};

/// Rounding, masked exceptions and flushing of denormals in `MXCSR` and the x87 control word: registers that a call preserves.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ControlWords {
    mxcsr: u32,
    x87: u16,
}

/// The control words of this process's threads, as the last attached thread had them.
static HOME: AtomicU64 = AtomicU64::new(ControlWords::INITIAL.packed());

/// The status bits of `MXCSR`, which a call need not preserve.
const MXCSR_STATUS: u32 = 0x3f;

impl ControlWords {
    /// As a process starts with (System V ABI for x86-64, section 3.4.1).
    const INITIAL: ControlWords = ControlWords {
        mxcsr: 0x1f80,
        x87: 0x037f,
    };

    #[inline]
    fn now() -> ControlWords {
        let (mut mxcsr, mut x87) = (0_u32, 0_u16);
        // SAFETY: stores two registers to two variables.
        unsafe {
            asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut mxcsr, in(reg) &raw mut x87,
                options(nostack, preserves_flags));
        }
        ControlWords {
            mxcsr: mxcsr & !MXCSR_STATUS,
            x87,
        }
    }

    fn home() -> ControlWords {
        let packed = HOME.load(Ordering::Relaxed);
        ControlWords {
            mxcsr: packed as u32,
            x87: (packed >> 32) as u16,
        }
    }

    const fn packed(self) -> u64 {
        self.mxcsr as u64 | (self.x87 as u64) << 32
    }

    #[cold]
    fn load(self) {
        // SAFETY: they were read from these registers, so no reserved bit is set.
        unsafe {
            asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const self.mxcsr, in(reg) &raw const self.x87,
                options(nostack, preserves_flags, readonly));
        }
    }
}

/// Takes the control words of an attaching thread as those that all fibers start with.
pub(crate) fn adopt_control_words() {
    HOME.store(ControlWords::now().packed(), Ordering::Relaxed);
}

/// Calls `leave` with the threads' control words, and restores the caller's own afterwards.
#[inline]
pub(crate) fn keeping_control_words(leave: impl FnOnce()) {
    let (words, home) = (ControlWords::now(), ControlWords::home());
    let changed = words != home;
    if changed {
        home.load();
    }
    leave();
    if changed {
        words.load();
    }
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
