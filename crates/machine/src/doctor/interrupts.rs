//! Interrupts from one core to another, without a signal: sent by a program itself, or for it by a kernel module.
//!
//! Headway sends neither yet. Where a machine could, the finding says so.

use std::fs;

use super::cpu::has_user_interrupts;
use super::finding::{Finding, Severity};

/// Kernel modules that deliver an interrupt to a function of a program on another core, by the system that comes with them.
const MODULES: [(&str, &str); 3] = [
    ("kmod_ipi", "SYNERGY"),
    ("kmod_uintr", "SYNERGY"),
    ("dune", "Shinjuku"),
];

pub(super) fn from_user_space() -> Finding {
    const NAME: &str = "user interrupts";
    if has_user_interrupts() {
        return Finding::good(NAME, "the CPU has UINTR");
    }
    Finding::bad(
        NAME,
        Severity::Absent,
        "the CPU has no UINTR; preemption uses probes or signals",
    )
}

pub(super) fn by_kernel_module() -> Finding {
    let disabled = fs::read_to_string("/proc/sys/kernel/modules_disabled");
    KernelModules {
        loaded: fs::read_to_string("/proc/modules").ok(),
        disabled: disabled.is_ok_and(|value| value.trim() == "1"),
    }
    .finding()
}

/// What the kernel says of its modules.
struct KernelModules {
    /// The contents of `/proc/modules`; `None` for a kernel that cannot load any.
    loaded: Option<String>,
    /// Whether loading more is forbidden until the next boot.
    disabled: bool,
}

impl KernelModules {
    fn finding(&self) -> Finding {
        const NAME: &str = "kernel interrupts";
        let absent = |detail: &str| Finding::bad(NAME, Severity::Absent, detail);
        let Some(loaded) = &self.loaded else {
            return absent("this kernel loads no modules; preemption uses probes or signals");
        };
        let names = loaded
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        for name in names {
            if let Some((module, system)) = MODULES.iter().find(|(module, _)| *module == name) {
                let detail = format!(
                    "{module} of {system} is loaded, but Headway does not send its interrupts"
                );
                return absent(&detail);
            }
        }
        if self.disabled {
            return absent("no module that sends them is loaded, and loading is disabled");
        }
        absent("no module that sends them is loaded; preemption uses probes or signals")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(loaded: Option<&str>, disabled: bool) -> String {
        let modules = KernelModules {
            loaded: loaded.map(str::to_owned),
            disabled,
        };
        let finding = modules.finding();
        assert_eq!(finding.level, Severity::Absent);
        finding.detail
    }

    #[test]
    fn a_module_that_is_loaded_is_named() {
        let modules = "nls_ascii 16384 1 - Live 0x0\nkmod_ipi 16384 0 - Live 0x0 (OE)\n";
        assert!(detail(Some(modules), false).contains("kmod_ipi of SYNERGY is loaded"));
        // A name within another, or in another column, is no match.
        let modules = "not_dune 16384 1 dune, Live 0x0\n";
        assert!(detail(Some(modules), false).contains("no module"));
    }

    #[test]
    fn why_none_can_be_loaded_is_said() {
        assert!(detail(None, false).contains("loads no modules"));
        assert!(detail(Some(""), true).contains("loading is disabled"));
    }
}
