//! The kernel's account of a thread's time, from `schedstat`.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The time that a thread ran, and the time that it waited for a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedStat {
    /// Time spent running, in nanoseconds.
    pub running_ns: u64,
    /// Time spent ready while another thread had the core, in nanoseconds.
    pub run_delay_ns: u64,
    /// The number of times that it got a core.
    pub timeslices: u64,
}

impl SchedStat {
    /// The account of a thread of any process.
    ///
    /// # Errors
    ///
    /// When the thread is gone or the kernel was built without `CONFIG_SCHED_INFO`.
    pub fn of_thread(pid: u32, tid: u32) -> io::Result<SchedStat> {
        SchedStat::read(&PathBuf::from(format!("/proc/{pid}/task/{tid}/schedstat")))
    }

    /// The accounts of a process's present threads, added up.
    ///
    /// # Errors
    ///
    /// When the process is gone, or as [`SchedStat::of_thread`].
    pub fn of_threads(pid: u32) -> io::Result<SchedStat> {
        let mut all = SchedStat {
            running_ns: 0,
            run_delay_ns: 0,
            timeslices: 0,
        };
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            // One that ended meanwhile has no account.
            let Ok(one) = SchedStat::read(&thread?.path().join("schedstat")) else {
                continue;
            };
            all.running_ns += one.running_ns;
            all.run_delay_ns += one.run_delay_ns;
            all.timeslices += one.timeslices;
        }
        Ok(all)
    }

    /// The account of the calling thread.
    ///
    /// # Errors
    ///
    /// As [`SchedStat::of_thread`].
    pub fn of_current_thread() -> io::Result<SchedStat> {
        SchedStat::read(Path::new("/proc/thread-self/schedstat"))
    }

    fn read(path: &Path) -> io::Result<SchedStat> {
        let describe = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let text = fs::read_to_string(path)
            .map_err(|error| io::Error::new(error.kind(), describe(&error)))?;
        parse(&text).ok_or_else(|| {
            let what = format!("{text:?} is not three numbers");
            io::Error::new(io::ErrorKind::InvalidData, describe(&what))
        })
    }
}

pub(super) fn parse(text: &str) -> Option<SchedStat> {
    let mut numbers = text
        .split_ascii_whitespace()
        .map(|number| number.parse().ok());
    Some(SchedStat {
        running_ns: numbers.next()??,
        run_delay_ns: numbers.next()??,
        timeslices: numbers.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_an_account() {
        let stat = SchedStat {
            running_ns: 12,
            run_delay_ns: 34,
            timeslices: 5,
        };
        assert_eq!(parse("12 34 5\n"), Some(stat));
        assert_eq!(parse("12 34"), None);
        assert_eq!(parse("12 x 5"), None);
    }

    #[test]
    fn the_calling_thread_has_run() {
        assert!(SchedStat::of_current_thread().unwrap().timeslices >= 1);
        let tid = nix::unistd::gettid().as_raw() as u32;
        assert!(SchedStat::of_thread(std::process::id(), tid).is_ok());
    }

    /// Two threads that want one core: while one runs the other waits.
    #[test]
    fn threads_wait_for_a_core_that_others_use() {
        use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
        use nix::unistd::Pid;
        let own = Pid::from_raw(0);
        let allowed = sched_getaffinity(own).unwrap();
        let first = (0..CpuSet::count()).find(|&cpu| allowed.is_set(cpu).unwrap());
        let mut one = CpuSet::new();
        one.set(first.unwrap()).unwrap();
        let waited_ns = || {
            SchedStat::of_threads(std::process::id())
                .unwrap()
                .run_delay_ns
        };
        let before_ns = waited_ns();
        let begun = std::time::Instant::now();
        let spin = || {
            sched_setaffinity(own, &one).unwrap();
            while waited_ns() < before_ns + 5_000_000 {
                assert!(begun.elapsed().as_secs() < 60);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(spin);
            scope.spawn(spin);
        });
        assert!(SchedStat::of_threads(u32::MAX).is_err());
    }

    #[test]
    fn a_missing_thread_is_named() {
        let error = SchedStat::of_thread(u32::MAX, 1).unwrap_err().to_string();
        assert!(error.contains("/task/1/schedstat"), "{error}");
    }
}
