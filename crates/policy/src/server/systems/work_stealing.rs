//! One queue a worker; idle workers steal.

use super::assemble::{Steered, steered};
use super::build::Build;
use super::describe::{Facts, Grid, ServerPolicy, Values};
use super::params::FLOWS;
use super::system::System;
use super::visit::Visit;
use crate::server::Shape;
use crate::server::locals::{StealAmount, Stealing};
use crate::spec::{Param, Params, Reader, SpecError};

/// What it says of itself.
pub const POLICY: ServerPolicy = ServerPolicy::named("work-stealing")
    .summary("one queue per worker; idle workers steal from the others")
    .aliases(&["zygos", "shenango"])
    .paper("ZygOS, SOSP '17; Shenango, NSDI '19")
    .params(&[
        Param::word("steal", &["half", "one"])
            .means("half of the victim's queue, rounded up, or one request")
            .while_serving(),
        FLOWS,
    ])
    .defaults(Facts {
        steals: true,
        ..Facts::STEERED
    })
    .grids(&[Grid::of(&[("steal", Values::These(&["half", "one"]))])]);

/// Work stealing over hashed queues; `flows` as in [`Hashed::new`](crate::server::placements::Hashed::new).
#[must_use]
pub fn work_stealing(shape: &Shape, take: StealAmount, flows: u64) -> System<Steered, Stealing> {
    let locals = (0..shape.workers)
        .map(|worker| Stealing::new(take, shape.seed ^ (worker as u64 + 1).rotate_left(40)))
        .collect();
    steered(POLICY.about.name, shape, flows, locals)
}

pub(super) enum Entry {}

/// How much is stolen, and from how many flows requests come.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    take: StealAmount,
    flows: u64,
}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<Settings, SpecError> {
        let take = match read.word("steal")? {
            "half" => StealAmount::Half,
            _ => StealAmount::One,
        };
        Ok(Settings {
            take,
            flows: read.whole("flows")?,
        })
    }

    fn build<V: Visit>(
        Settings { take, flows }: Settings,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output {
        visitor.visit(System {
            params,
            ..work_stealing(shape, take, flows)
        })
    }
}
