//! The counters a clock can be built on.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "reading the time-stamp counter is an intrinsic")
)]

use nix::time::{ClockId, clock_gettime};

/// Where ticks come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counter {
    /// The time-stamp counter, at a rate to be calibrated.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// `CLOCK_MONOTONIC_RAW`: one tick is one nanosecond.
    Kernel,
    /// A function: one tick is one nanosecond.
    Given(fn() -> u64),
}

impl Counter {
    /// The cheapest counter that can be trusted on this CPU.
    pub(super) fn best() -> Counter {
        #[cfg(target_arch = "x86_64")]
        if crate::doctor::has_steady_tsc() {
            return Counter::Tsc;
        }
        Counter::Kernel
    }

    #[inline]
    pub(super) fn ticks(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: RDTSC has no preconditions; every x86-64 CPU that Linux runs on has it.
            Counter::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            Counter::Kernel => kernel_ns(),
            Counter::Given(read_ns) => read_ns(),
        }
    }

    /// The function that reads it; `None` where an instruction does.
    pub(super) fn reader(self) -> Option<fn() -> u64> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => None,
            Counter::Kernel => Some(kernel_ns),
            Counter::Given(read_ns) => Some(read_ns),
        }
    }

    /// A reading that the CPU neither hoists above earlier instructions nor sinks below later ones.
    pub(super) fn ticks_ordered(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => {
                // SAFETY: LFENCE is part of SSE2, which x86-64 includes; RDTSC as above.
                unsafe {
                    core::arch::x86_64::_mm_lfence();
                    let ticks = core::arch::x86_64::_rdtsc();
                    core::arch::x86_64::_mm_lfence();
                    ticks
                }
            }
            Counter::Kernel => kernel_ns(),
            Counter::Given(read_ns) => read_ns(),
        }
    }
}

fn kernel_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC_RAW)
        .expect("CLOCK_MONOTONIC_RAW exists since Linux 2.6.28");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
