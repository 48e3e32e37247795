//! System calls that the kernel refuses to a thread, as sandboxes and containers have it (seccomp).
#![expect(unsafe_code, reason = "a filter is given to the kernel by address")]

use std::{fs, io};

use libc::{c_int, c_long, sock_filter};

/// System calls that the kernel answers with an error. So a test finds out what a program does in a sandbox.
#[derive(Clone)]
pub struct CallFilter {
    program: Vec<sock_filter>,
}

impl CallFilter {
    /// Answers `errno` to these calls of this architecture, by number, and lets all others pass.
    ///
    /// # Panics
    /// There are more than 250 calls: a jump in the filter has eight bits.
    #[must_use]
    pub fn refusing(calls: &[c_long], errno: c_int) -> Self {
        assert!(calls.len() <= 250, "a filter jumps over 250 calls at most");
        let statement = |code: u32, jt: usize, k: u32| sock_filter {
            code: code as u16,
            jt: jt as u8,
            jf: 0,
            k,
        };
        // The number of the call is the first word of what a filter may load (seccomp(2), struct seccomp_data).
        let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
        for (at, call) in calls.iter().enumerate() {
            let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
            // Over the other calls and the statement that allows.
            program.push(statement(equal, calls.len() - at, *call as u32));
        }
        let refused = libc::SECCOMP_RET_ERRNO | errno as u32;
        for verdict in [libc::SECCOMP_RET_ALLOW, refused] {
            program.push(statement(libc::BPF_RET | libc::BPF_K, 0, verdict));
        }
        Self { program }
    }

    /// Why this kernel has no such filters, if it has none.
    #[must_use]
    pub fn missing() -> Option<String> {
        let actions = "/proc/sys/kernel/seccomp/actions_avail";
        match fs::read_to_string(actions) {
            Ok(words) if words.split_whitespace().any(|word| word == "errno") => None,
            Ok(words) => Some(format!("{actions} has no errno: {}", words.trim())),
            Err(error) => Some(format!("{actions}: {error}")),
        }
    }

    /// Holds for the calling thread, the threads and processes that it starts, and what they execute, from now on and for ever. It makes two system
    /// calls and nothing else, so a child may call it between `fork` and `exec`.
    ///
    /// # Errors
    /// The kernel has no such filters, or a filter that is there already refuses this.
    pub fn install(&self) -> io::Result<()> {
        let filter = libc::sock_fprog {
            len: self.program.len() as u16,
            // The kernel only reads it.
            filter: self.program.as_ptr().cast_mut(),
        };
        let mode = libc::SECCOMP_MODE_FILTER;
        // SAFETY: the filter and its program live during the calls, which concern the calling thread.
        let is_refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) != 0
        };
        if is_refused {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::CallFilter;

    #[test]
    fn a_thread_is_refused_these_calls_and_no_others() {
        if let Some(why) = CallFilter::missing() {
            println!("SKIPPED a filter of system calls: {why}");
            return;
        }
        // SAFETY: these calls have no conditions.
        let ids = || unsafe {
            [libc::SYS_getuid, libc::SYS_getgid, libc::SYS_getppid].map(|call| libc::syscall(call))
        };
        let before = ids();
        let refused = [libc::SYS_getuid, libc::SYS_getppid];
        let there = std::thread::spawn(move || {
            let installed = CallFilter::refusing(&refused, libc::EDOM).install();
            let found = ids();
            (installed, found, std::io::Error::last_os_error())
        });
        let (installed, found, error) = there.join().unwrap();
        installed.unwrap();
        assert_eq!(found, [-1, before[1], -1]);
        assert_eq!(error.raw_os_error(), Some(libc::EDOM));
        assert_eq!(ids(), before, "another thread");
    }
}
