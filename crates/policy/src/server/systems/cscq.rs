//! Cycle stealing with a central queue.

use super::describe::{Promises, ServerPolicy};
use super::ordered::Ordered;
use super::params::LONG;

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("cscq")
        .summary("workers for longs that run shorts while no long waits")
        .paper("CS-CQ, Harchol-Balter et al.")
        .params(&[LONG])
        .promises(Promises {
            work_conserving: false,
            ..Promises::TYPED
        });
    const DISCIPLINE: &'static str = "cscq";
    const PREEMPTION: &'static str = "never";
}
