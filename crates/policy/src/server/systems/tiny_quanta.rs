//! Tiny Quanta: the shortest queue at once, each worker goes round its own.

use super::assemble::{central, system};
use super::build::{Build, read_settings};
use super::describe::{Facts, Grid, Preemption, ServerPolicy, Values};
use super::params::{CHARGE, cost, interruption, quantum, quantum_ns, within_slices};
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::Fifo;
use crate::server::locals::RoundRobin;
use crate::server::placements::ShortestQueue;
use crate::server::role::Never;
use crate::server::{Central, CentralParts, PreemptionCosts, Shape};
use crate::spec::{Params, Reader, Spec, SpecError};

/// What it says of itself. A switch takes 100 ns as Concord's does.
const POLICY: ServerPolicy = ServerPolicy::named("tiny-quanta")
    .summary("shortest queue at once, each worker goes round its own")
    .paper("Tiny Quanta, ASPLOS '24")
    .params(&[quantum(2_000).while_serving(), cost(100), CHARGE])
    .defaults(Facts {
        preemption: Preemption::BySlices,
        depth: DEEP,
        ..Facts::CENTRAL
    })
    .grids(&[Grid::of(&[("q", Values::Quanta)])]);

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
) -> Result<System<Central<Fifo, ShortestQueue, Fixed>, RoundRobin>, SpecError> {
    let (settings, params) = read_settings::<Entry>(spec, shape)?;
    Ok(assembled(settings, params, shape))
}

/// Slices and their cost.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    slice_ns: u64,
    preemption_costs: PreemptionCosts,
}

fn assembled(
    settings: Settings,
    params: Params,
    shape: &Shape,
) -> System<Central<Fifo, ShortestQueue, Fixed>, RoundRobin> {
    let parts = CentralParts {
        discipline: Fifo::new(shape.queue_limit),
        placement: ShortestQueue::new(shape.seed),
        control: Fixed::Open,
    };
    let ingress = central(shape, DEEP, parts);
    let local = RoundRobin::new(settings.slice_ns);
    let base = System {
        depth: DEEP,
        ..system(POLICY.about.name, shape, ingress, local)
    };
    base.under(Never, settings.preemption_costs, params)
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<Settings, SpecError> {
        let slice_ns = quantum_ns(read, 0)?;
        let costs = interruption(read)?;
        Ok(Settings {
            slice_ns,
            preemption_costs: within_slices(read, "cost", slice_ns, costs)?,
        })
    }

    fn build<V: Visit>(settings: Settings, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(assembled(settings, params, shape))
    }
}
