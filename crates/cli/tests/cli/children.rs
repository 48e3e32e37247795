//! Processes that end with the test, even if it panics.

use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::{io, process};

/// A process with a separate process group. Dropping it kills the whole group; the end of the starting thread kills the process.
pub(super) struct TestChild {
    child: process::Child,
    status: Option<ExitStatus>,
}

impl TestChild {
    pub(super) fn start(command: &mut Command) -> Self {
        command.process_group(0);
        // SAFETY: the closure makes one system call, which needs no lock.
        unsafe { command.pre_exec(die_with_parent) };
        Self {
            child: command.spawn().expect("it starts"),
            status: None,
        }
    }

    pub(super) fn id(&self) -> i32 {
        self.child.id() as i32
    }

    pub(super) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("it is piped")
    }

    pub(super) fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("it is piped")
    }

    pub(super) fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("it is piped")
    }

    pub(super) fn signal(&self, signal: i32) {
        assert!(self.status.is_none(), "its number may be another's");
        // SAFETY: kill has no memory effects; the process is our child and not yet waited for.
        unsafe { libc::kill(self.id(), signal) };
    }

    /// The exit status, if the process has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("it is our child");
        }
        self.status
    }

    /// Waits until the process ends.
    pub(super) fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("it is our child");
        *self.status.get_or_insert(status)
    }

    /// Kills the whole process group, as a failure of the machine would.
    pub(super) fn kill(&mut self) {
        if self.status.is_none() {
            // SAFETY: as in `signal`; no other group has its number meanwhile.
            unsafe { libc::kill(-self.id(), libc::SIGKILL) };
            self.wait();
        }
    }
}

impl Drop for TestChild {
    fn drop(&mut self) {
        self.kill();
    }
}

fn die_with_parent() -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
