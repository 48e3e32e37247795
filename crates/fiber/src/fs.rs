//! The base of the calling thread's thread-local variables: the `fs` register's, which a program may exchange without the kernel since Linux 5.9.
#![expect(unsafe_code, reason = "exchanges what the C library calls a thread")]

use std::arch::asm;
use std::sync::atomic::{AtomicU8, Ordering};

use headway_machine::doctor::has_fsgsbase;

/// How this process sets the register: not asked yet.
const UNKNOWN: u8 = 0;
pub(crate) const BY_INSTRUCTION: u8 = 1;
const BY_SYSTEM_CALL: u8 = 2;

pub(crate) static WAY: AtomicU8 = AtomicU8::new(UNKNOWN);

/// `ARCH_SET_FS` of `arch_prctl(2)`.
pub(crate) const ARCH_SET_FS: usize = 0x1002;

/// Finds out how the register is exchanged. Before any exchange.
pub(crate) fn prepare() {
    if WAY.load(Ordering::Relaxed) == UNKNOWN {
        find_out();
    }
}

#[cold]
fn find_out() {
    let way = if has_fsgsbase() {
        BY_INSTRUCTION
    } else {
        BY_SYSTEM_CALL
    };
    WAY.store(way, Ordering::Relaxed);
}

/// The base now. The word at the base is the base itself (System V ABI for x86-64, thread-local storage, variant II).
#[inline(always)]
pub(crate) fn base() -> usize {
    let base: usize;
    // SAFETY: reads that word.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) base, options(nostack, preserves_flags)) };
    base
}

/// Makes `base` the calling thread's.
///
/// # Safety
/// It is that of a thread of this process which does not run, or the calling thread's own. Up to the switch of stacks that follows, or that came before, the
/// caller uses no thread-local variable.
#[inline(always)]
pub(crate) unsafe fn set_base(base: usize) {
    if WAY.load(Ordering::Relaxed) == BY_INSTRUCTION {
        // SAFETY: the kernel allows the instruction, and the caller the value.
        unsafe { asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
    } else {
        // SAFETY: as above.
        unsafe { set_by_system_call(base) };
    }
}

/// # Safety
/// As [`set_base`].
#[cold]
#[inline(never)]
unsafe fn set_by_system_call(base: usize) {
    // Not by the C library, which would store the error to a thread-local variable. It cannot fail: the address is a thread's.
    // SAFETY: the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") libc::SYS_arch_prctl => _, in("rdi") ARCH_SET_FS, in("rsi") base,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
}
