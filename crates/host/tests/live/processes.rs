//! Processes that end with the test, however it ends, together with their descendants.

#![expect(unsafe_code, reason = "runs between fork and exec")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

/// The test to which a process belongs. Its descendants inherit it.
const MARK: &str = "HEADWAY_HOST_TEST";

/// A process with a process group of its own. All of the group is killed when this is dropped, and the process when the test's thread ends.
pub(crate) struct TestProcess {
    child: Child,
    ended: bool,
}

impl TestProcess {
    pub(crate) fn start(command: &mut Command, test: &Path) -> Self {
        command.process_group(0).env(MARK, test);
        // SAFETY: the closure makes one system call, which needs no lock.
        unsafe { command.pre_exec(die_with_parent) };
        Self {
            child: command.spawn().unwrap(),
            ended: false,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills and reaps it and its descendants.
    pub(crate) fn kill(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        // The process keeps its number until it is reaped, so no other group has it.
        let group = Pid::from_raw(-(self.child.id() as i32));
        let _ = kill(group, Signal::SIGKILL);
        self.child.wait().unwrap();
    }
}

fn die_with_parent() -> std::io::Result<()> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Processes of this test that run.
pub(crate) fn marked(test: &Path) -> Vec<u32> {
    let mark = [MARK.as_bytes(), b"=", test.as_os_str().as_bytes()].concat();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|word| word == mark)
    })
    .collect()
}

#[test]
fn nothing_that_a_process_started_outlives_it() {
    // Others count this process's descriptors.
    let _turn = crate::stage::turn();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 1000 & sleep 1000"]);
    let process = TestProcess::start(&mut command, folder.path());
    crate::stage::until("three processes run", || marked(folder.path()).len() == 3);
    drop(process);
    crate::stage::until("none runs", || marked(folder.path()).is_empty());
}
