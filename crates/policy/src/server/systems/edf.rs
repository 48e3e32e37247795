//! The earliest deadline first.

use super::describe::{Facts, Grid, Preemption, Promises, ServerPolicy};
use super::ordered::Ordered;
use super::params::{CHARGE, SLO, cost, next, switch};
use crate::spec::{GivenParams, Param};

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("edf")
        .summary("one queue, the earliest deadline first")
        .paper("Liu and Layland, 1973")
        .params(&[
            Param::word("preemption", &["never", "edf"])
                .means("whether an earlier deadline interrupts a later one"),
            SLO,
            cost(0),
            CHARGE,
            switch(0),
            next(0),
        ])
        .promises(Promises::TYPED)
        .with_params(facts)
        .grids(&[Grid::by_class(&[])]);
    const DISCIPLINE: &'static str = "edf";
    const PREEMPTION: &'static str = "never";
}

/// Liu and Layland's interrupts at arrivals; Perséphone's Table 5 takes the other for EDF.
fn facts(facts: Facts, given: &GivenParams<'_>) -> Facts {
    Facts {
        preemption: match given.word("preemption") {
            "never" => Preemption::None,
            _ => Facts::BY_DISPATCHER,
        },
        keeps_times: given.word("preemption") == "never",
        ..facts
    }
}
