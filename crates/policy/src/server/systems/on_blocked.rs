//! A short that is blocked at the head interrupts a long.

use super::describe::{Facts, ServerPolicy};
use super::ordered::Ordered;
use super::params::{CHARGE, PROPAGATION, any_time, cost, next, switch};

pub(super) enum Entry {}

impl Ordered for Entry {
    const POLICY: ServerPolicy = ServerPolicy::named("on-blocked")
        .summary("one queue; a short at its head interrupts a long, which joins the tail")
        .paper("Perséphone, SOSP '21, § 6")
        .params(&[
            any_time("q", 0)
                .means("what a long is left of a turn at least")
                .while_serving(),
            PROPAGATION,
            cost(1_000),
            CHARGE,
            switch(0),
            next(0),
        ])
        .defaults(Facts {
            preemption: Facts::BY_DISPATCHER,
            keeps_times: false,
            ..Facts::CENTRAL
        });
    const DISCIPLINE: &'static str = "fifo";
    const PREEMPTION: &'static str = "on-blocked";
}
