//! The shortest request first.

use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::ordered::{Ordered, Recipe};
use super::params::SIZE;
use crate::spec::Description;

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "sjf",
            aliases: &[],
            summary: "one queue, the shortest request first",
            paper: "",
            params: &[SIZE],
        },
        defaults: Facts {
            promises: Some(Promises {
                fcfs_in_class: false,
                ..Promises::SINGLE_QUEUE
            }),
            ..Facts::CENTRAL
        },
        grids: &[
            // Nobody knows a request's own size beforehand; what its class takes on average one can learn.
            Grid::by_class(&[("size", Values::These(&["profile"]))]),
        ],
        ..ServerPolicy::CENTRAL
    },
    discipline: "sjf",
    preemption: "never",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
