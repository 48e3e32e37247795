//! The calling thread's scheduling attributes.
#![expect(unsafe_code, reason = "glibc has no wrapper for sched_setattr")]

use libc::{
    SCHED_FIFO, SCHED_FLAG_RESET_ON_FORK, SYS_sched_getattr, SYS_sched_setattr, sched_attr,
};
use nix::errno::Errno;

const SIZE: u32 = size_of::<sched_attr>() as u32;

/// Makes the thread real-time. Its children are not: they may spin.
pub(super) fn set_fifo(priority: u32) -> Result<(), Errno> {
    let mut attr = get()?;
    attr.sched_policy = SCHED_FIFO as u32;
    attr.sched_priority = priority;
    attr.sched_nice = 0;
    attr.sched_flags |= SCHED_FLAG_RESET_ON_FORK as u64;
    set(&mut attr)
}

/// Asks for a slice and returns the one in force: kernels before 6.12 accept the field and ignore it.
pub(super) fn set_slice(slice_ns: u64) -> Result<u64, Errno> {
    let mut attr = get()?;
    attr.sched_runtime = slice_ns;
    set(&mut attr)?;
    Ok(get()?.sched_runtime)
}

/// Sets the nice value, -20 to 19, and asks for a slice, which kernels before 6.12 ignore. Lowering the value wants `CAP_SYS_NICE`.
pub(super) fn set_nice(nice: i32, slice_ns: u64) -> Result<(), Errno> {
    let mut attr = get()?;
    attr.sched_nice = nice;
    attr.sched_runtime = slice_ns;
    set(&mut attr)
}

#[cfg(test)]
pub(super) fn nice() -> Result<i32, Errno> {
    Ok(get()?.sched_nice)
}

#[cfg(test)]
pub(super) fn fifo_priority() -> Result<Option<u32>, Errno> {
    let attr = get()?;
    Ok((attr.sched_policy == SCHED_FIFO as u32).then_some(attr.sched_priority))
}

/// The thread's slice, ns; 0 where the kernel (before 6.12) has none of a thread's own.
pub(super) fn slice_ns() -> Result<u64, Errno> {
    Ok(get()?.sched_runtime)
}

fn get() -> Result<sched_attr, Errno> {
    // SAFETY: all fields are integers, for which zero is a value.
    let mut attr: sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most SIZE bytes to `attr`, which has that many and outlives the call.
    let result = unsafe { libc::syscall(SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) };
    Errno::result(result).map(|_| attr)
}

fn set(attr: &mut sched_attr) -> Result<(), Errno> {
    attr.size = SIZE;
    // SAFETY: the kernel reads `attr.size` bytes from `attr` and, on a size it does not know, writes that
    // field.
    let result = unsafe { libc::syscall(SYS_sched_setattr, 0, &raw mut *attr, 0) };
    Errno::result(result).map(drop)
}
