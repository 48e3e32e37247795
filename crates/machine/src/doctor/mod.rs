//! The features that this machine supports, and remedies for those that it lacks.

mod cpu;
mod finding;
mod interrupts;
mod socket;

use std::fs;
use std::thread::available_parallelism;

pub use cpu::{has_fsgsbase, has_invariant_tsc, has_steady_tsc, has_user_interrupts};
pub use finding::{Finding, Severity};

use crate::description::{kernel_release, kernel_version};
use crate::thread;
use crate::topology::Topology;

/// Looks at everything, in milliseconds and without changing anything outside this process.
pub fn examine() -> Vec<Finding> {
    vec![
        kernel(&kernel_release()),
        quota(),
        invariant_tsc(),
        thread_base(),
        interrupts::from_user_space(),
        interrupts::by_kernel_module(),
        real_time(),
        short_slice(),
        rt_throttling(),
        reuseport_steering(),
        af_xdp(),
        halt_polling(),
    ]
}

fn kernel(release: &str) -> Finding {
    const NAME: &str = "kernel";
    match kernel_version(release) {
        Some(version) if version >= (6, 12) => Finding::good(NAME, format!("Linux {release}")),
        Some(_) => Finding::bad(NAME, Severity::Degraded, format!("Linux {release}")).remedy(
            "from 6.12 on, unprivileged load generators wake on time thanks to short slices",
        ),
        None => Finding::bad(
            NAME,
            Severity::Degraded,
            format!("{release:?} is no known version"),
        ),
    }
}

/// The cores that the affinity mask allows, beside those that the cgroup's quota pays for, which workers are counted by.
fn quota() -> Finding {
    let usable = available_parallelism().map_or(1, usize::from);
    let allowed = Topology::read("/sys").map_or(usable, |it| it.cores().len());
    quota_of(allowed, usable)
}

fn quota_of(allowed: usize, usable: usize) -> Finding {
    const NAME: &str = "CPU quota";
    if usable >= allowed {
        return Finding::good(NAME, "the cgroup limits no processor time");
    }
    let plural = if usable == 1 { "" } else { "s" };
    Finding::bad(
        NAME,
        Severity::Degraded,
        format!("the cgroup's quota (cpu.max) is that of {usable} core{plural}, of {allowed} that are allowed: threads beyond it stand still until its next period"),
    )
    .remedy("give whole cores by a set of processors (cpuset, docker --cpuset-cpus) instead of a quota")
}

fn thread_base() -> Finding {
    const NAME: &str = "thread state";
    if has_fsgsbase() {
        return Finding::good(
            NAME,
            "requests that own a thread's state change by an instruction",
        );
    }
    Finding::bad(
        NAME,
        Severity::Degraded,
        "requests that own a thread's state change by a system call, some 300 ns each",
    )
    .remedy("have the kernel let programs set the base of thread-local variables: Linux 5.9 or later, without nofsgsbase")
}

fn invariant_tsc() -> Finding {
    const NAME: &str = "invariant TSC";
    if has_invariant_tsc() {
        return Finding::good(NAME, "clock readings are TSC reads");
    }
    if has_steady_tsc() {
        return Finding::bad(
            NAME,
            Severity::Degraded,
            "clock readings are TSC reads, as the kernel trusts the counter: when this virtual machine moves to another host, figures of that run may be off",
        )
        .remedy("on a virtual machine, have the host expose the invtsc CPU flag");
    }
    Finding::bad(
        NAME,
        Severity::Degraded,
        "clock readings ask the kernel, at more than twice the cost",
    )
    .remedy("on a virtual machine, have the host expose the invtsc CPU flag")
}

fn real_time() -> Finding {
    const NAME: &str = "real-time scheduling";
    if thread::may_use_fifo() {
        return Finding::good(NAME, "SCHED_FIFO is permitted");
    }
    Finding::bad(NAME, Severity::Absent, "SCHED_FIFO is refused")
        .remedy("grant CAP_SYS_NICE, or set `ulimit -r 1`")
}

fn short_slice() -> Finding {
    const NAME: &str = "short slices";
    if thread::may_shorten_slice() {
        return Finding::good(NAME, "the fair scheduler honours a thread's own slice");
    }
    Finding::bad(
        NAME,
        Severity::Absent,
        "the fair scheduler ignores a thread's own slice",
    )
    .remedy("use Linux 6.12 or later")
}

fn rt_throttling() -> Finding {
    const NAME: &str = "real-time throttling";
    const PATH: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    match read_number(PATH) {
        Some(-1) => Finding::good(NAME, "off"),
        Some(runtime_us) => Finding::bad(
            NAME,
            Severity::Degraded,
            format!(
                "a real-time thread that spins is stopped after {runtime_us} µs of each period"
            ),
        )
        .remedy("sysctl kernel.sched_rt_runtime_us=-1, if such threads spin"),
        None => Finding::bad(NAME, Severity::Degraded, format!("{PATH} cannot be read")),
    }
}

fn reuseport_steering() -> Finding {
    const NAME: &str = "steering to sockets";
    match socket::attach_reuseport_filter() {
        Ok(()) => Finding::good(NAME, "SO_ATTACH_REUSEPORT_CBPF is permitted"),
        Err(errno) => Finding::bad(
            NAME,
            Severity::Absent,
            format!("SO_ATTACH_REUSEPORT_CBPF: {errno}; the kernel's flow hash spreads requests"),
        ),
    }
}

fn af_xdp() -> Finding {
    const NAME: &str = "AF_XDP sockets";
    match socket::open_xdp() {
        Ok(()) => Finding::good(NAME, "permitted"),
        Err(nix::errno::Errno::EPERM) => Finding::bad(NAME, Severity::Absent, "not permitted")
            .remedy("grant CAP_NET_RAW and CAP_BPF"),
        Err(errno) => Finding::bad(NAME, Severity::Absent, errno.to_string())
            .remedy("use a kernel with CONFIG_XDP_SOCKETS"),
    }
}

fn halt_polling() -> Finding {
    const NAME: &str = "guest halt polling";
    const PATH: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    match read_number(PATH) {
        None => Finding::good(NAME, "no haltpoll governor; idle states are the CPU's"),
        Some(0) => Finding::bad(
            NAME,
            Severity::Degraded,
            "off: waking an idle core takes 12 to 20 µs",
        )
        .remedy(format!("echo 500000 > {PATH}")),
        Some(poll_ns) => Finding::good(NAME, format!("idle cores poll for {poll_ns} ns")),
    }
}

fn read_number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_examined_once_and_explained() {
        let findings = examine();
        let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), findings.len());
        assert!(findings.iter().all(|finding| !finding.detail.is_empty()));
    }

    #[test]
    fn a_quota_below_the_cores_is_told() {
        assert_eq!(quota_of(8, 8).level, Severity::Good);
        let found = quota_of(8, 2);
        assert_eq!(found.level, Severity::Degraded);
        assert!(found.detail.contains("2 cores, of 8"), "{}", found.detail);
    }

    #[test]
    fn an_old_kernel_is_degraded_with_a_remedy() {
        assert_eq!(kernel("6.12.0").level, Severity::Good);
        assert_eq!(kernel("5.15.0-1").level, Severity::Degraded);
        assert!(kernel("5.15.0-1").remedy.unwrap().contains("6.12"));
        assert_eq!(kernel("?").level, Severity::Degraded);
    }
}
