//! A queue a class, the same service time for each that waits.

use super::describe::{Grid, Promises, ServerPolicy, Values};
use super::ordered::Ordered;
use super::params::{SIZE, TURN};

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("drr")
        .summary("a queue per class, the same service time for each that waits")
        .paper("Shreedhar and Varghese, 1995")
        .params(&[SIZE, TURN])
        .promises(Promises::TYPED)
        .grids(&[Grid::by_class(&[("size", Values::These(&["profile"]))])]);
    const DISCIPLINE: &'static str = "drr";
    const PREEMPTION: &'static str = "never";
}
