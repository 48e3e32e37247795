//! Tardis: one global queue taken in batches, stealing, each worker its own timer.

use super::build::{Build, read_settings};
use super::describe::{Facts, Grid, Preemption, ServerPolicy, Values};
use super::params::{CHARGE, cost, interruption, quantum, quantum_ns, within_slices};
use super::system::{SharedQueues, System};
use super::visit::Visit;
use crate::BitSet;
use crate::server::locals::Batches;
use crate::server::role::{Never, Owner, Unplaced};
use crate::server::{PreemptionCosts, Shape};
use crate::spec::{Param, Params, Reader, Spec, SpecError};

/// What it says of itself. The interrupt is a hardware timer delivered to user space; `cost` is that
/// of a user interrupt's delivery and return (SYNERGY, Table 5.1).
const POLICY: ServerPolicy = ServerPolicy::named("tardis")
    .summary("one global queue taken in batches, stealing, each worker its own timer")
    .paper("Tardis")
    .params(&[
        Param::whole("n", 4, 1, 1024)
            .in_units("requests")
            .means("requests that a worker takes from the global queue at once"),
        quantum(5_000),
        cost(509),
        CHARGE,
    ])
    .defaults(Facts {
        owner: Owner::Nobody,
        preemption: Preemption::BySlices,
        steals: true,
        ..Facts::STEERED
    })
    .grids(&[Grid::of(&[
        ("n", Values::These(&["1", "4"])),
        ("q", Values::Quanta),
    ])]);

/// Tardis: workers take batches of `n` from one global queue, steal, and are interrupted by
/// timers of their own.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn tardis(shape: &Shape, spec: &Spec) -> Result<System<Unplaced, Batches>, SpecError> {
    let (settings, params) = read_settings::<Entry>(spec, shape)?;
    Ok(assembled(settings, params, shape))
}

/// Batches and slices.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    batch: usize,
    slice_ns: u64,
    preemption_costs: PreemptionCosts,
}

fn assembled(settings: Settings, params: Params, shape: &Shape) -> System<Unplaced, Batches> {
    System {
        name: POLICY.about.name,
        params,
        ingress: Unplaced,
        locals: (0..shape.workers as u64)
            .map(|me: u64| {
                let seed = shape.seed ^ (me + 1).rotate_left(40);
                Batches::new(settings.batch, settings.slice_ns, seed)
            })
            .collect(),
        monitor: Never,
        depth: usize::MAX,
        shared_queues: SharedQueues::ONE,
        sheds_first: BitSet::EMPTY,
        preemption_costs: settings.preemption_costs,
    }
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<Settings, SpecError> {
        let batch = read.whole("n")? as usize;
        let slice_ns = quantum_ns(read, 0)?;
        let costs = interruption(read)?;
        Ok(Settings {
            batch,
            slice_ns,
            preemption_costs: within_slices(read, "cost", slice_ns, costs)?,
        })
    }

    fn build<V: Visit>(settings: Settings, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(assembled(settings, params, shape))
    }
}
