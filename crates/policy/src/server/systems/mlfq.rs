//! Levels by the service received so far.

use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::ordered::Ordered;
use super::params::{CHARGE, LEVELS, cost, next, quantum, switch};

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("mlfq")
        .summary("levels by the service received so far, the lowest first, a tick to interrupt by")
        .params(&[
            quantum(5_000).while_serving(),
            LEVELS,
            cost(1_000),
            CHARGE,
            switch(0),
            next(0),
        ])
        .defaults(Facts {
            preemption: Facts::BY_DISPATCHER,
            promises: Some(Promises::TYPED),
            ..Facts::CENTRAL
        })
        .grids(&[Grid::of(&[("q", Values::Quanta)])]);
    const DISCIPLINE: &'static str = "mlfq";
    const PREEMPTION: &'static str = "levels";
}
