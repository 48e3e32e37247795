//! The CPU's own description, from CPUID, and what the kernel lets programs use of it.
#![expect(unsafe_code, reason = "asks what the kernel told the process")]

/// Whether the time-stamp counter runs at a constant rate in every power state (CPUID 8000_0007h, EDX bit 8).
pub fn has_invariant_tsc() -> bool {
    #[cfg(target_arch = "x86_64")]
    return leaf(0x8000_0007, 0).is_some_and(|leaf| leaf.edx & (1 << 8) != 0);
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Of `AT_HWCAP2`: the kernel lets programs set the base of thread-local variables (`Documentation/arch/x86/x86_64/fsgs.rst`).
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// Whether programs may exchange the base of their thread-local variables by an instruction: the kernel says so since Linux 5.9.
#[must_use]
pub fn has_fsgsbase() -> bool {
    // SAFETY: always valid to ask.
    let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    cfg!(target_arch = "x86_64") && capabilities & HWCAP2_FSGSBASE != 0
}

/// Whether the CPU delivers user interrupts (CPUID 7, EDX bit 5). The kernel must enable them too.
pub fn has_user_interrupts() -> bool {
    #[cfg(target_arch = "x86_64")]
    return leaf(7, 0).is_some_and(|leaf| leaf.edx & (1 << 5) != 0);
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// A CPUID leaf, if the CPU has it.
#[cfg(target_arch = "x86_64")]
fn leaf(number: u32, sub: u32) -> Option<core::arch::x86_64::CpuidResult> {
    use core::arch::x86_64::__cpuid_count;
    let highest = __cpuid_count(number & 0x8000_0000, 0).eax;
    (highest >= number).then(|| __cpuid_count(number, sub))
}
