//! DARC with a reservation made by hand.

use super::params::RESERVED;
use super::{Description, Facts, Grid, Promises, ServerPolicy, System, Values, Visit, typed};
use crate::controls::Fixed;
use crate::disciplines::Typed;
use crate::placements::Reserved;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, Shape, locals};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "darc-static",
        aliases: &[],
        summary: "typed queues, workers reserved for the shortest class by hand",
        paper: "Perséphone, SOSP '21, § 5.3",
        params: &[RESERVED],
    },
    defaults: Facts {
        promises: Some(Promises::RESERVING),
        ..Facts::CENTRAL
    },
    grids: &[Grid::by_class(&[("reserved", Values::Workers)])],
    ..ServerPolicy::CENTRAL
};

/// `reserved` workers kept for the shortest class.
#[must_use]
pub fn darc_static(
    shape: &Shape,
    reserved: usize,
) -> System<Central<Typed, Reserved, Fixed>, locals::Fifo> {
    typed(POLICY.about.name, shape, Fixed::First(reserved))
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    let mut read = Reader::new(&POLICY.about, spec)?;
    let reserved = read.whole("reserved")? as usize;
    Ok(visitor.visit(darc_static(shape, reserved).used(read)))
}
