//! `vfork` in requests.
//!
//! A child of `vfork` runs in its parent's memory and on its parent's stack until it calls `exec` or `_exit`. A probe that suspended it there would go on with the worker's loop, in the
//! child. So in a request it is a `fork`, as POSIX allowed; elsewhere it is what it was.
#![expect(unsafe_code, reason = "a function that returns twice")]

use std::arch::naked_asm;
use std::ffi::c_int;

/// The system call's number (x86-64).
const SYS_VFORK: c_int = 58;

/// Forks. See `vfork(2)`.
///
/// # Safety
/// As for `vfork(2)`, or as for `fork(2)` in a request.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn vfork() -> c_int {
    // The return address is kept in a register: the child's calls overwrite the stack above. A failure is left to `fork`, which says why.
    naked_asm!(
        "mov rax, qword ptr [rip + __headway_self@gottpoff]",
        "cmp qword ptr fs:[rax + {fiber}], 0",
        "jne 2f",
        "pop rdi",
        "mov eax, {vfork}",
        "syscall",
        "push rdi",
        "test eax, eax",
        "js 2f",
        "ret",
        "2:",
        "jmp qword ptr [rip + fork@GOTPCREL]",
        fiber = const headway_fiber::abi::FIBER_OFFSET,
        vfork = const SYS_VFORK,
    )
}
