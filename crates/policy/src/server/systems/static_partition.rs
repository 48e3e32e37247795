//! Every class has workers of its own.

use super::assemble::typed;
use super::build::Build;
use super::describe::{Facts, Grid, Promises, ServerPolicy};
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Partition;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};
use crate::spec::{Description, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "static-partition",
        aliases: &[],
        summary: "every class has workers of its own, by declared demand",
        paper: "Perséphone, SOSP '21, Table 5",
        params: &[],
    },
    defaults: Facts {
        promises: Some(Promises::RESERVING),
        ..Facts::CENTRAL
    },
    grids: &[Grid::by_class(&[])],
    ..ServerPolicy::CENTRAL
};

/// Every class on workers of its own.
#[must_use]
pub fn static_partition(
    shape: &Shape,
) -> System<Central<Typed, Reserved, Partition>, locals::LocalFifo> {
    typed(POLICY.about.name, shape, Partition::new(&shape.classes))
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = ();

    fn read(_: &mut Reader<'_>, _: &Shape) -> Result<(), SpecError> {
        Ok(())
    }

    fn build<V: Visit>((): (), _: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(static_partition(shape))
    }
}
