//! A queue a class, the same service time for each that waits.

use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::ordered::{Ordered, Recipe};
use super::params::{SIZE, TURN};
use crate::spec::Description;

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "drr",
            aliases: &[],
            summary: "a queue per class, the same service time for each that waits",
            paper: "Shreedhar and Varghese, 1995",
            params: &[SIZE, TURN],
        },
        defaults: Facts {
            promises: Some(Promises::TYPED),
            ..Facts::CENTRAL
        },
        grids: &[Grid::by_class(&[("size", Values::These(&["profile"]))])],
        ..ServerPolicy::CENTRAL
    },
    discipline: "drr",
    preemption: "never",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
