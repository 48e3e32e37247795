//! DARC with a reservation made by hand.

use super::assemble::typed;
use super::build::Build;
use super::describe::{Grid, Promises, ServerPolicy, Values};
use super::params::RESERVED;
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};
use crate::spec::{Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("darc-static")
    .summary("typed queues, workers reserved for the shortest class by hand")
    .paper("Perséphone, SOSP '21, § 5.3")
    .params(&[RESERVED])
    .promises(Promises::RESERVING)
    .grids(&[Grid::by_class(&[("reserved", Values::Workers)])]);

/// `reserved` workers kept for the shortest class.
#[must_use]
pub fn darc_static(
    shape: &Shape,
    reserved: usize,
) -> System<Central<Typed, Reserved, Fixed>, locals::LocalFifo> {
    typed(POLICY.about.name, shape, Fixed::First(reserved))
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = usize;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<usize, SpecError> {
        Ok(read.whole("reserved")? as usize)
    }

    fn build<V: Visit>(reserved: usize, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(System {
            params,
            ..darc_static(shape, reserved)
        })
    }
}
