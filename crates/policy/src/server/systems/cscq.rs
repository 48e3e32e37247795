//! Cycle stealing with a central queue.

use super::describe::{Facts, Promises, ServerPolicy};
use super::ordered::{Ordered, Recipe};
use super::params::LONG;
use crate::spec::Description;

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "cscq",
            aliases: &[],
            summary: "workers for longs that run shorts while no long waits",
            paper: "CS-CQ, Harchol-Balter et al.",
            params: &[LONG],
        },
        defaults: Facts {
            promises: Some(Promises {
                work_conserving: false,
                ..Promises::SINGLE_QUEUE
            }),
            ..Facts::CENTRAL
        },
        ..ServerPolicy::CENTRAL
    },
    discipline: "cscq",
    preemption: "never",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
