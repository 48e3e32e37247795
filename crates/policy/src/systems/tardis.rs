//! Tardis: one global queue taken in batches, stealing, each worker its own timer.

use super::params::{CHARGE, charge, cost, quantum, quantum_ns};
use super::{
    Description, Engines, Facts, Grid, Preemption, ServerPolicy, SharedQueues, System, Values,
    Visit,
};
use crate::locals::Batches;
use crate::role::{Never, Owner, Unplaced};
use crate::spec::{Param, Reader, Spec, SpecError};
use crate::{PreemptionCosts, Shape};

/// What it says of itself. The interrupt is a hardware timer delivered to user space; `cost` is that
/// of a user interrupt's delivery and return (SYNERGY, Table 5.1).
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "tardis",
        aliases: &[],
        summary: "one global queue taken in batches, stealing, each worker its own timer",
        paper: "Tardis",
        params: &[
            Param::whole("n", 4, 1, 1024)
                .in_units("requests")
                .means("requests that a worker takes from the global queue at once"),
            quantum(5_000),
            cost(509),
            CHARGE,
        ],
    },
    defaults: Facts {
        owner: Owner::Nobody,
        preemption: Preemption::BySlices,
        steals: true,
        ..Facts::STEERED
    },
    engines: Engines::Simulator,
    grids: &[Grid::of(&[
        ("n", Values::These(&["1", "4"])),
        ("q", Values::Quanta),
    ])],
    ..ServerPolicy::CENTRAL
};

/// Tardis: workers take batches of `n` from one global queue, steal, and are interrupted by
/// timers of their own.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn tardis(shape: &Shape, spec: &Spec) -> Result<System<Unplaced, Batches>, SpecError> {
    let mut read = Reader::new(&POLICY.about, spec)?;
    let batch = read.whole("n")? as usize;
    let slice_ns = quantum_ns(&mut read, 0)?;
    let costs = PreemptionCosts {
        notif_ns: read.time("cost")?,
        charge: charge(&mut read)?,
        ..PreemptionCosts::default()
    };
    let worker = |me: u64| Batches::new(batch, slice_ns, shape.seed ^ (me + 1).rotate_left(40));
    Ok(System {
        name: POLICY.about.name,
        params: read.used(),
        ingress: Unplaced,
        locals: (0..shape.workers as u64).map(worker).collect(),
        monitor: Never,
        depth: usize::MAX,
        shared_queues: SharedQueues::ONE,
        preemption_costs: costs,
    })
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(visitor.visit(tardis(shape, spec)?))
}
