//! The switch between a fiber's stack and that of whoever runs it.
//!
//! Written here rather than taken from a library for one thing: both ways lead by jumps. A switch that returns takes its target from the
//! processor's stack of return addresses, where it finds that of the frame it leaves: it is mispredicted, and so is each
//! return of either side after it. Jumps are predicted by what came before, and the next fiber, suspended in a probe as the last one was, finds the
//! return addresses that this one left.
//!
//! Nothing of a fiber without a job is kept but its control: it begins anew at the top of its stack each time.
#![expect(unsafe_code, reason = "switches stacks")]

use std::arch::{asm, global_asm};
use std::mem::offset_of;
use std::panic::resume_unwind;
use std::ptr::NonNull;

use crate::control::FiberControl;

/// Where a fiber without a job is to be [entered](enter): makes its stack ready.
///
/// # Safety
/// It has none, and the stack below its base is nobody's.
#[inline(always)]
pub(crate) unsafe fn rewind(control: &FiberControl) -> usize {
    let entry = (control.stack_base - size_of::<usize>()) as *mut usize;
    // SAFETY: the highest word of the stack.
    unsafe { entry.write(__headway_fiber_begin as *const () as usize) };
    entry as usize
}

/// Runs the fiber from there until it finishes its job or [leaves](leave), which is told whether to `unwind`. Returns its stack pointer from then on, or
/// how it [rests](crate::control::rest), and the control: both as the other side left them in registers, since what is fetched from this
/// side's stack waits for the stack pointer to be fetched.
///
/// # Safety
/// It was [rewound](rewind), or has left and `stack_pointer` is its own, and runs nowhere. Where it left in another thread, it may go on in this one.
#[inline(always)]
pub(crate) unsafe fn enter(
    control: NonNull<FiberControl>,
    stack_pointer: usize,
    unwind: bool,
) -> (usize, NonNull<FiberControl>) {
    let control_after: *mut FiberControl;
    let left_at: usize;
    // SAFETY: a function call, as far as the compiler can tell, that keeps no register but those that it may not be told of. What is
    // found at the fiber's stack pointer was put there by `leave` or `rewind`.
    unsafe {
        asm!(
            "push rbx",
            "lea rcx, [rip + 2f]",
            // With the frame pointer below the address to return to, whoever follows frame pointers gets here.
            "push rcx",
            "push rbp",
            "mov [rdi + {resumer}], rsp",
            "mov rsp, rsi",
            "pop rcx",
            "jmp rcx",
            "2:",
            "pop rbx",
            resumer = const offset_of!(FiberControl, resumer),
            inlateout("rdi") control.as_ptr() => control_after,
            inlateout("rax") usize::from(unwind) => _,
            inlateout("rsi") stack_pointer => left_at,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
        (left_at, NonNull::new_unchecked(control_after))
    }
}

/// Goes back to whoever entered this fiber, until it is entered again. Returns whether it is to unwind.
///
/// # Safety
/// Called on the stack of the fiber whose control this is.
#[inline(always)]
pub(crate) unsafe fn leave(control: *const FiberControl) -> bool {
    // SAFETY: as in `enter`; `resumer` is what that stored last.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rcx, [rip + 2f]",
            "push rcx",
            "mov rsi, rsp",
            "mov rsp, [rdi + {resumer}]",
            "pop rbp",
            "pop rcx",
            "jmp rcx",
            "2:",
            "pop rbx",
            "pop rbp",
            "test eax, eax",
            "jnz {unwind}",
            resumer = const offset_of!(FiberControl, resumer),
            unwind = label { return true },
            inlateout("rdi") control => _,
            lateout("rax") _,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
    false
}

/// What unwinds a fiber that is to end where it was left.
pub(crate) struct Unwinding;

/// Ends the fiber that was told to unwind.
///
/// Never inlined: a sanitizer's build keeps what unwinds the assembly below only beside a function of Rust's.
#[cold]
#[inline(never)]
pub(crate) fn unwind() -> ! {
    resume_unwind(Box::new(Unwinding));
}

unsafe extern "C" {
    /// The lowest frame of every fiber: entered by a jump with the control in `rdi` and `rsp` at the base, it runs the job and goes back.
    fn __headway_fiber_begin();
}

// Unwinders find the frame of `enter` by the stack pointer that this stored in `resumer`, whose address `rbp` holds: the CFA is that plus 24
// (`DW_CFA_def_cfa_expression`: `DW_OP_breg6` 0, `DW_OP_deref`, `DW_OP_plus_uconst` 24). As a signal's frame: debuggers take it
// for granted elsewhere that stacks do not jump.
global_asm!(
    ".pushsection .text.__headway_fiber_begin, \"ax\", @progbits",
    ".globl __headway_fiber_begin",
    ".hidden __headway_fiber_begin",
    ".type __headway_fiber_begin, @function",
    "__headway_fiber_begin:",
    ".cfi_startproc",
    ".cfi_signal_frame",
    "lea rbp, [rdi + {resumer}]",
    ".cfi_escape 0x0f, 5, 0x76, 0x00, 0x06, 0x23, 0x18",
    ".cfi_offset rbx, -8",
    ".cfi_offset rip, -16",
    ".cfi_offset rbp, -24",
    "call [rdi + {run}]",
    // How it ended is where the fiber is from now on.
    "mov rsi, rax",
    "lea rdi, [rbp - {resumer}]",
    "mov rsp, [rbp]",
    "pop rbp",
    "pop rcx",
    "jmp rcx",
    ".cfi_endproc",
    ".size __headway_fiber_begin, . - __headway_fiber_begin",
    ".popsection",
    resumer = const offset_of!(FiberControl, resumer),
    run = const offset_of!(FiberControl, run),
);
