//! The switch between a fiber's stack and the stack of the code that runs it.
//!
//! Unlike a library's, this switch jumps in both directions. A switch by a return is mispredicted: the processor predicts the return address
//! of the frame that the switch leaves. Each later return of either side is mispredicted too. The processor predicts a jump from its history.
//! The next fiber was suspended in a probe like the last one, so the return addresses that the last one left fit it.
//!
//! Whoever stops the thread at any instruction of the switch, such as a profiler, finds its callers: the registers of the side that is left lie in memory
//! ([`Saved`]) before any of them changes, and unwind tables name that place from there to the jump.
//!
//! A signal may suspend a fiber at any instruction of its own, but not once it holds where to jump back to: the code that entered it is another when it goes on.
//! So it is marked as leaving from there on, until it is entered again.
//!
//! A fiber without a job keeps only its control. Each job begins at the top of the stack.
#![expect(unsafe_code, reason = "switches stacks")]

use std::arch::{asm, global_asm};
use std::mem::{MaybeUninit, offset_of};
use std::panic::resume_unwind;
use std::ptr::NonNull;

use crate::control::FiberControl;
use crate::fs;
use crate::saved::Saved;

/// Saves the registers that the compiler keeps over the block at `r8`, and where to go on: at `2:`.
macro_rules! save {
    () => {
        "lea rcx, [rip + 2f]
        mov [r8 + {rip}], rcx
        mov [r8 + {rbp}], rbp
        mov [r8 + {rbx}], rbx
        mov [r8 + {rsp}], rsp"
    };
}

/// From here on the unwind tables describe a callee of the code that entered the fiber whose control is in a register (`DW_OP_breg5` is `rdi`,
/// `DW_OP_breg6` with `rbp` at the word itself): its registers are [`Saved`] where the control's `resumer` points, or `home`. The stack pointer is read there
/// (`DW_CFA_def_cfa_expression`), the others lie there (`DW_CFA_expression`). The word's offset is a signed LEB128 of two bytes: one ends at 63.
macro_rules! unwinds_to {
    (rdi resumer) => {
        unwinds_to!("0x75, ({resumer} & 0x7f) | 0x80, {resumer} >> 7")
    };
    (rdi home) => {
        unwinds_to!("0x75, ({home} & 0x7f) | 0x80, {home} >> 7")
    };
    (rbp) => {
        unwinds_to!("0x76, 0x80, 0")
    };
    ($word:literal) => {
        concat!(
            ".cfi_escape 0x0f, 7, ",
            $word,
            ", 0x06, 0x23, {rsp}, 0x06\n",
            ".cfi_escape 0x10, 16, 6, ",
            $word,
            ", 0x06, 0x23, {rip}\n",
            ".cfi_escape 0x10, 6, 6, ",
            $word,
            ", 0x06, 0x23, {rbp}\n",
            ".cfi_escape 0x10, 3, 6, ",
            $word,
            ", 0x06, 0x23, {rbx}"
        )
    };
}

/// Loads what was saved at `$at`, and `rcx` with where to go on.
macro_rules! load {
    ($at:literal) => {
        concat!(
            "mov rcx, [",
            $at,
            " + {rip}]\n",
            "mov rbx, [",
            $at,
            " + {rbx}]\n",
            "mov rbp, [",
            $at,
            " + {rbp}]\n",
            "mov rsp, [",
            $at,
            " + {rsp}]"
        )
    };
}

/// Where a side goes on. Unwinders look up the instruction before the one at which a caller goes on, so there is one.
macro_rules! goes_on {
    () => {
        "nop
        2:"
    };
}

/// As an `asm!` block whose operands are the layout of [`Saved`] and of the control.
macro_rules! switch_asm {
    ($($line:expr),* ; $($operands:tt)*) => {
        asm!(
            $($line,)*
            rip = const offset_of!(Saved, rip),
            rbp = const offset_of!(Saved, rbp),
            rbx = const offset_of!(Saved, rbx),
            rsp = const offset_of!(Saved, rsp),
            resumer = const offset_of!(FiberControl, resumer),
            $($operands)*
        )
    };
}

/// Prepares the stack of a fiber without a job. Returns where to [enter](enter) it.
///
/// # Safety
/// The fiber has no job, and nothing uses the stack below its base.
#[inline(always)]
pub(crate) unsafe fn rewind(control: &FiberControl) -> usize {
    let first = (control.stack_base - size_of::<Saved>()) as *mut Saved;
    let begin = if control.owns_thread_state {
        __headway_lent_fiber_begin
    } else {
        __headway_fiber_begin
    };
    // SAFETY: the highest words of the stack.
    unsafe {
        first.write(Saved {
            rbp: 0,
            rip: begin as *const () as usize,
            rbx: 0,
            rsp: control.stack_base,
        });
    }
    first as usize
}

