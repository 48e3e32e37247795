//! One queue a worker; the network steers.

use super::{Description, Facts, Grid, ServerPolicy, Steered, System, Visit, steered};
use crate::spec::{Reader, Spec, SpecError};
use crate::{Shape, locals};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
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
pub fn d_fcfs(shape: &Shape) -> System<Steered, locals::Fifo> {
    let locals = alloc::vec![locals::Fifo; shape.workers];
    steered(POLICY.about.name, shape, 0, locals)
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Reader::new(&POLICY.about, spec)?;
    Ok(visitor.visit(d_fcfs(shape)))
}
