//! Naming, pinning and raising the calling thread.

mod attr;
mod call_filter;
mod cpu_clock;
pub mod fork;
mod state;

use std::ffi::CString;
use std::sync::OnceLock;
use std::{fmt, io};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

pub use call_filter::CallFilter;
pub use cpu_clock::CpuClock;
pub use state::ThreadActivity;

/// The slice asked of the fair scheduler: the kernel's shortest (`Documentation/scheduler/sched-eevdf`,
/// 0.1 to 100 ms). A short slice is an early deadline, so a waking thread runs at once.
const SHORT_SLICE_NS: u64 = 100_000;

/// Why a thread could not be pinned.
#[derive(thiserror::Error, PartialEq, Eq)]
pub enum PinError {
    /// The core is offline, absent, or outside the cpuset that contains the process.
    #[error(
        "cannot pin to core {core}: it does not exist, is offline, or this process's cpuset excludes \
         it; choose one of those that `nproc` and `taskset -p $$` show"
    )]
    NoSuchCore {
        /// The core asked for.
        core: usize,
    },
    /// The system forbids it.
    #[error(
        "cannot pin to core {core}: the system forbids sched_setaffinity; allow it in the \
         sandbox's seccomp profile, or run without pinning"
    )]
    Denied {
        /// The core asked for.
        core: usize,
    },
    /// Anything else.
    #[error("cannot pin to core {core}: {errno}")]
    Other {
        /// The core asked for.
        core: usize,
        /// The system's error.
        errno: Errno,
    },
}

headway_words::debug_is_display!(PinError);

/// Repeats a call that a signal interrupted. A wait with a limit ends so even by a signal that no handler takes, as when a process is stopped and goes on.
///
/// # Errors
/// Those of the call but `EINTR`.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            returned => return returned,
        }
    }
}

/// Names the calling thread, for `top -H`, profilers and core dumps. The kernel keeps 15 bytes; more is cut,
/// and so is what follows a NUL.
pub fn name_current(name: &str) {
    let kept: Vec<u8> = name
        .bytes()
        .take_while(|byte| *byte != 0)
        .take(15)
        .collect();
    let name = CString::new(kept).expect("the bytes end before a NUL");
    // PR_SET_NAME fails only for a bad pointer.
    let _ = nix::sys::prctl::set_name(&name);
}

/// Pins the calling thread to one core.
///
/// # Errors
///
/// [`PinError`], which names the remedy.
pub fn pin_current(core: usize) -> Result<(), PinError> {
    let mut set = CpuSet::new();
    set.set(core).map_err(|_| PinError::NoSuchCore { core })?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| match errno {
        Errno::EINVAL => PinError::NoSuchCore { core },
        Errno::EPERM | Errno::EACCES => PinError::Denied { core },
        errno => PinError::Other { core, errno },
    })
}

/// Makes the calling thread, one that computes, give way to the threads of nice value 0: it keeps a core when nobody else wants it. There is no way back
/// without `CAP_SYS_NICE`.
///
/// Its slice is twice that of the first caller, too, which has the machine's own (`base_slice_ns`, 0.7 to 3 ms by the number of cores). EEVDF lets whoever was just given a core
/// keep it for the least slice of all who want it, or to the next tick, unless the one that wakes has a shorter slice (`RUN_TO_PARITY`, `PREEMPT_SHORT`): else a thread that sleeps and wakes often would wait for milliseconds each second time.
///
/// # Errors
/// The kernel's, for a value below the present one. It cuts what is beyond 19.
pub fn give_way(nice: u8) -> io::Result<()> {
    static SLICE_NS: OnceLock<u64> = OnceLock::new();
    // Threads inherit it, so that of a later caller may be doubled already.
    let slice_ns = *SLICE_NS.get_or_init(|| 2 * attr::slice_ns().unwrap_or(0));
    attr::set_nice(i32::from(nice), slice_ns).map_err(io::Error::from)
}

/// The result of [`stay_responsive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Responsiveness {
    /// `SCHED_FIFO`: runs as soon as it wakes, before every ordinary thread.
    RealTime {
        /// The real-time priority, 1 (lowest) to 99.
        priority: u32,
    },
    /// An ordinary thread with a short slice, which EEVDF runs before threads with longer ones.
    ShortSlice {
        /// The slice in nanoseconds.
        slice_ns: u64,
    },
    /// Nothing: the thread competes as any other and may wake milliseconds late on a busy core.
    Ordinary {
        /// Why the short slice was refused; none when the kernel (before 6.12) ignored it.
        short_slice: Option<Errno>,
    },
}

