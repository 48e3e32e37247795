//! Shinjuku: a quantum that the dispatcher watches, over a single queue or one a class.

use super::assemble::{central, system};
use super::build::{Build, read_settings};
use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::ordered::Ordered;
use super::params::{
    CHARGE, LATE, PICK, REENTRY, SIGMA, SLO, cost, lateness, next, preemption_costs, quantum,
    quantum_ns, switch, within_slices,
};
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::Fifo;
use crate::server::monitors::{Lateness, Quantum};
use crate::server::placements::IdleWorker;
use crate::server::{Central, CentralParts, PreemptionCosts, Shape, locals};
use crate::spec::{Params, Reader, Spec, SpecError};

const INTERRUPTED: Facts = Facts {
    preemption: Facts::BY_DISPATCHER,
    ..Facts::CENTRAL
};

/// The single queue, by interrupts: `cost` is 1 µs as in Perséphone's simulations.
const SINGLE_QUEUE: ServerPolicy = ServerPolicy::named("shinjuku-sq")
    .summary("one queue, requests interrupted at the end of a quantum join its tail")
    .paper("Shinjuku, NSDI '19")
    .params(&[
        quantum(5_000).while_serving(),
        cost(1_000),
        CHARGE,
        switch(0),
        next(0),
        SIGMA,
        LATE,
    ])
    .defaults(INTERRUPTED)
    .grids(&[Grid::of(&[("q", Values::Quanta)])]);

/// The single queue with Concord's probes instead of interrupts (SYNERGY § 6.2): the flag costs about 150 cycles
/// (Concord § 3.1), 58 ns.
const BY_PROBES: ServerPolicy = SINGLE_QUEUE
    .called("shinjuku-ci")
    .summary("the same, interrupted by probes that the compiler put in")
    .paper("SYNERGY § 6.2")
    .params(&[
        quantum(5_000).while_serving(),
        cost(58),
        CHARGE,
        switch(0),
        next(0),
        SIGMA,
        LATE,
    ]);

/// A single queue whose quantum the dispatcher watches; what it interrupts joins the tail.
pub type Shinjuku = Central<Fifo, IdleWorker, Fixed>;

/// Shinjuku's single queue, by interrupts.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn shinjuku_sq(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::LocalFifo, Quantum>, SpecError> {
    let (settings, params) = read_settings::<SingleQueue>(spec, shape)?;
    Ok(assembled(&SINGLE_QUEUE, settings, params, shape))
}

/// Shinjuku's single queue, by probes.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn shinjuku_ci(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::LocalFifo, Quantum>, SpecError> {
    let (settings, params) = read_settings::<ByProbes>(spec, shape)?;
    Ok(assembled(&BY_PROBES, settings, params, shape))
}

/// The quantum, how late it comes and what it costs.
pub(super) struct Settings {
    quantum_ns: u64,
    preemption_costs: PreemptionCosts,
    lateness: Lateness,
}

impl Settings {
    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let quantum_ns = quantum_ns(read, 0)?;
        let costs = preemption_costs(read, 0)?;
        Ok(Self {
            quantum_ns,
            preemption_costs: within_slices(read, "cost", quantum_ns, costs)?,
            lateness: lateness(read)?,
        })
    }
}

fn assembled(
    policy: &ServerPolicy,
    settings: Settings,
    params: Params,
    shape: &Shape,
) -> System<Shinjuku, locals::LocalFifo, Quantum> {
    let monitor = Quantum::new(settings.quantum_ns, settings.lateness, shape.seed);
    let parts = CentralParts {
        discipline: Fifo::new(shape.queue_limit),
        placement: IdleWorker,
        control: Fixed::Open,
    };
    let ingress = central(shape, 1, parts);
    let base = system(policy.about.name, shape, ingress, locals::LocalFifo);
    base.under(monitor, settings.preemption_costs, params)
}

pub(super) enum SingleQueue {}

impl Build for SingleQueue {
    const POLICY: &'static ServerPolicy = &SINGLE_QUEUE;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<Settings, SpecError> {
        Settings::read(read)
    }

    fn build<V: Visit>(settings: Settings, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(assembled(Self::POLICY, settings, params, shape))
    }
}

pub(super) enum ByProbes {}

impl Build for ByProbes {
    const POLICY: &'static ServerPolicy = &BY_PROBES;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<Settings, SpecError> {
        Settings::read(read)
    }

    fn build<V: Visit>(settings: Settings, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(assembled(Self::POLICY, settings, params, shape))
    }
}

pub(super) enum MultiQueueEntry {}

impl Ordered for MultiQueueEntry {
    const POLICY: ServerPolicy = ServerPolicy::named("shinjuku-mq")
        .summary("a queue per class, the longest wait for its SLO first, a quantum")
        .paper("Shinjuku, NSDI '19")
        .params(&[
            quantum(5_000).while_serving(),
            PICK,
            SLO,
            REENTRY,
            SIGMA,
            LATE,
            cost(1_000),
            CHARGE,
            switch(0),
            next(0),
        ])
        .defaults(Facts {
            promises: Some(Promises::TYPED),
            ..INTERRUPTED
        })
        .grids(&[Grid::by_class(&[("q", Values::Quanta)])]);
    const DISCIPLINE: &'static str = "mq";
    const PREEMPTION: &'static str = "quantum";
}
