//! A queue a class, in turn by requests.

use super::describe::{Facts, Promises, ServerPolicy};
use super::ordered::{Ordered, Recipe};
use super::params::WEIGHTS;
use crate::spec::Description;

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "wrr",
            aliases: &[],
            summary: "a queue per class, so many requests of each in turn",
            paper: "",
            params: &[WEIGHTS],
        },
        defaults: Facts {
            promises: Some(Promises::TYPED),
            ..Facts::CENTRAL
        },
        ..ServerPolicy::CENTRAL
    },
    discipline: "wrr",
    preemption: "never",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
