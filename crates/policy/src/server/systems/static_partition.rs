//! Every class has workers of its own.

use super::assemble::typed;
use super::build::entry_without_params;
use super::describe::{Grid, Promises, ServerPolicy};
use super::system::System;
use crate::server::controls::Partition;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("static-partition")
    .summary("every class has workers of its own, by declared demand")
    .paper("Perséphone, SOSP '21, Table 5")
    .promises(Promises::RESERVING)
    .grids(&[Grid::by_class(&[])]);

/// Every class on workers of its own.
#[must_use]
pub fn static_partition(
    shape: &Shape,
) -> System<Central<Typed, Reserved, Partition>, locals::LocalFifo> {
    typed(POLICY.about.name, shape, Partition::new(&shape.classes))
}

entry_without_params!(POLICY, static_partition);
