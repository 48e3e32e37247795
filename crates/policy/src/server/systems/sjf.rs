//! The shortest request first.

use super::describe::{Grid, Promises, ServerPolicy, Values};
use super::ordered::Ordered;
use super::params::SIZE;

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("sjf")
        .summary("one queue, the shortest request first")
        .params(&[SIZE])
        .promises(Promises {
            fcfs_in_class: false,
            ..Promises::TYPED
        })
        .grids(&[
            // Nobody knows a request's own size beforehand; what its class takes on average one can learn.
            Grid::by_class(&[("size", Values::These(&["profile"]))]),
        ]);
    const DISCIPLINE: &'static str = "sjf";
    const PREEMPTION: &'static str = "never";
}
