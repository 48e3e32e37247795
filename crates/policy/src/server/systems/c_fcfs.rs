//! One queue for all workers.

use super::assemble::{central, system};
use super::build::entry_without_params;
use super::describe::{Grid, ServerPolicy};
use super::system::System;
use crate::server::controls::Fixed;
use crate::server::disciplines::Fifo;
use crate::server::placements::IdleWorker;
use crate::server::{Central, CentralParts, Shape, locals};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("c-fcfs")
    .summary("one queue for all workers")
    .grids(&[Grid::of(&[])]);

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

entry_without_params!(POLICY, c_fcfs);
