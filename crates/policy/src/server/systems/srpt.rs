//! Least remaining service first.

use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::ordered::Ordered;
use super::params::{CHARGE, SIZE, cost, next, switch};

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("srpt")
        .summary("least remaining service first; what wants less interrupts what wants more")
        .paper("Schrage and Miller, 1966")
        .params(&[SIZE, cost(0), CHARGE, switch(0), next(0)])
        .defaults(Facts {
            preemption: Facts::BY_DISPATCHER,
            keeps_times: false,
            promises: Some(Promises {
                fcfs_in_class: false,
                ..Promises::TYPED
            }),
            ..Facts::CENTRAL
        })
        .grids(&[Grid::by_class(&[
            ("size", Values::These(&["profile"])),
            ("cost", Values::These(&["1us"])),
        ])]);
    const DISCIPLINE: &'static str = "sjf";
    const PREEMPTION: &'static str = "srpt";
}
