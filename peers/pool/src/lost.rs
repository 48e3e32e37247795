//! How much of the machine others had while something was measured.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use headway_machine::thread::give_way;

use crate::system::{cpu_ns, ticks_per_s};

/// A look at the machine's processors and at this process's own time.
pub(crate) struct MachineLook {
    at: Instant,
    busy_ns: f64,
    own_ns: u64,
    cores: usize,
}

impl MachineLook {
    /// # Errors
    /// When `/proc/stat` says nothing about processors.
    pub(crate) fn take() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        let ticks = busy_ticks(&text).context("/proc/stat has no line of all processors")?;
        Ok(Self {
            at: Instant::now(),
            busy_ns: ticks as f64 * 1e9 / ticks_per_s() as f64,
            own_ns: cpu_ns(),
            cores: text.lines().filter(|line| is_core(line)).count(),
        })
    }

    /// The part of all processors' time since then that other processes had, or that the hypervisor took; to one tick of the kernel's.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn others_since(&self) -> Result<f64> {
        let now = Self::take()?;
        let own_ns = (now.own_ns - self.own_ns) as f64;
        let all_ns = (now.at - self.at).as_nanos() as f64 * self.cores as f64;
        Ok(((now.busy_ns - self.busy_ns - own_ns) / all_ns).clamp(0.0, 1.0))
    }
}

/// The part of so many processors that the machine gives to as many threads of this nice value that compute, seen for so long.
pub(crate) fn given_to(threads: usize, nice: u8, span: Duration) -> f64 {
    let (from, before_ns) = (Instant::now(), cpu_ns());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // A thread may always be nicer than it is.
                let _ = give_way(nice);
                while from.elapsed() < span {
                    std::hint::spin_loop();
                }
            });
        }
    });
    let given_ns = (cpu_ns() - before_ns) as f64;
    (given_ns / (from.elapsed().as_nanos() as f64 * threads as f64)).min(1.0)
}

fn is_core(line: &str) -> bool {
    let after = line.strip_prefix("cpu");
    after.is_some_and(|after| after.starts_with(|first: char| first.is_ascii_digit()))
}

/// Ticks of all processors that were not idle: user, nice, system, interrupts and what was stolen.
fn busy_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _io, interrupts, soft, stolen, ..] = ticks[..] else {
        return None;
    };
    Some(user + nice + system + interrupts + soft + stolen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_a_processor_waits_is_not_busy() {
        let stat = "cpu  1 2 3 400 500 6 7 8 0 0\ncpu0 1 2 3 400 500 6 7 8 0 0\nintr 5\n";
        assert_eq!(busy_ticks(stat), Some(1 + 2 + 3 + 6 + 7 + 8));
        assert_eq!(stat.lines().filter(|line| is_core(line)).count(), 1);
        assert_eq!(busy_ticks("intr 5\n"), None);
    }
}
