//! Shortest class first, every worker open to all.

use super::build::Build;
use super::darc_static;
use super::describe::{Facts, Grid, Promises, ServerPolicy};
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};
use crate::spec::{Description, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy {
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
pub fn fixed_priority(shape: &Shape) -> System<Central<Typed, Reserved, Fixed>, locals::LocalFifo> {
    System {
        name: POLICY.about.name,
        ..darc_static(shape, 0)
    }
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = ();

    fn read(_: &mut Reader<'_>, _: &Shape) -> Result<(), SpecError> {
        Ok(())
    }

    fn build<V: Visit>((): (), _: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(fixed_priority(shape))
    }
}
