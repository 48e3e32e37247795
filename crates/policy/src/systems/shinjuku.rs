//! Shinjuku: a quantum that the dispatcher watches, over a single queue or one a class.

use super::ordered::Recipe;
use super::params::{
    CHARGE, LATE, PICK, REENTRY, SIGMA, SLO, cost, lateness, next, preemption_costs, quantum,
    quantum_ns, switch,
};
use super::{
    Description, Facts, Grid, Promises, ServerPolicy, System, Values, Visit, central, system,
};
use crate::controls::Fixed;
use crate::disciplines::Fifo;
use crate::monitors::Quantum;
use crate::placements::Idle;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, Shape, locals};

const INTERRUPTED: Facts = Facts {
    preemption: Facts::BY_DISPATCHER,
    ..Facts::CENTRAL
};

/// The single queue, by interrupts: `cost` is 1 µs as in Perséphone's simulations.
pub(super) const SINGLE_QUEUE: ServerPolicy = ServerPolicy {
    about: Description {
        name: "shinjuku-sq",
        aliases: &[],
        summary: "one queue, requests interrupted at the end of a quantum join its tail",
        paper: "Shinjuku, NSDI '19",
        params: &[
            quantum(5_000),
            cost(1_000),
            CHARGE,
            switch(0),
            next(0),
            SIGMA,
            LATE,
        ],
    },
    defaults: INTERRUPTED,
    grids: &[Grid::of(&[("q", Values::Quanta)])],
    ..ServerPolicy::CENTRAL
};

/// The single queue with Concord's probes instead of interrupts (SYNERGY § 6.2): the flag costs about 150 cycles
/// (Concord § 3.1), 58 ns.
pub(super) const BY_PROBES: ServerPolicy = ServerPolicy {
    about: Description {
        name: "shinjuku-ci",
        summary: "the same, interrupted by probes that the compiler put in",
        paper: "SYNERGY § 6.2",
        params: &[
            quantum(5_000),
            cost(58),
            CHARGE,
            switch(0),
            next(0),
            SIGMA,
            LATE,
        ],
        ..SINGLE_QUEUE.about
    },
    ..SINGLE_QUEUE
};

/// A queue a class.
pub(super) const MULTI_QUEUE: Recipe = Recipe {
    policy: ServerPolicy {
        about: Description {
            name: "shinjuku-mq",
            aliases: &[],
            summary: "a queue per class, the longest wait for its SLO first, a quantum",
            paper: "Shinjuku, NSDI '19",
            params: &[
                quantum(5_000),
                PICK,
                SLO,
                REENTRY,
                SIGMA,
                LATE,
                cost(1_000),
                CHARGE,
                switch(0),
                next(0),
            ],
        },
        defaults: Facts {
            promises: Some(Promises::TYPED),
            ..INTERRUPTED
        },
        grids: &[Grid::by_class(&[("q", Values::Quanta)])],
        ..ServerPolicy::CENTRAL
    },
    discipline: "mq",
    preemption: "quantum",
};

/// A single queue whose quantum the dispatcher watches; what it interrupts joins the tail.
pub type Shinjuku = Central<Fifo, Idle, Fixed>;

/// Shinjuku's single queue, by interrupts.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn shinjuku_sq(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::Fifo, Quantum>, SpecError> {
    shinjuku(&SINGLE_QUEUE.about, shape, spec)
}

/// Shinjuku's single queue, by probes.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn shinjuku_ci(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::Fifo, Quantum>, SpecError> {
    shinjuku(&BY_PROBES.about, shape, spec)
}

fn shinjuku(
    about: &'static Description,
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::Fifo, Quantum>, SpecError> {
    let mut read = Reader::new(about, spec)?;
    let quantum_ns = quantum_ns(&mut read, 0)?;
    let costs = preemption_costs(&mut read, 0)?;
    let monitor = Quantum::new(quantum_ns, lateness(&mut read)?, shape.seed);
    let fifo = Fifo::new(shape.queue_limit);
    let ingress = central(shape, 1, (fifo, Idle, Fixed::Open));
    let base = system(about.name, shape, ingress, locals::Fifo);
    Ok(base.under(monitor, costs, read.used()))
}

pub(super) fn build_sq<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(visitor.visit(shinjuku_sq(shape, spec)?))
}

pub(super) fn build_ci<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(visitor.visit(shinjuku_ci(shape, spec)?))
}
