//! Whether a thread sleeps in the kernel, as seen from another one.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A thread's state, as the system's files tell it (`proc_pid_stat(5)`).
#[derive(Debug)]
pub struct ThreadActivity(File);

impl ThreadActivity {
    /// The calling thread's; `None` without `/proc`.
    #[must_use]
    pub fn of_current() -> Option<Self> {
        let thread = nix::unistd::gettid();
        File::open(format!("/proc/self/task/{thread}/stat"))
            .ok()
            .map(Self)
    }

    /// Whether the thread sleeps: it neither has a core nor waits for one. `None` once it has ended. Some system calls, a few microseconds.
    #[must_use]
    pub fn is_asleep(&self) -> Option<bool> {
        let mut line = [0; 256];
        let read = self.0.read_at(&mut line, 0).ok()?;
        // The name, in parentheses, may have any character.
        let after_name = line[..read].iter().rposition(|&byte| byte == b')')? + 2;
        match line[..read].get(after_name)? {
            b'S' | b'D' => Some(true),
            b'R' => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_that_waits_sleeps_and_one_that_computes_does_not() {
        assert_eq!(
            ThreadActivity::of_current().unwrap().is_asleep(),
            Some(false),
            "it looks at itself"
        );
        let (tell, hear) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(ThreadActivity::of_current().unwrap()).unwrap();
            let _ = ended.recv();
        });
        let state = hear.recv().unwrap();
        let limit = Instant::now() + Duration::from_secs(60);
        while state.is_asleep() != Some(true) {
            assert!(Instant::now() < limit, "it goes to sleep");
        }
        drop(end);
        thread.join().unwrap();
        while state.is_asleep().is_some() {
            assert!(Instant::now() < limit, "it has ended");
        }
    }
}
