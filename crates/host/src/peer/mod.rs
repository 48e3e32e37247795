//! The process at the other end of a registration. The daemon acts on a thread only if it belongs to that process at that moment.
mod family;
mod handle;

use crate::cgroup::GroupHandle;
use family::Family;
use handle::{ProcessHandle, open_pidfd, peer_pidfd, tgkill, users_of};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(crate) use family::threads_of;
pub(crate) use handle::started_of;

/// A process whose threads can be moved.
pub trait HostPeer: Send {
    /// Whether this is a thread of the process now.
    fn owns(&self, tid: u32) -> bool;

    /// Confines a thread of the process to these cores; returns whether that succeeded.
    fn pin(&self, tid: u32, cores: &CpuSet) -> bool;

    /// Whether the kernel lets a thread of the process run on this core; `true` for one that is gone.
    fn may_run_on(&self, tid: u32, core: usize) -> bool;

    /// Sends the signal on which a thread reads its orders; returns whether the thread exists.
    fn interrupt(&self, tid: u32) -> bool;

    /// Gives a thread only the idle time of its core, or its ordinary share again.
    fn demote(&self, tid: u32, demoted: bool);

    /// Confines every thread of the process and of its descendants to these cores. Returns their number.
    fn pin_all(&mut self, cores: &CpuSet) -> usize;

    /// Does the same, faster, for the threads found by the last call of [`Self::pin_all`].
    fn pin_known(&mut self, cores: &CpuSet);

    /// Returns every thread of the process and of its descendants to these cores, at its ordinary weight.
    fn let_all_go(&mut self, home: &CpuSet);

    /// CPU time of the process so far, ns.
    fn cpu_ns(&self) -> u64;
}

/// A process, by a descriptor that never refers to another process.
#[derive(Debug)]
pub struct PeerProcess {
    leader: ProcessHandle,
    confinement: Confinement,
}

/// How all threads of a program are confined.
#[derive(Debug)]
enum Confinement {
    /// One by one, as far as they are found. `is_idle`: each has the scheduler's lowest weight.
    Threads { family: Family, is_idle: bool },
    /// By their control group.
    Group(GroupHandle),
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
            confinement: Confinement::Threads {
                family: Family::default(),
                is_idle: false,
            },
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

    /// The cores that the kernel lets its first thread have: those of its cpuset.
    ///
    /// # Errors
    /// As the system.
    pub fn usable_cores(&self) -> io::Result<CpuSet> {
        let (first, home) = (Pid::from_raw(self.leader.pid), self.affinity()?);
        let mut all = CpuSet::new();
        for core in 0..CpuSet::count() {
            all.set(core)?;
        }
        sched_setaffinity(first, &all)?;
        let usable = self.affinity();
        sched_setaffinity(first, &home)?;
        usable
    }

    /// Whether its threads have other numbers for itself than for this process: it is in a PID namespace of its own.
    ///
    /// # Errors
    /// As the system: it is gone.
    pub fn has_own_numbers(&self) -> io::Result<bool> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.leader.pid))?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        Ok(numbers.is_some_and(|numbers| numbers.split_whitespace().count() > 1))
    }

    /// Its start time in ticks since the machine's start. Together with its number this identifies it.
    pub fn started(&self) -> Option<u64> {
        started_of(self.leader.pid)
    }

    /// Whether it is in the container of this process: control groups are called the same there, and processes have the same numbers.
    pub fn shares_container(&self) -> bool {
        ["cgroup", "pid"].into_iter().all(|kind| {
            let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
            of("self") == of(&self.leader.pid.to_string())
        })
    }

    /// Tests whether its threads may be moved, by setting the mask that it has.
    ///
    /// # Errors
    /// As the system.
    pub fn check_permission(&self) -> io::Result<()> {
        let cores = self.affinity()?;
        Ok(sched_setaffinity(Pid::from_raw(self.leader.pid), &cores)?)
    }

    /// Confines the threads of the program by this group from now on.
    pub fn confine_by(&mut self, group: GroupHandle) {
        self.confinement = Confinement::Group(group);
    }

    /// Gives all its threads the scheduler's lowest weight, which those that it makes inherit, until [`HostPeer::let_all_go`].
    pub fn make_idle(&mut self) {
        if let Confinement::Threads { family, is_idle } = &mut self.confinement {
            family.look(&self.leader);
            family.each(&self.leader, |process, tid| process.demote(tid, true));
            *is_idle = true;
        }
    }
}

