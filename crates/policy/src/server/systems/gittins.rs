//! The least service for a completion first.

use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::ordered::Ordered;
use super::params::{CHARGE, cost, next, quantum, switch};

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("gittins")
        .summary("who promises a completion for the least service first, by what is learnt of its class and what it has had")
        .paper("Gittins, 1979")
        .params(&[
            quantum(5_000).while_serving(),
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
    const DISCIPLINE: &'static str = "gittins";
    const PREEMPTION: &'static str = "index";
}
