//! One queue for all workers.

use super::{Description, Grid, ServerPolicy, System, Visit, central, system};
use crate::controls::Fixed;
use crate::disciplines::Fifo;
use crate::placements::Idle;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, Shape, locals};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
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

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Reader::new(&POLICY.about, spec)?;
    Ok(visitor.visit(c_fcfs(shape)))
}
