//! Programs of clang's SafeStack (`-fsanitize=safe-stack`).
//!
//! They keep what others could overwrite on a second stack, whose top is a thread-local variable. A request with a thread's state has one of its own. What takes turns on one thread without
//! that would share one, and is refused.
#![expect(unsafe_code, reason = "a symbol that may not be there")]

use std::arch::asm;

use crate::status::CallFailure;

/// Refuses what runs on plain fibers, in a program that has second stacks.
pub(crate) fn refuse_plain_fibers(what: &str) -> Result<(), CallFailure> {
    if !is_linked() {
        return Ok(());
    }
    Err(CallFailure::argument(format!(
        "the program is compiled with -fsanitize=safe-stack, and {what} would share one unsafe stack: leave one of the two out"
    )))
}

/// Whether SafeStack's runtime is part of the program.
fn is_linked() -> bool {
    let function: *const ();
    // SAFETY: loads the address that the linker found for a weak symbol: null for none.
    unsafe {
        asm!(".weak __get_unsafe_stack_ptr",
            "mov {}, qword ptr [rip + __get_unsafe_stack_ptr@GOTPCREL]", out(reg) function,
            options(nostack, preserves_flags, readonly));
    }
    !function.is_null()
}
