//! The client that loads processes on this machine, and its counts of a run.

use headway_load::{Load, LoadReport, Threads};
use serde::Serialize;

use super::rounds::{LATE_NS, Lag};

/// The client's counts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ClientCounts {
    /// Sending delays at the client; a run with too many late requests does not count.
    pub lag: Lag,
    /// Requests sent.
    pub sent: u64,
    /// Requests without an answer.
    pub lost: u64,
    /// Requests that a server or the switch turned away.
    pub shed: u64,
}

impl ClientCounts {
    pub(crate) fn of(report: &LoadReport) -> Self {
        Self {
            lag: Lag::of(&report.lag_ns),
            sent: report.run.meta.requests,
            lost: report.delivery.lost,
            shed: report.statuses.shed + report.statuses.draining,
        }
    }

    /// The losses of several runs in words.
    pub(crate) fn losses<'a>(runs: impl Iterator<Item = &'a Self>) -> String {
        let (mut sent, mut lost, mut shed) = (0, 0, 0);
        for run in runs {
            sent += run.sent;
            lost += run.lost;
            shed += run.shed;
        }
        format!("of {sent} requests {lost} were lost and {shed} shed")
    }
}

/// Sets a load to keep every answer of a single thread, without a warm-up.
pub(crate) fn keep_every_answer(load: &mut Load) {
    load.warm_up = 0.0;
    load.threads = Threads::One;
    load.late_bound_ns = LATE_NS;
    load.keep_answers = true;
}
