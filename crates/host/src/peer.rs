//! The process at the other end of a registration. The daemon acts on a thread only if it belongs to that process at that moment.
#![expect(
    unsafe_code,
    reason = "pidfd, tgkill and clocks of other processes have no wrappers"
)]

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// The most descendants that are tracked. Further ones of a program stay on its first cores.
const FAMILY_MAX: usize = 256;

/// A process whose threads can be moved.
pub trait HostPeer: Send {
    /// Whether this is a thread of the process now.
    fn owns(&self, tid: u32) -> bool;

    /// Confines a thread of the process to these cores; returns whether that succeeded.
    fn pin(&self, tid: u32, cores: &CpuSet) -> bool;

    /// Sends the signal on which a thread reads its orders; returns whether the thread exists.
    fn interrupt(&self, tid: u32) -> bool;

    /// Gives a thread only the idle time of its core, or its ordinary share again.
    fn demote(&self, tid: u32, demoted: bool);

    /// Confines every thread of the process and of its descendants to these cores. Returns their number.
    fn pin_all(&mut self, cores: &CpuSet) -> usize;

    /// Does the same, faster, for the threads found by the last call of [`Self::pin_all`].
    fn pin_known(&mut self, cores: &CpuSet);

    /// CPU time of the process so far, ns.
    fn cpu_ns(&self) -> u64;
}

/// A process, by a descriptor that never refers to another process.
#[derive(Debug)]
pub struct PeerProcess {
    leader: ProcessHandle,
    /// Its descendants, with their threads.
    family: BTreeMap<i32, Relative>,
    threads: Vec<u32>,
}

#[derive(Debug)]
struct Relative {
    process: ProcessHandle,
    threads: Vec<u32>,
}

#[derive(Debug)]
struct ProcessHandle {
    pid: i32,
    fd: OwnedFd,
    /// As whom the process acted when it registered.
    uid: u32,
}

impl PeerProcess {
    /// The process that made the other end of this socket, as this user.
    ///
    /// # Errors
    /// As the system: it is gone.
    pub fn of(socket: BorrowedFd<'_>, pid: i32, uid: u32) -> io::Result<Self> {
        let fd = match peer_pidfd(socket) {
            Ok(fd) => fd,
            // Kernels before 6.5 do not know it.
            Err(_) => open_pidfd(pid)?,
        };
        Ok(Self::new(ProcessHandle { pid, fd, uid }))
    }

    /// A process by its number, as the user that it is now. The caller knows that the number still refers to it.
    ///
    /// # Errors
    /// As the system: it is gone.
    pub fn open(pid: i32) -> io::Result<Self> {
        let fd = open_pidfd(pid)?;
        let users = users_of(fd.as_fd(), pid)?;
        let uid = users.effective;
        Ok(Self::new(ProcessHandle { pid, fd, uid }))
    }

    fn new(leader: ProcessHandle) -> Self {
        Self {
            leader,
            family: BTreeMap::new(),
            threads: Vec::new(),
        }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.leader.pid
    }

    /// As whom it registered.
    pub fn uid(&self) -> u32 {
        self.leader.uid
    }

    /// Whether it is there, and acts as whom it registered. One that became another user, by a file with the set-user-ID bit, is nobody's to move or to signal.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.leader.is_unchanged()
    }

    /// A descriptor that becomes readable when the process ends.
    ///
    /// # Errors
    /// As the system.
    pub fn end(&self) -> io::Result<OwnedFd> {
        self.leader.fd.as_fd().try_clone_to_owned()
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut ends = [PollFd::new(self.leader.fd.as_fd(), PollFlags::POLLIN)];
        poll(&mut ends, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// The cores on which its first thread may run.
    ///
    /// # Errors
    /// As the system.
    pub fn affinity(&self) -> io::Result<CpuSet> {
        Ok(sched_getaffinity(Pid::from_raw(self.leader.pid))?)
    }

    /// Its start time in ticks since the machine's start. Together with its number this identifies it.
    pub fn started(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.leader.pid)).ok()?;
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(19)?
            .parse()
            .ok()
    }

    /// Tests whether its threads may be moved, by setting the mask that it has.
    ///
    /// # Errors
    /// As the system.
    pub fn check_permission(&self) -> io::Result<()> {
        let cores = self.affinity()?;
        Ok(sched_setaffinity(Pid::from_raw(self.leader.pid), &cores)?)
    }

    /// Reads the current threads and descendants. It opens a descriptor for each descendant when it first sees it.
    fn look(&mut self) {
        self.threads = threads_of(self.leader.pid);
        let mut open: Vec<i32> = children_of(self.leader.pid, &self.threads);
        let mut seen = BTreeMap::new();
        while let Some(pid) = open.pop() {
            if seen.len() >= FAMILY_MAX || seen.contains_key(&pid) {
                continue;
            }
            let process = match self.family.remove(&pid) {
                Some(known) if known.process.is_unchanged() => Some(known.process),
                _ => ProcessHandle::open(pid, self.leader.uid),
            };
            let Some(process) = process else { continue };
            let threads = threads_of(pid);
            open.extend(children_of(pid, &threads));
            seen.insert(pid, Relative { process, threads });
        }
        self.family = seen;
    }
}

