//! Cycle stealing with a central queue.

use super::ordered::Recipe;
use super::params::LONG;
use super::{Description, Facts, Promises, ServerPolicy};

/// What it says of itself, and of which parts it is made.
pub(super) const RECIPE: Recipe = Recipe {
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