impl fmt::Display for Responsiveness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime { priority } => write!(out, "real-time (SCHED_FIFO {priority})"),
            Self::ShortSlice { slice_ns } => write!(out, "short slice ({} µs)", slice_ns / 1000),
            Self::Ordinary { short_slice: None } => {
                write!(
                    out,
                    "ordinary (grant CAP_SYS_NICE, or use Linux 6.12 or later)"
                )
            }
            Self::Ordinary {
                short_slice: Some(errno),
            } => {
                write!(out, "ordinary (grant CAP_SYS_NICE; sched_setattr: {errno})")
            }
        }
    }
}

/// Makes the calling thread, one that mostly sleeps, run soon after it wakes: a load generator beside
/// spinning server threads must not measure its own wake-ups.
///
/// Takes the best that the system grants. Never use it on a thread that spins for long: a real-time spinner starves
/// its core, and is stopped unless it [may spin](may_spin_in_real_time).
pub fn stay_responsive() -> Responsiveness {
    if attr::set_fifo(1).is_ok() {
        return Responsiveness::RealTime { priority: 1 };
    }
    shorten_slice()
}

/// Whether real-time threads may keep a core for as long as they like: else the system stops them for a part of every period
/// (`kernel.sched_rt_runtime_us`).
pub fn may_spin_in_real_time() -> bool {
    let runtime_us = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    runtime_us.is_ok_and(|runtime_us| runtime_us.trim() == "-1")
}

fn shorten_slice() -> Responsiveness {
    match attr::set_slice(SHORT_SLICE_NS) {
        Ok(slice_ns) if slice_ns == SHORT_SLICE_NS => Responsiveness::ShortSlice { slice_ns },
        Ok(_) => Responsiveness::Ordinary { short_slice: None },
        Err(errno) => Responsiveness::Ordinary {
            short_slice: Some(errno),
        },
    }
}

/// Whether this process may use `SCHED_FIFO`, tried on a thread made for it.
pub(crate) fn may_use_fifo() -> bool {
    std::thread::spawn(|| attr::set_fifo(1).is_ok())
        .join()
        .unwrap_or(false)
}

/// Whether the kernel honours a thread's own slice, tried on a thread made for it.
pub(crate) fn may_shorten_slice() -> bool {
    std::thread::spawn(|| matches!(shorten_slice(), Responsiveness::ShortSlice { .. }))
        .join()
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Topology;

    /// Runs `body` on its own thread: names, masks and policies must not leak between tests.
    fn on_a_thread(body: impl FnOnce() + Send + 'static) {
        std::thread::spawn(body).join().unwrap();
    }

    #[test]
    fn a_thread_that_gives_way_is_nicer_than_others() {
        on_a_thread(|| {
            let before_ns = attr::slice_ns().unwrap();
            give_way(10).unwrap();
            assert_eq!(attr::nice(), Ok(10));
            // 0 before Linux 6.12.
            assert_eq!(attr::slice_ns(), Ok(2 * before_ns));
            // The kernel cuts what is beyond.
            give_way(200).unwrap();
            assert_eq!(attr::nice(), Ok(19));
        });
        assert_eq!(attr::nice(), Ok(0), "of that thread alone");
    }

    #[test]
    fn a_name_is_cut_to_what_the_kernel_keeps() {
        on_a_thread(|| {
            name_current("headway-worker-12345");
            let name = fs::read_to_string("/proc/thread-self/comm").unwrap();
            assert_eq!(name, "headway-worker-\n");
        });
    }

    #[test]
    fn a_pinned_thread_may_use_its_core_only() {
        let core = Topology::read("/sys").unwrap().cores()[0].id;
        on_a_thread(move || {
            pin_current(core).unwrap();
            let left = Topology::read("/sys").unwrap();
            assert_eq!(left.pinning_order(), [core]);
        });
    }

    #[test]
    fn an_absent_core_is_named_with_a_remedy() {
        for core in [1023, 1_000_000] {
            let error = pin_current(core).unwrap_err();
            assert_eq!(error, PinError::NoSuchCore { core });
            assert!(error.to_string().contains("nproc"));
        }
    }

    #[test]
    fn what_was_obtained_is_what_the_kernel_says() {
        on_a_thread(|| match stay_responsive() {
            Responsiveness::RealTime { priority } => {
                assert_eq!(attr::fifo_priority().unwrap(), Some(priority));
            }
            Responsiveness::ShortSlice { .. } | Responsiveness::Ordinary { .. } => {
                assert_eq!(attr::fifo_priority().unwrap(), None);
            }
        });
    }

    #[test]
    fn a_short_slice_is_reported_only_if_kept() {
        on_a_thread(|| {
            if let Responsiveness::ShortSlice { slice_ns } = shorten_slice() {
                assert_eq!(attr::slice_ns().unwrap(), slice_ns);
            }
        });
    }
}
