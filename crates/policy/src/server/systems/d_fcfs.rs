//! One queue a worker; the network steers.

use super::assemble::{Steered, steered};
use super::build::Build;
use super::describe::{Facts, Grid, ServerPolicy};
use super::system::System;
use super::visit::Visit;
use crate::server::{Shape, locals};
use crate::spec::{Description, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "d-fcfs",
        aliases: &["ix", "arrakis"],
        summary: "one queue per worker, requests steered by hash",
        paper: "IX, OSDI '14; Arrakis, OSDI '14",
        params: &[],
    },
    defaults: Facts::STEERED,
    grids: &[Grid::of(&[])],
    ..ServerPolicy::CENTRAL
};

/// d-FCFS: one queue a worker, steered by the flow's hash.
#[must_use]
pub fn d_fcfs(shape: &Shape) -> System<Steered, locals::LocalFifo> {
    let locals = alloc::vec![locals::LocalFifo; shape.workers];
    steered(POLICY.about.name, shape, 0, locals)
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = ();

    fn read(_: &mut Reader<'_>, _: &Shape) -> Result<(), SpecError> {
        Ok(())
    }

    fn build<V: Visit>((): (), _: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(d_fcfs(shape))
    }
}
