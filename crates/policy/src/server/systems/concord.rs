//! Concord: bounded queues, a flag instead of interrupts, a dispatcher that also works (SOSP '23).

use super::assemble::{central, system};
use super::build::{Build, read_settings};
use super::describe::{Facts, Grid, ServerPolicy, Values};
use super::params::{
    CHARGE, K, LATE, SIGMA, any_time, charge, lateness, next, quantum, quantum_ns, switch,
    within_slices,
};
use super::replicas::Replicas;
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::SplitFifo;
use crate::server::monitors::{Lateness, Quantum};
use crate::server::placements::Bounded;
use crate::server::{CentralParts, MAX_WORKERS, PreemptionCosts, Shape, Working, locals};
use crate::spec::{Param, Params, Reader, Spec, SpecError};

/// What it says of itself. Costs are the paper's: 150 cycles to notice the flag, 100 ns to switch, 400 cycles to wait for
/// the dispatcher (§ 2.2, § 3).
const POLICY: ServerPolicy = ServerPolicy::named("concord")
    .summary("bounded queues, interruption by a flag, a dispatcher that also works")
    .paper("Concord, SOSP '23")
    .params(&[
        K,
        quantum(5_000).while_serving(),
        any_time("notif", 58).means("what noticing the flag takes of the worker"),
        switch(100),
        next(154),
        CHARGE,
        SIGMA,
        LATE,
        Param::word("dispatcher", &["works", "dedicated"])
            .means("whether the dispatcher runs requests while all workers have enough"),
        Param::whole(DISPATCHERS, 1, 1, MAX_WORKERS as u64)
            .in_units("dispatchers")
            .at_most("the number of workers")
            .means("each feeds workers of its own (§ 6)"),
    ])
    .defaults(Facts {
        preemption: Facts::BY_DISPATCHER,
        depth: 2,
        dispatchers_work: true,
        ..Facts::CENTRAL
    })
    .with_params(|facts, given| Facts {
        depth: given.whole("k") as usize,
        dispatchers: given.whole(DISPATCHERS) as usize,
        dispatchers_work: given.word("dispatcher") == "works",
        ..facts
    })
    .grids(&[
        // A dispatcher that works is one worker more: that comparison would not be fair.
        Grid::of(&[
            ("dispatcher", Values::These(&["dedicated"])),
            ("q", Values::Quanta),
        ]),
        // § 6: where one dispatcher is the bottleneck, several with workers of their own.
        Grid::of(&[
            ("dispatcher", Values::These(&["dedicated"])),
            (DISPATCHERS, Values::Dispatchers),
            ("q", Values::Quanta),
        ]),
    ]);

const DISPATCHERS: &str = "dispatchers";

/// Concord's ingress.
pub type Concord = Working<SplitFifo, Bounded, Fixed>;

/// Concord: JBSQ(k), a flag instead of interrupts, a dispatcher that works when all queues are
/// full, or several dispatchers with workers of their own (§ 6).
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range, or there are more dispatchers than workers.
pub fn concord(
    shape: &Shape,
    spec: &Spec,
) -> Result<Replicas<Concord, locals::LocalFifo, Quantum>, SpecError> {
    let (settings, params) = read_settings::<Entry>(spec, shape)?;
    Ok(assembled(&settings, &params, shape))
}

/// Queues, quantum and dispatchers.
pub(super) struct Settings {
    depth: usize,
    quantum_ns: u64,
    preemption_costs: PreemptionCosts,
    lateness: Lateness,
    /// How long the dispatcher runs a request at a time, ns; 0 for a dispatcher that runs none.
    own_slice_ns: u64,
    dispatchers: usize,
}

impl Settings {
    fn read(read: &mut Reader<'_>, shape: &Shape) -> Result<Self, SpecError> {
        let depth = read.whole("k")? as usize;
        let quantum_ns = quantum_ns(read, 0)?;
        let preemption_costs = PreemptionCosts {
            notif_ns: read.time("notif")?,
            switch_ns: read.time("switch")?,
            next_ns: read.time("next")?,
            charge: charge(read)?,
            ..PreemptionCosts::default()
        };
        Ok(Self {
            depth,
            quantum_ns,
            preemption_costs: within_slices(read, "notif", quantum_ns, preemption_costs)?,
            lateness: lateness(read)?,
            own_slice_ns: match read.word("dispatcher")? {
                "works" => quantum_ns,
                _ => 0,
            },
            dispatchers: dispatchers(read, shape)?,
        })
    }
}

fn dispatchers(read: &mut Reader<'_>, shape: &Shape) -> Result<usize, SpecError> {
    let dispatchers = read.whole(DISPATCHERS)? as usize;
    if dispatchers > shape.workers {
        return Err(read.wrong_text(DISPATCHERS));
    }
    Ok(dispatchers)
}

fn assembled(
    settings: &Settings,
    params: &Params,
    shape: &Shape,
) -> Replicas<Concord, locals::LocalFifo, Quantum> {
    Replicas::new(settings.dispatchers, shape, |shape| {
        let depth = settings.depth;
        let parts = CentralParts {
            discipline: SplitFifo::new(shape.queue_limit),
            placement: Bounded,
            control: Fixed::Open,
        };
        let ingress = central(shape, depth, parts);
        let ingress = Working::new(ingress, settings.own_slice_ns);
        let base = System {
            depth,
            ..system(POLICY.about.name, shape, ingress, locals::LocalFifo)
        };
        let monitor = Quantum::new(settings.quantum_ns, settings.lateness.clone(), shape.seed);
        base.under(monitor, settings.preemption_costs, params.clone())
    })
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, shape: &Shape) -> Result<Settings, SpecError> {
        Settings::read(read, shape)
    }

    fn build<V: Visit>(settings: Settings, params: Params, shape: &Shape, visitor: V) -> V::Output {
        assembled(&settings, &params, shape).visit(visitor)
    }
}
