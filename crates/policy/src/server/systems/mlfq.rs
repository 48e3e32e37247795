//! Levels by the service received so far.

use super::describe::{Facts, Grid, ServerPolicy, Values};
use super::ordered::{Ordered, Recipe};
use super::params::{CHARGE, LEVELS, cost, next, quantum, switch};
use crate::spec::Description;

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "mlfq",
            aliases: &[],
            summary: "levels by the service received so far, the lowest first, a tick to interrupt by",
            paper: "",
            params: &[
                quantum(5_000).while_serving(),
                LEVELS,
                cost(1_000),
                CHARGE,
                switch(0),
                next(0),
            ],
        },
        defaults: Facts {
            preemption: Facts::BY_DISPATCHER,
            ..Facts::CENTRAL
        },
        grids: &[Grid::of(&[("q", Values::Quanta)])],
        ..ServerPolicy::CENTRAL
    },
    discipline: "mlfq",
    preemption: "levels",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
