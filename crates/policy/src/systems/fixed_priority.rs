//! Shortest class first, every worker open to all.

use super::{Description, Facts, Grid, Promises, ServerPolicy, System, Visit, darc_static};
use crate::controls::Fixed;
use crate::disciplines::Typed;
use crate::placements::Reserved;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, Shape, locals};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "fixed-priority",
        aliases: &[],
        summary: "typed queues, shortest class first, every worker open to all",
        paper: "Perséphone, SOSP '21, Table 5",
        params: &[],
    },
    defaults: Facts {
        promises: Some(Promises::TYPED),
        ..Facts::CENTRAL
    },
    grids: &[Grid::by_class(&[])],
    ..ServerPolicy::CENTRAL
};

/// Shortest class first; every worker open to all.
#[must_use]
pub fn fixed_priority(shape: &Shape) -> System<Central<Typed, Reserved, Fixed>, locals::Fifo> {
    System {
        name: POLICY.about.name,
        ..darc_static(shape, 0)
    }
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Reader::new(&POLICY.about, spec)?;
    Ok(visitor.visit(fixed_priority(shape)))
}
