//! The earliest deadline first.

use super::describe::{Facts, Grid, Preemption, ServerPolicy};
use super::ordered::{Ordered, Recipe};
use super::params::{CHARGE, SLO, cost, next, switch};
use crate::spec::{Description, Param};

/// What it says of itself, and of which parts it is made.
const RECIPE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "edf",
            aliases: &[],
            summary: "one queue, the earliest deadline first",
            paper: "Liu and Layland, 1973",
            params: &[
                Param::word("preemption", &["never", "edf"])
                    .means("whether an earlier deadline interrupts a later one"),
                SLO,
                cost(0),
                CHARGE,
                switch(0),
                next(0),
            ],
        },
        // Liu and Layland's interrupts at arrivals; Perséphone's Table 5 takes the other for EDF.
        with_params: |facts, given| Facts {
            preemption: match given.word("preemption") {
                "never" => Preemption::None,
                _ => Facts::BY_DISPATCHER,
            },
            keeps_times: given.word("preemption") == "never",
            ..facts
        },
        grids: &[Grid::by_class(&[])],
        ..ServerPolicy::CENTRAL
    },
    discipline: "edf",
    preemption: "never",
};

pub(super) enum Entry {}

impl Ordered for Entry {
    const RECIPE: &'static Recipe = &RECIPE;
}
