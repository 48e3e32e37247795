//! The switch between a fiber's stack and the stack of the code that runs it.
//!
//! Unlike a library's, this switch jumps in both directions. A switch by a return is mispredicted: the processor predicts the return address
//! of the frame that the switch leaves. Each later return of either side is mispredicted too. The processor predicts a jump from its history.
//! The next fiber was suspended in a probe like the last one, so the return addresses that the last one left fit it.
//!
//! A fiber without a job keeps only its control. Each job begins at the top of the stack.
#![expect(unsafe_code, reason = "switches stacks")]

use std::arch::{asm, global_asm};
use std::mem::offset_of;
use std::panic::resume_unwind;
use std::ptr::NonNull;

use crate::control::FiberControl;

/// Prepares the stack of a fiber without a job. Returns the stack pointer to [enter](enter) it with.
///
/// # Safety
/// The fiber has no job, and nothing uses the stack below its base.
#[inline(always)]
pub(crate) unsafe fn rewind(control: &FiberControl) -> usize {
    let entry = (control.stack_base - size_of::<usize>()) as *mut usize;
    // SAFETY: the highest word of the stack.
    unsafe { entry.write(__headway_fiber_begin as *const () as usize) };
    entry as usize
}

/// Runs the fiber from `stack_pointer` until it finishes its job or [leaves](leave). A suspended fiber learns whether it must `unwind`.
/// Returns the fiber's new stack pointer, or how it [rests](crate::control::rest), and the control. The fiber leaves both in registers: a load
/// from this side's stack would wait until the stack pointer is loaded.
///
/// # Safety
/// The fiber was [rewound](rewind), or it left with this `stack_pointer`; and it runs nowhere. A fiber that left in another thread must be
/// allowed to change threads.
#[inline(always)]
pub(crate) unsafe fn enter(
    control: NonNull<FiberControl>,
    stack_pointer: usize,
    unwind: bool,
) -> (usize, NonNull<FiberControl>) {
    let control_after: *mut FiberControl;
    let left_at: usize;
    // SAFETY: to the compiler this is a function call that changes every register which asm may name. `leave` or `rewind` wrote the words
    // at the fiber's stack pointer.
    unsafe {
        asm!(
            "push rbx",
            "lea rcx, [rip + 2f]",
            // The frame pointer lies below the return address, so a walk along frame pointers arrives here.
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

/// Jumps back to the code that entered this fiber. Returns when the fiber is entered again; true if it must unwind.
///
/// # Safety
/// The caller runs on the stack of this control's fiber.
#[inline(always)]
pub(crate) unsafe fn leave(control: *const FiberControl) -> bool {
    // SAFETY: as in `enter`, which stored `resumer`.
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

/// Suspends the fiber `from`, and runs `to` from `stack_pointer`, without a way back through the code that entered `from`. Returns when `from`
/// is entered again. Another thread may do that as soon as its stack pointer is stored, which is this code's last access to it.
///
/// # Safety
/// The caller runs on the stack of `from`. For `to`, as in [`enter`](enter); its `resumer` is set.
#[inline(always)]
pub(crate) unsafe fn switch(
    from: *const FiberControl,
    to: NonNull<FiberControl>,
    stack_pointer: usize,
) {
    // SAFETY: as in `enter`. A fiber that `leave` suspended finds in `eax` that it does not unwind.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rcx, [rip + 2f]",
            "push rcx",
            "mov [rdx + {left_at}], rsp",
            "mov rsp, rsi",
            "pop rcx",
            "jmp rcx",
            "2:",
            "pop rbx",
            "pop rbp",
            left_at = const offset_of!(FiberControl, stack_pointer),
            inlateout("rdi") to.as_ptr() => _,
            inlateout("rax") 0_usize => _,
            inlateout("rsi") stack_pointer => _,
            inlateout("rdx") from => _,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
}

/// Ends the fiber `from`, and runs `to` as [`switch`](switch) does. The word of [rest](crate::control::rest) is stored once this code has left the
/// stack, so that another fiber may have it.
///
/// # Safety
/// As in [`switch`](switch).
#[inline(always)]
pub(crate) unsafe fn finish(
    from: *const FiberControl,
    to: NonNull<FiberControl>,
    stack_pointer: usize,
) -> ! {
    // SAFETY: as in `switch`.
    unsafe {
        asm!(
            "mov rsp, rsi",
            "mov qword ptr [rdx + {left_at}], {idle}",
            "pop rcx",
            "jmp rcx",
            left_at = const offset_of!(FiberControl, stack_pointer),
            idle = const crate::control::rest::IDLE,
            in("rdi") to.as_ptr(),
            in("rax") 0_usize,
            in("rsi") stack_pointer,
            in("rdx") from,
            options(noreturn),
        );
    }
}

/// The payload that unwinds a fiber from where it left.
pub(crate) struct Unwinding;

/// Unwinds the fiber to its end.
///
/// Never inlined: a sanitizer's build keeps the unwind tables of the assembly below only beside a Rust function.
#[cold]
#[inline(never)]
pub(crate) fn unwind() -> ! {
    resume_unwind(Box::new(Unwinding));
}

unsafe extern "C" {
    /// The lowest frame of every fiber: entered by a jump with the control in `rdi` and `rsp` at the base, it runs the job and goes back.
    fn __headway_fiber_begin();
}

// Unwinders find the frame of `enter` by the stack pointer that it stored in `resumer`, whose address `rbp` holds: the CFA is that plus 24
// (`DW_CFA_def_cfa_expression`: `DW_OP_breg6` 0, `DW_OP_deref`, `DW_OP_plus_uconst` 24). It is marked as a signal's frame: debuggers
// assume for other frames that the stack does not change.
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
    // The returned `Ended` is the word that the fiber rests with.
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
