//! A queue a class, in turn by requests.

use super::describe::{Promises, ServerPolicy};
use super::ordered::Ordered;
use super::params::WEIGHTS;

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("wrr")
        .summary("a queue per class, so many requests of each in turn")
        .params(&[WEIGHTS])
        .promises(Promises::TYPED);
    const DISCIPLINE: &'static str = "wrr";
    const PREEMPTION: &'static str = "never";
}
