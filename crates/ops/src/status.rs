//! The fields of a status. They are stable: `docs/json.md` lists them.

use serde::{Deserialize, Serialize};

use headway_machine::histogram::TimeHistogram;

/// `kind` of a pool's status.
pub const POOL: &str = "pool";
/// `kind` of a server's status.
pub const SERVER: &str = "server";

/// Times in µs, read from a histogram; null before the first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TimesStatus {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_us: Option<f64>,
    /// Half of them take at most this.
    pub p50_us: Option<f64>,
    /// 99 of 100 take at most this.
    pub p99_us: Option<f64>,
    /// 999 of 1 000 take at most this.
    pub p999_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
}

impl From<&TimeHistogram> for TimesStatus {
    fn from(times: &TimeHistogram) -> Self {
        let quantile_us = |part| times.quantile_ns(part).map(|ns| ns as f64 / 1e3);
        Self {
            count: times.count(),
            mean_us: times.mean_ns().map(|ns| ns / 1e3),
            p50_us: quantile_us(0.5),
            p99_us: quantile_us(0.99),
            p999_us: quantile_us(0.999),
            max_us: times.max_ns().map(|ns| ns as f64 / 1e3),
        }
    }
}

/// A class of a pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolClassStatus {
    /// Its name.
    pub class: String,
    /// Jobs accepted.
    pub submitted: u64,
    /// Jobs that returned.
    pub done: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// Jobs cancelled.
    pub cancelled: u64,
    /// Jobs shed since a shorter class needed room.
    pub shed_for_room: u64,
    /// Jobs shed since they did not begin in time.
    pub shed_too_late: u64,
    /// Jobs that waited when the pool ended.
    pub abandoned: u64,
    /// Jobs not accepted.
    pub refused: u64,
    /// Jobs that wait for a worker.
    pub queued: usize,
    /// Jobs that run, or were interrupted.
    pub running: usize,
    /// Futures that wait to be woken.
    pub asleep: usize,
    /// The mean service time learnt, µs.
    pub mean_us: f64,
    /// Slices begun.
    pub slices: u64,
    /// Interruptions that the policy asked for.
    pub asked: u64,
    /// Those at which the job made way.
    pub preempted: u64,
    /// Slices that ran on for long past their end without a probe.
    pub stalls: u64,
    /// The longest time past a slice's end without a probe, µs.
    pub longest_gap_us: f64,
    /// Times from submission, or from a future's wake, to the first slice.
    pub wait: TimesStatus,
    /// Service times.
    pub service: TimesStatus,
}

/// A pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolStatus {
    /// [`POOL`].
    pub kind: String,
    /// The process.
    pub pid: u32,
    /// Of Headway.
    pub version: String,
    /// The pool's name.
    pub name: String,
    /// The policy's name.
    pub policy: String,
    /// The policy with the parameters that it was given.
    pub spec: String,
    /// Who is the dispatcher: `inline` or `dedicated`.
    pub layout: String,
    /// Jobs that run at a time.
    pub workers: usize,
    /// Threads, those that block included.
    pub threads: usize,
    /// Threads whose job left its worker to block, until the job ends.
    pub blocked: usize,
    /// Blocking sections that kept their worker.
    pub blocked_in_place: u64,
    /// How long it has been there, s.
    pub uptime_s: f64,
    /// Slices that ended with the job interrupted.
    pub interruptions: u64,
    /// Interrupted jobs that went on in threads of their own.
    pub rescued: u64,
    /// Jobs for which there was no fiber.
    pub without_fiber: u64,
    /// By class.
    pub classes: Vec<PoolClassStatus>,
}
