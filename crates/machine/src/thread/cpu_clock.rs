//! How long a thread has had a core, read by itself or by another thread.

use nix::time::{ClockId, clock_gettime};

/// The kernel's number of the clock of a thread's processor time: of a thread, and of the time that it was scheduled
/// (`include/linux/posix-timers_types.h`).
const PER_THREAD_SCHEDULED: i32 = 0b110;

/// A thread's processor time. It stands still while the thread waits for a core, sleeps, or is stopped.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock(ClockId);

impl CpuClock {
    /// The calling thread's.
    #[must_use]
    pub fn of_current() -> Self {
        let thread = nix::unistd::gettid().as_raw();
        Self(ClockId::from_raw(!thread << 3 | PER_THREAD_SCHEDULED))
    }

    /// The time that the thread has had a core, ns; `None` once it has ended, or where the system keeps no such account. A system call.
    #[must_use]
    pub fn read_ns(self) -> Option<u64> {
        let time = clock_gettime(self.0).ok()?;
        let (s, ns) = (u64::try_from(time.tv_sec()).ok()?, time.tv_nsec() as u64);
        Some(s * 1_000_000_000 + ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn another_threads_time_grows_while_it_computes_and_stands_still_while_it_sleeps() {
        let (clock, of_thread) = mpsc::channel();
        let (go_on, sleeps) = mpsc::channel::<()>();
        let (rests, resting) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let own = CpuClock::of_current();
            let begun_ns = own.read_ns().unwrap();
            let limit = Instant::now() + Duration::from_secs(60);
            while own.read_ns().unwrap() < begun_ns + 1_000_000 && Instant::now() < limit {}
            clock.send((own, begun_ns)).unwrap();
            rests.send(()).unwrap();
            let _ = sleeps.recv();
        });
        let (clock, begun_ns) = of_thread.recv().unwrap();
        resting.recv().unwrap();
        assert!(clock.read_ns().unwrap() >= begun_ns + 1_000_000);
        // It may yet have to go to sleep: its time stands still from some reading on.
        let limit = Instant::now() + Duration::from_secs(60);
        let stands_still = || {
            let before = clock.read_ns();
            std::thread::sleep(Duration::from_millis(2));
            before == clock.read_ns()
        };
        while !stands_still() {
            assert!(Instant::now() < limit, "it sleeps and has a core");
        }
        go_on.send(()).unwrap();
        thread.join().unwrap();
        // The kernel may need a moment to forget the thread.
        while clock.read_ns().is_some() {
            assert!(Instant::now() < limit, "an ended thread has no time");
        }
    }
}
