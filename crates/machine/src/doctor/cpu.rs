//! The CPU's own description, from CPUID, and what the kernel lets programs use of it.
#![expect(unsafe_code, reason = "asks what the kernel told the process")]

use std::sync::OnceLock;

/// Whether the time-stamp counter runs at a constant rate in every power state (CPUID 8000_0007h, EDX bit 8).
pub fn has_invariant_tsc() -> bool {
    #[cfg(target_arch = "x86_64")]
    return leaf(0x8000_0007, 0).is_some_and(|leaf| leaf.edx & (1 << 8) != 0);
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Where the kernel lists the counters that it can keep its own time by.
const CLOCK_SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Whether time may be told by the time-stamp counter: the CPU calls it [invariant](has_invariant_tsc), or the kernel, which compares it with its other clocks
/// and between cores, finds it fit to keep its own time by (`tsc` among the available clock sources). So it is in many virtual machines whose host hides the
/// CPU's flag, lest they count on it when they move to another host. One that does move goes on with the rate that it had, unless its host scales the counter.
pub fn has_steady_tsc() -> bool {
    static IS_STEADY: OnceLock<bool> = OnceLock::new();
    *IS_STEADY.get_or_init(|| has_invariant_tsc() || is_listed(CLOCK_SOURCES))
}

/// Whether the file lists the time-stamp counter, which only x86-64 has, as a clock source. One that the kernel found unstable is not listed.
fn is_listed(path: &str) -> bool {
    let sources = std::fs::read_to_string(path).unwrap_or_default();
    sources.split_ascii_whitespace().any(|name| name == "tsc")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_told_by_the_kernels_list() {
        let list = tempfile::NamedTempFile::new().unwrap();
        let path = list.path().to_str().unwrap();
        for (sources, is_there) in [
            ("tsc kvm-clock hpet acpi_pm \n", true),
            ("kvm-clock tsc \n", true),
            ("kvm-clock acpi_pm \n", false),
            ("tsc-early hpet \n", false),
            ("", false),
        ] {
            std::fs::write(list.path(), sources).unwrap();
            assert_eq!(is_listed(path), is_there, "{sources}");
        }
        assert!(!is_listed("/proc/none"));
    }

    #[test]
    fn a_counter_that_the_cpu_calls_invariant_is_steady() {
        assert!(has_steady_tsc() || !has_invariant_tsc());
        assert_eq!(
            has_steady_tsc(),
            has_invariant_tsc() || is_listed(CLOCK_SOURCES)
        );
    }
}
