//! A process by a descriptor that never refers to another one, and as whom it acts.
#![expect(
    unsafe_code,
    reason = "pidfd, tgkill, clocks and scheduling classes of other processes have no wrappers"
)]

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// A process of a user.
#[derive(Debug)]
pub(super) struct ProcessHandle {
    pub(super) pid: i32,
    pub(super) fd: OwnedFd,
    /// As whom the process acted when it registered.
    pub(super) uid: u32,
}

impl ProcessHandle {
    /// A process of this user.
    pub(super) fn open(pid: i32, uid: u32) -> Option<Self> {
        let fd = open_pidfd(pid).ok()?;
        Some(Self { pid, fd, uid })
    }

    /// Whether its number still refers to it, which ends when it is reaped, and it acts as whom it registered.
    pub(super) fn is_unchanged(&self) -> bool {
        let users = users_of(self.fd.as_fd(), self.pid);
        users.is_ok_and(|users| users.effective == self.uid && users.saved == self.uid)
    }

    /// The kernel reuses a thread's number only after all others, so the number refers to the same thread as a microsecond ago.
    pub(super) fn owns(&self, tid: u32) -> bool {
        self.is_unchanged() && tgkill(self.pid, tid, 0)
    }

    /// Its CPU time so far, ns.
    pub(super) fn cpu_ns(&self) -> u64 {
        // The clock of a process: its number, inverted, above the kind of clock (clock_getcpuclockid(3)).
        let clock = (!self.pid << 3) | 2;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` outlives the call.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return 0;
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Gives a thread of it the scheduler's lowest weight, or takes that away. The latter needs CAP_SYS_NICE.
    pub(super) fn demote(&self, tid: u32, demoted: bool) {
        if !self.owns(tid) {
            return;
        }
        // SAFETY: the call takes a number only. One that sets another policy for itself keeps it.
        let policy = unsafe { libc::sched_getscheduler(tid as libc::pid_t) };
        if !demoted && policy & !libc::SCHED_RESET_ON_FORK != libc::SCHED_IDLE {
            return;
        }
        let policy = if demoted {
            libc::SCHED_IDLE
        } else {
            libc::SCHED_OTHER
        };
        let param = libc::sched_param { sched_priority: 0 };
        // SAFETY: `param` outlives the call. When the kernel refuses, the thread keeps its share of its core.
        unsafe {
            libc::sched_setscheduler(tid as libc::pid_t, policy, &raw const param);
        }
    }

    pub(super) fn pin(&self, tid: u32, cores: &CpuSet) -> bool {
        self.owns(tid) && sched_setaffinity(Pid::from_raw(tid as i32), cores).is_ok()
    }
}

/// When a process was started, in ticks since the machine's start.
pub(crate) fn started_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// Sends a signal to a thread of this process; returns whether it exists.
pub(super) fn tgkill(pid: i32, tid: u32, signal: i32) -> bool {
    let Ok(tid) = i32::try_from(tid) else {
        return false;
    };
    // SAFETY: three integers. The kernel sends nothing unless the thread belongs to the process.
    tid > 0 && unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) } == 0
}

/// As whom a process acts, and whom it may become again.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessUsers {
    pub(super) effective: u32,
    saved: u32,
}

/// The users of a process that was not reaped.
pub(super) fn users_of(fd: BorrowedFd<'_>, pid: i32) -> io::Result<ProcessUsers> {
    /// `struct pidfd_info` in its first version (`<linux/pidfd.h>`).
    #[repr(C)]
    #[derive(Default)]
    struct PidfdInfo {
        mask: u64,
        cgroup: u64,
        pid: u32,
        tgid: u32,
        ppid: u32,
        ruid: u32,
        rgid: u32,
        euid: u32,
        egid: u32,
        suid: u32,
        rest: [u32; 4],
    }
    const PIDFD_INFO_CREDS: u64 = 1 << 1;
    /// `_IOWR(0xff, 11, struct pidfd_info)`.
    const PIDFD_GET_INFO: libc::Ioctl = 0xc040_ff0b_u32 as libc::Ioctl;
    let mut info = PidfdInfo {
        mask: PIDFD_INFO_CREDS,
        ..PidfdInfo::default()
    };
    // SAFETY: `info` has the size that the number of the call says, and outlives it.
    let got = unsafe { libc::ioctl(fd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    if got == 0 && info.mask & PIDFD_INFO_CREDS != 0 {
        return Ok(ProcessUsers {
            effective: info.euid,
            saved: info.suid,
        });
    }
    let error = io::Error::last_os_error();
    // Kernels before 6.13 do not know it.
    if got != 0 && error.raw_os_error() == Some(libc::ESRCH) {
        return Err(error);
    }
    users_by_status(fd, pid)
}

/// The same by the process' file: read first, so that a number which refers to the process afterwards did so then.
fn users_by_status(fd: BorrowedFd<'_>, pid: i32) -> io::Result<ProcessUsers> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    // SAFETY: signal 0 only asks; no pointer is followed.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            fd.as_raw_fd(),
            0,
            ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let users: Vec<u32> = users
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|user| user.parse().ok())
        .collect();
    match users[..] {
        [_, effective, saved, ..] => Ok(ProcessUsers { effective, saved }),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

pub(super) fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: i32 = 77;
    let mut raw: i32 = -1;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: value and length outlive the call.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if got != 0 || raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

pub(super) fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: two integers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_see_a_processes_users_agree() {
        let pid = std::process::id() as i32;
        let fd = open_pidfd(pid).unwrap();
        let (by_call, by_status) = (users_of(fd.as_fd(), pid), users_by_status(fd.as_fd(), pid));
        let (by_call, by_status) = (by_call.unwrap(), by_status.unwrap());
        assert_eq!(by_call.effective, by_status.effective);
        assert_eq!(by_call.saved, by_status.saved);
    }
}