impl HostPeer for PeerProcess {
    fn owns(&self, tid: u32) -> bool {
        self.leader.owns(tid)
    }

    fn pin(&self, tid: u32, cores: &CpuSet) -> bool {
        self.leader.pin(tid, cores)
    }

    fn interrupt(&self, tid: u32) -> bool {
        self.leader.is_unchanged() && tgkill(self.leader.pid, tid, libc::SIGUSR1)
    }

    fn demote(&self, tid: u32, demoted: bool) {
        if !self.leader.owns(tid) {
            return;
        }
        let policy = if demoted {
            libc::SCHED_IDLE
        } else {
            libc::SCHED_OTHER
        };
        let param = libc::sched_param { sched_priority: 0 };
        // SAFETY: `param` outlives the call. When the kernel refuses, the thread keeps its share of the shared core.
        unsafe {
            libc::sched_setscheduler(tid as libc::pid_t, policy, &raw const param);
        }
    }

    fn pin_all(&mut self, cores: &CpuSet) -> usize {
        // A new thread inherits the mask of its creator, which may be the old one: repeat until no thread is new.
        const LOOKS_MAX: usize = 4;
        let mut before = usize::MAX;
        for _ in 0..LOOKS_MAX {
            self.look();
            let family = self.family.values();
            let count = self.threads.len() + family.map(|one| one.threads.len()).sum::<usize>();
            if count == before {
                break;
            }
            before = count;
            self.pin_known(cores);
        }
        before
    }

    fn pin_known(&mut self, cores: &CpuSet) {
        for &tid in &self.threads {
            self.leader.pin(tid, cores);
        }
        for Relative { process, threads } in self.family.values() {
            for &tid in threads {
                process.pin(tid, cores);
            }
        }
    }

    fn cpu_ns(&self) -> u64 {
        // The clock of a process: its number, inverted, above the kind of clock (clock_getcpuclockid(3)).
        let clock = (!self.leader.pid << 3) | 2;
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
}

impl ProcessHandle {
    /// A process of this user.
    fn open(pid: i32, uid: u32) -> Option<Self> {
        let fd = open_pidfd(pid).ok()?;
        Some(Self { pid, fd, uid })
    }

    /// Whether its number still refers to it, which ends when it is reaped, and it acts as whom it registered.
    fn is_unchanged(&self) -> bool {
        let users = users_of(self.fd.as_fd(), self.pid);
        users.is_ok_and(|users| users.effective == self.uid && users.saved == self.uid)
    }

    /// The kernel reuses a thread's number only after all others, so the number refers to the same thread as a microsecond ago.
    fn owns(&self, tid: u32) -> bool {
        self.is_unchanged() && tgkill(self.pid, tid, 0)
    }

    fn pin(&self, tid: u32, cores: &CpuSet) -> bool {
        self.owns(tid) && sched_setaffinity(Pid::from_raw(tid as i32), cores).is_ok()
    }
}

fn tgkill(pid: i32, tid: u32, signal: i32) -> bool {
    let Ok(tid) = i32::try_from(tid) else {
        return false;
    };
    // SAFETY: three integers. The kernel sends nothing unless the thread belongs to the process.
    tid > 0 && unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) } == 0
}

/// As whom a process acts, and whom it may become again.
#[derive(Clone, Copy, Debug)]
struct ProcessUsers {
    effective: u32,
    saved: u32,
}