impl HostPeer for PeerProcess {
    fn owns(&self, tid: u32) -> bool {
        self.leader.owns(tid)
    }

    fn pin(&self, tid: u32, cores: &CpuSet) -> bool {
        self.leader.pin(tid, cores)
    }

    fn may_run_on(&self, tid: u32, core: usize) -> bool {
        let allowed = sched_getaffinity(Pid::from_raw(tid as i32));
        let is_allowed = allowed.is_ok_and(|cores| cores.is_set(core) == Ok(true));
        // Asked last: the number may have become another's.
        is_allowed || !self.leader.owns(tid)
    }

    fn interrupt(&self, tid: u32) -> bool {
        self.leader.is_unchanged() && tgkill(self.leader.pid, tid, libc::SIGUSR1)
    }

    fn demote(&self, tid: u32, demoted: bool) {
        self.leader.demote(tid, demoted);
    }

    fn pin_all(&mut self, cores: &CpuSet) -> usize {
        match &mut self.confinement {
            Confinement::Threads { family, .. } => family.pin_all(&self.leader, cores),
            Confinement::Group(group) => {
                group.confine(cores);
                group.threads()
            }
        }
    }

    fn pin_known(&mut self, cores: &CpuSet) {
        match &mut self.confinement {
            Confinement::Threads { family, .. } => {
                family.each(&self.leader, |process, tid| {
                    process.pin(tid, cores);
                });
            }
            Confinement::Group(group) => group.confine(cores),
        }
    }

    fn let_all_go(&mut self, home: &CpuSet) {
        let alone = Confinement::Threads {
            family: Family::default(),
            is_idle: false,
        };
        // A group lets its processes go when its handle is dropped.
        if let Confinement::Threads {
            mut family,
            is_idle,
        } = std::mem::replace(&mut self.confinement, alone)
        {
            family.pin_all(&self.leader, home);
            if is_idle {
                family.each(&self.leader, |process, tid| process.demote(tid, false));
            }
        }
    }

    fn cpu_ns(&self) -> u64 {
        self.leader.cpu_ns()
    }
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
        let Confinement::Threads { family, .. } = &peer.confinement else {
            panic!("it has no group");
        };
        let children = family.processes();
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
    fn a_container_is_told_from_the_daemons() {
        assert!(
            PeerProcess::open(std::process::id() as i32)
                .unwrap()
                .shares_container()
        );
        let mut command = Command::new("unshare");
        let Ok(mut child) = command.args(["--cgroup", "sleep", "60"]).spawn() else {
            return println!("SKIPPED a_container_is_told_from_the_daemons: no unshare");
        };
        let name = format!("/proc/{}/comm", child.id());
        while child.try_wait().unwrap().is_none() {
            if fs::read_to_string(&name).unwrap_or_default().trim() == "sleep" {
                let peer = PeerProcess::open(child.id() as i32).unwrap();
                assert!(!peer.shares_container());
                child.kill().unwrap();
                child.wait().unwrap();
                return;
            }
        }
        println!("SKIPPED a_container_is_told_from_the_daemons: no namespace can be made here");
    }

    #[test]
    fn a_process_is_told_from_another_by_when_it_was_started() {
        let own = PeerProcess::open(std::process::id() as i32).unwrap();
        assert!(own.started().unwrap() > 0);
        assert!(own.check_permission().is_ok());
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

    /// Without a control group: only a privileged daemon gives the weight back.
    #[test]
    fn a_program_gets_its_weight_back_when_it_is_let_go() {
        let has = |pid: i32, policy: i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let after_name = stat.rsplit_once(')').unwrap().1;
            after_name.split_whitespace().nth(38).unwrap().parse() == Ok(policy)
        };
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo ready; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 6];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let mut peer = PeerProcess::open(child.id() as i32).unwrap();
        let home = peer.affinity().unwrap();
        peer.make_idle();
        let Confinement::Threads { family, .. } = &peer.confinement else {
            panic!("it has no group");
        };
        let mut all = family.processes();
        all.push(peer.pid());
        let have = |policy| all.iter().all(|&pid| has(pid, policy));
        assert_eq!(all.len(), 2);
        assert!(have(libc::SCHED_IDLE));
        peer.let_all_go(&home);
        if peer.uid() == 0 {
            assert!(have(libc::SCHED_OTHER));
        } else {
            println!("SKIPPED the weights of a_program_gets_its_weight_back: it needs root");
        }
        for pid in all {
            nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        child.wait().unwrap();
    }
}
