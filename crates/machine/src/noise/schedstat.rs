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

    #[test]
    fn a_missing_thread_is_named() {
        let error = SchedStat::of_thread(u32::MAX, 1).unwrap_err().to_string();
        assert!(error.contains("/task/1/schedstat"), "{error}");
    }
}
