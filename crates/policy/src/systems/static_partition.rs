//! Every class has workers of its own.

use super::{Description, Facts, Grid, Promises, ServerPolicy, System, Visit, typed};
use crate::controls::Partition;
use crate::disciplines::Typed;
use crate::placements::Reserved;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, Shape, locals};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
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
) -> System<Central<Typed, Reserved, Partition>, locals::Fifo> {
    typed(POLICY.about.name, shape, Partition::new(&shape.classes))
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Reader::new(&POLICY.about, spec)?;
    Ok(visitor.visit(static_partition(shape)))
}
