//! One queue for all workers.

use super::assemble::{central, system};
use super::build::Build;
use super::describe::{Grid, ServerPolicy};
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::Fifo;
use crate::server::placements::IdleWorker;
use crate::server::{Central, CentralParts, Shape, locals};
use crate::spec::{Description, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "c-fcfs",
        aliases: &[],
        summary: "one queue for all workers",
        paper: "",
        params: &[],
    },
    grids: &[Grid::of(&[])],
    ..ServerPolicy::CENTRAL
};

/// c-FCFS: one queue, any idle worker.
#[must_use]
pub fn c_fcfs(shape: &Shape) -> System<Central<Fifo, IdleWorker, Fixed>, locals::LocalFifo> {
    let parts = CentralParts {
        discipline: Fifo::new(shape.queue_limit),
        placement: IdleWorker,
        control: Fixed::Open,
    };
    let ingress = central(shape, 1, parts);
    system(POLICY.about.name, shape, ingress, locals::LocalFifo)
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = ();

    fn read(_: &mut Reader<'_>, _: &Shape) -> Result<(), SpecError> {
        Ok(())
    }

    fn build<V: Visit>((): (), _: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(c_fcfs(shape))
    }
}