/// Runs the fiber from where it `left_at` until it finishes its job or [leaves](leave). A suspended fiber learns whether it must `unwind`.
/// Returns where the fiber left, or how it [rests](crate::control::rest), and the control. The fiber leaves both in registers: a load
/// from this side's stack would wait until the stack pointer is loaded.
///
/// # Safety
/// The fiber was [rewound](rewind), or it `left_at` there; and it runs nowhere. A fiber that left in another thread must be
/// allowed to change threads.
#[inline(always)]
pub(crate) unsafe fn enter(
    control: NonNull<FiberControl>,
    left_at: usize,
    unwind: bool,
) -> (usize, NonNull<FiberControl>) {
    let control_after: *mut FiberControl;
    let left_at_after: usize;
    let mut saved = MaybeUninit::<Saved>::uninit();
    // SAFETY: to the compiler this is a function call that changes every register which asm may name. `leave` or `rewind` wrote the words
    // where the fiber left.
    unsafe {
        switch_asm!(
            save!(),
            "mov [rdi + {resumer}], r8",
            "jmp {go}",
            goes_on!();
            go = sym __headway_fiber_go,
            inlateout("rdi") control.as_ptr() => control_after,
            inlateout("rax") usize::from(unwind) => _,
            inlateout("rsi") left_at => left_at_after,
            inlateout("r8") saved.as_mut_ptr() => _,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
        (left_at_after, NonNull::new_unchecked(control_after))
    }
}

/// Jumps back to the code that entered this fiber. Returns when the fiber is entered again; true if it must unwind.
///
/// # Safety
/// The caller runs on the stack of this control's fiber.
#[inline(always)]
pub(crate) unsafe fn leave(control: *const FiberControl) -> bool {
    let mut saved = MaybeUninit::<Saved>::uninit();
    // SAFETY: as in `enter`, which stored `resumer`.
    unsafe {
        switch_asm!(
            save!(),
            "mov rsi, r8",
            "mov byte ptr [rdi + {is_leaving}], 1",
            "mov r9, [rdi + {resumer}]",
            ".cfi_remember_state",
            unwinds_to!(rdi resumer),
            load!("r9"),
            "jmp rcx",
            ".cfi_restore_state",
            goes_on!(),
            "test eax, eax",
            "jnz {unwind}";
            unwind = label { return true },
            is_leaving = const offset_of!(FiberControl, is_leaving),
            inlateout("rdi") control => _,
            inlateout("r8") saved.as_mut_ptr() => _,
            lateout("rax") _,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
    false
}

/// Suspends the fiber `from`, and runs `to` from where it `left_at`, without a way back through the code that entered `from`. Returns when `from`
/// is entered again. Another thread may do that as soon as it is stored where `from` left, which this code does from the stack of `to`.
///
/// # Safety
/// The caller runs on the stack of `from`. For `to`, as in [`enter`](enter); its `resumer` is set.
#[inline(always)]
pub(crate) unsafe fn switch(from: *const FiberControl, to: NonNull<FiberControl>, left_at: usize) {
    let mut saved = MaybeUninit::<Saved>::uninit();
    // SAFETY: as in `enter`. A fiber that `leave` suspended finds in `eax` that it does not unwind.
    unsafe {
        switch_asm!(
            save!(),
            ".cfi_remember_state",
            unwinds_to!(rdi resumer),
            "mov byte ptr [rdi + {is_leaving}], 0",
            load!("rsi"),
            "mov [rdx + {left_at}], r8",
            "jmp rcx",
            ".cfi_restore_state",
            goes_on!();
            left_at = const offset_of!(FiberControl, left_at),
            is_leaving = const offset_of!(FiberControl, is_leaving),
            inlateout("rdi") to.as_ptr() => _,
            inlateout("rax") 0_usize => _,
            inlateout("rsi") left_at => _,
            inlateout("rdx") from => _,
            inlateout("r8") saved.as_mut_ptr() => _,
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
    left_at: usize,
) -> ! {
    // SAFETY: as in `switch`.
    unsafe {
        switch_asm!(
            ".cfi_remember_state",
            unwinds_to!(rdi resumer),
            "mov byte ptr [rdi + {is_leaving}], 0",
            load!("rsi"),
            "mov qword ptr [rdx + {left_at}], {idle}",
            "jmp rcx",
            ".cfi_restore_state";
            left_at = const offset_of!(FiberControl, left_at),
            is_leaving = const offset_of!(FiberControl, is_leaving),
            idle = const crate::control::rest::IDLE,
            in("rdi") to.as_ptr(),
            in("rax") 0_usize,
            in("rsi") left_at,
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
    /// Goes on with the fiber whose control is in `rdi`, from where it left, in `rsi`. A function of its own, so that a walk that begins here shows the code that entered the fiber once.
    fn __headway_fiber_go();

    /// The lowest frame of every fiber: entered by a jump with the control in `rdi` and `rsp` at the base, it runs the job and goes back.
    fn __headway_fiber_begin();

    /// The same for a fiber that owns a thread's state.
    fn __headway_lent_fiber_begin();
}

// Both are marked as a signal's frames: debuggers assume for other frames that the stack does not change.
global_asm!(
    ".pushsection .text.__headway_fiber_go, \"ax\", @progbits",
    ".globl __headway_fiber_go",
    ".hidden __headway_fiber_go",
    ".type __headway_fiber_go, @function",
    ".p2align 4",
    "__headway_fiber_go:",
    ".cfi_startproc",
    ".cfi_signal_frame",
    unwinds_to!(rdi resumer),
    "mov byte ptr [rdi + {is_leaving}], 0",
    load!("rsi"),
    "jmp rcx",
    ".cfi_endproc",
    ".size __headway_fiber_go, . - __headway_fiber_go",
    ".popsection",
    ".pushsection .text.__headway_fiber_begin, \"ax\", @progbits",
    ".globl __headway_fiber_begin",
    ".hidden __headway_fiber_begin",
    ".type __headway_fiber_begin, @function",
    "__headway_fiber_begin:",
    ".cfi_startproc",
    ".cfi_signal_frame",
    unwinds_to!(rdi resumer),
    "lea rbp, [rdi + {resumer}]",
    unwinds_to!(rbp),
    "call [rdi + {run}]",
    // The returned `Ended` is the word that the fiber rests with.
    "mov rsi, rax",
    "lea rdi, [rbp - {resumer}]",
    "mov byte ptr [rdi + {is_leaving}], 1",
    unwinds_to!(rdi resumer),
    "mov r9, [rbp]",
    load!("r9"),
    "jmp rcx",
    ".cfi_endproc",
    ".size __headway_fiber_begin, . - __headway_fiber_begin",
    ".popsection",
    rip = const offset_of!(Saved, rip),
    rbp = const offset_of!(Saved, rbp),
    rbx = const offset_of!(Saved, rbx),
    rsp = const offset_of!(Saved, rsp),
    resumer = const offset_of!(FiberControl, resumer),
    is_leaving = const offset_of!(FiberControl, is_leaving),
    run = const offset_of!(FiberControl, run),
);

// Its caller is its thread, which is parked: the code that entered it may be another by the time a walk that was interrupted goes on. It goes back with the
// variables of the code that entered it.
global_asm!(
    ".pushsection .text.__headway_lent_fiber_begin, \"ax\", @progbits",
    ".globl __headway_lent_fiber_begin",
    ".hidden __headway_lent_fiber_begin",
    ".type __headway_lent_fiber_begin, @function",
    "__headway_lent_fiber_begin:",
    ".cfi_startproc",
    ".cfi_signal_frame",
    unwinds_to!(rdi home),
    "lea rbp, [rdi + {home}]",
    unwinds_to!(rbp),
    "call [rdi + {run}]",
    "mov rsi, rax",
    "mov byte ptr [rbp - {home} + {is_leaving}], 1",
    "mov rdx, [rbp - {home} + {resumer_base}]",
    "cmp byte ptr [rip + {way}], {by_instruction}",
    "jne 3f",
    "wrfsbase rdx",
    "2:",
    ".cfi_remember_state",
    "lea rdi, [rbp - {home}]",
    unwinds_to!(rdi resumer),
    "mov r9, [rdi + {resumer}]",
    load!("r9"),
    "jmp rcx",
    ".cfi_restore_state",
    "3:",
    "mov r10, rsi",
    "mov rsi, rdx",
    "mov edi, {set_fs}",
    "mov eax, {arch_prctl}",
    "syscall",
    "mov rsi, r10",
    "jmp 2b",
    ".cfi_endproc",
    ".size __headway_lent_fiber_begin, . - __headway_lent_fiber_begin",
    ".popsection",
    rip = const offset_of!(Saved, rip),
    rbp = const offset_of!(Saved, rbp),
    rbx = const offset_of!(Saved, rbx),
    rsp = const offset_of!(Saved, rsp),
    resumer = const offset_of!(FiberControl, resumer),
    home = const offset_of!(FiberControl, home),
    is_leaving = const offset_of!(FiberControl, is_leaving),
    run = const offset_of!(FiberControl, run),
    resumer_base = const offset_of!(FiberControl, resumer_base),
    way = sym fs::WAY,
    by_instruction = const fs::BY_INSTRUCTION,
    set_fs = const fs::ARCH_SET_FS,
    arch_prctl = const libc::SYS_arch_prctl,
);
