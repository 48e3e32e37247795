//! Shortest class first, every worker open to all.

use super::build::entry_without_params;
use super::darc_static;
use super::describe::{Grid, Promises, ServerPolicy};
use super::system::System;
use crate::server::controls::Fixed;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("fixed-priority")
    .summary("typed queues, shortest class first, every worker open to all")
    .paper("Perséphone, SOSP '21, Table 5")
    .promises(Promises::TYPED)
    .grids(&[Grid::by_class(&[])]);

/// Shortest class first; every worker open to all.
#[must_use]
pub fn fixed_priority(shape: &Shape) -> System<Central<Typed, Reserved, Fixed>, locals::LocalFifo> {
    System {
        name: POLICY.about.name,
        ..darc_static(shape, 0)
    }
}

entry_without_params!(POLICY, fixed_priority);