/// The users of a process that was not reaped.
fn users_of(fd: BorrowedFd<'_>, pid: i32) -> io::Result<ProcessUsers> {
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

fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
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

fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: two integers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as i32) })
}

fn threads_of(pid: i32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn children_of(pid: i32, threads: &[u32]) -> Vec<i32> {
    let lists = threads
        .iter()
        .filter_map(|tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).ok());
    let mut children = Vec::new();
    for list in lists {
        children.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn own_tid() -> u32 {
        nix::unistd::gettid().as_raw() as u32
    }

    #[test]
    fn only_threads_of_the_process_are_touched() {
        let own = PeerProcess::open(std::process::id() as i32).unwrap();
        assert!(own.owns(own_tid()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let other = PeerProcess::open(child.id() as i32).unwrap();
        for stranger in [1, 0, u32::MAX, own_tid()] {
            assert!(!other.owns(stranger), "{stranger}");
            assert!(!other.pin(stranger, &other.affinity().unwrap()));
            assert!(!other.interrupt(stranger));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!other.owns(child.id()), "it is gone");
    }

    #[test]
    fn every_thread_and_descendant_is_pinned() {
        let script = "sleep 60 & sleep 60 & echo ready; wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 6];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let mut peer = PeerProcess::open(child.id() as i32).unwrap();
        let first =
            (0..CpuSet::count()).find(|&core| peer.affinity().unwrap().is_set(core) == Ok(true));
        let mut one = CpuSet::new();
        one.set(first.unwrap()).unwrap();
        assert_eq!(peer.pin_all(&one), 3);
        let children = peer.family.keys().copied().collect::<Vec<_>>();
        for &pid in children.iter().chain([&peer.pid()]) {
            assert_eq!(sched_getaffinity(Pid::from_raw(pid)).unwrap(), one);
        }
        for &pid in &children {
            nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        child.wait().unwrap();
        assert!(peer.cpu_ns() < 60_000_000_000);
    }

    #[test]
    fn a_process_is_told_from_another_by_when_it_was_started() {
        let own = PeerProcess::open(std::process::id() as i32).unwrap();
        assert!(own.started().unwrap() > 0);
        assert!(own.check_permission().is_ok());
    }

    #[test]
    fn both_ways_to_see_a_processes_users_agree() {
        let pid = std::process::id() as i32;
        let fd = open_pidfd(pid).unwrap();
        let (by_call, by_status) = (users_of(fd.as_fd(), pid), users_by_status(fd.as_fd(), pid));
        let (by_call, by_status) = (by_call.unwrap(), by_status.unwrap());
        assert_eq!(by_call.effective, by_status.effective);
        assert_eq!(by_call.saved, by_status.saved);
    }

    #[test]
    fn a_process_that_became_root_is_neither_moved_nor_signalled() {
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        const STRANGER: u32 = 65_534;
        let folder = tempfile::tempdir().unwrap();
        let set_uid = folder.path().join("sleep");
        fs::copy("/bin/sleep", &set_uid).unwrap();
        for (path, mode) in [(folder.path(), 0o755), (&set_uid, 0o4755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", "read line; exec \"$0\" 60"])
            .arg(&set_uid);
        command.uid(STRANGER).stdin(std::process::Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            return println!(
                "SKIPPED a_process_that_became_root_is_neither_moved_nor_signalled: it needs root"
            );
        };
        let mut peer = PeerProcess::open(child.id() as i32).unwrap();
        let (home, tid) = (peer.affinity().unwrap(), child.id());
        assert_eq!(peer.uid(), STRANGER);
        assert!(peer.owns(tid) && peer.pin(tid, &home));
        drop(child.stdin.take());
        let begun = std::time::Instant::now();
        while peer.is_unchanged() {
            assert!(begun.elapsed().as_secs() < 60, "it is still nobody");
            std::thread::yield_now();
        }
        let first = (0..CpuSet::count()).find(|&core| home.is_set(core) == Ok(true));
        let mut one = CpuSet::new();
        one.set(first.unwrap()).unwrap();
        assert!(!peer.owns(tid) && !peer.pin(tid, &one) && !peer.interrupt(tid));
        peer.pin_all(&one);
        assert_eq!(peer.affinity().unwrap(), home);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
