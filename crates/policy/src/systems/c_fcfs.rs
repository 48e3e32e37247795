//! One queue for all workers.

use super::{Build, Description, Grid, ServerPolicy, System, Visit, central, system};
use crate::controls::Fixed;
use crate::disciplines::Fifo;
use crate::placements::Idle;
use crate::spec::{Params, Reader, SpecError};
use crate::{Central, Shape, locals};

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
pub fn c_fcfs(shape: &Shape) -> System<Central<Fifo, Idle, Fixed>, locals::Fifo> {
    let ingress = central(shape, 1, (Fifo::new(shape.queue_limit), Idle, Fixed::Open));
    system(POLICY.about.name, shape, ingress, locals::Fifo)
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
