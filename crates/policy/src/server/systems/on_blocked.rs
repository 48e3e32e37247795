//! A short that is blocked at the head interrupts a long.

use super::describe::{Facts, ServerPolicy};
use super::ordered::{Ordered, Recipe};
use super::params::{CHARGE, PROPAGATION, any_time, cost, next, switch};
use crate::spec::Description;

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "on-blocked",
            aliases: &[],
            summary: "one queue; a short at its head interrupts a long, which joins the tail",
            paper: "Perséphone, SOSP '21, § 6",
            params: &[
                any_time("q", 0)
                    .means("what a long is left of a turn at least")
                    .while_serving(),
                PROPAGATION,
                cost(1_000),
                CHARGE,
                switch(0),
                next(0),
            ],
        },
        defaults: Facts {
            preemption: Facts::BY_DISPATCHER,
            keeps_times: false,
            ..Facts::CENTRAL
        },
        ..ServerPolicy::CENTRAL
    },
    discipline: "fifo",
    preemption: "on-blocked",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
