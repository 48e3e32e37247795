//! Tiny Quanta: the shortest queue at once, each worker goes round its own.

use super::params::{CHARGE, charge, cost, quantum, quantum_ns};
use super::{
    Description, Facts, Grid, Preemption, ServerPolicy, System, Values, Visit, central, system,
};
use crate::controls::Fixed;
use crate::disciplines::Fifo;
use crate::locals::RoundRobin;
use crate::placements::Shortest;
use crate::role::Never;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, PreemptionCosts, Shape};

/// What it says of itself. A switch takes 100 ns as Concord's does.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "tiny-quanta",
        aliases: &[],
        summary: "shortest queue at once, each worker goes round its own",
        paper: "Tiny Quanta, ASPLOS '24",
        params: &[quantum(2_000), cost(100), CHARGE],
    },
    defaults: Facts {
        preemption: Preemption::BySlices,
        depth: DEEP,
        ..Facts::CENTRAL
    },
    grids: &[Grid::of(&[("q", Values::Quanta)])],
    ..ServerPolicy::CENTRAL
};

/// Requests one worker may hold where its queue is in effect unbounded.
const DEEP: usize = 4096;

/// Tiny Quanta: the queue with the fewest requests at once, ties at random; each worker goes
/// round its own requests and interrupts itself.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn tiny_quanta(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Central<Fifo, Shortest, Fixed>, RoundRobin>, SpecError> {
    let mut read = Reader::new(&POLICY.about, spec)?;
    let slice_ns = quantum_ns(&mut read, 0)?;
    let costs = PreemptionCosts {
        notif_ns: read.time("cost")?,
        charge: charge(&mut read)?,
        ..PreemptionCosts::default()
    };
    let parts = (
        Fifo::new(shape.queue_limit),
        Shortest::new(shape.seed),
        Fixed::Open,
    );
    let ingress = central(shape, DEEP, parts);
    let base = System {
        depth: DEEP,
        ..system(POLICY.about.name, shape, ingress, RoundRobin::new(slice_ns))
    };
    Ok(base.under(Never, costs, read.used()))
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(visitor.visit(tiny_quanta(shape, spec)?))
}
