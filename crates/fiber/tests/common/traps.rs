//! The processor's trap flag.

use std::arch::asm;

/// In `rflags`.
pub(crate) const TRAP_FLAG: u64 = 1 << 8;

/// Has the processor stop this thread after every instruction from here on (`SIGTRAP`), or no longer.
#[inline(always)]
pub(crate) fn trap(on: bool) {
    // SAFETY: changes one flag, which the handler of the trap expects.
    unsafe {
        asm!("pushfq", "and qword ptr [rsp], {all_others}", "or qword ptr [rsp], {on}", "popfq",
            all_others = const !(TRAP_FLAG as i32), on = in(reg) if on { TRAP_FLAG } else { 0 });
    }
}
