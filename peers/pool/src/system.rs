//! Sets of cores, and the process's clock.
#![expect(unsafe_code, reason = "sets of cores and the process's clock")]

use anyhow::Result;

/// Runs `body` with the whole process on one core.
pub(crate) fn on_one_core<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    let before = affinity();
    let mut one = empty_set();
    let core = (0..libc::CPU_SETSIZE as usize)
        .find(|&core| is_in(core, &before))
        .unwrap_or(0);
    insert(core, &mut one);
    set_affinity(&one);
    let result = body();
    set_affinity(&before);
    result
}

/// The process's CPU time, ns.
pub(crate) fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is written.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Ticks a second in which the kernel counts processors' time.
pub(crate) fn ticks_per_s() -> u64 {
    // SAFETY: it takes no pointer.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: all zero is the empty set.
    unsafe { std::mem::zeroed() }
}

fn insert(core: usize, set: &mut libc::cpu_set_t) {
    // SAFETY: the set is valid and the core below its size.
    unsafe { libc::CPU_SET(core, set) };
}

fn is_in(core: usize, set: &libc::cpu_set_t) -> bool {
    // SAFETY: the set is valid and the core below its size.
    unsafe { libc::CPU_ISSET(core, set) }
}

fn affinity() -> libc::cpu_set_t {
    let mut set = empty_set();
    // SAFETY: the set is written.
    unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    set
}

/// Of the calling thread, and of those that it starts.
fn set_affinity(set: &libc::cpu_set_t) {
    // SAFETY: the set is read.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
}
