//! Concord: bounded queues, a flag instead of interrupts, a dispatcher that also works (SOSP '23).

use super::params::{
    CHARGE, K, LATE, SIGMA, any_time, charge, lateness, next, quantum, quantum_ns, switch,
};
use super::{
    Description, Facts, Grid, Replicas, ServerPolicy, System, Values, Visit, central, system,
};
use crate::controls::Fixed;
use crate::disciplines::SplitFifo;
use crate::monitors::Quantum;
use crate::placements::Bounded;
use crate::spec::{Param, Reader, Spec, SpecError};
use crate::{MAX_WORKERS, PreemptionCosts, Shape, Working, locals};

/// What it says of itself. Costs are the paper's: 150 cycles to notice the flag, 100 ns to switch, 400 cycles to wait for
/// the dispatcher (§ 2.2, § 3).
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "concord",
        aliases: &[],
        summary: "bounded queues, interruption by a flag, a dispatcher that also works",
        paper: "Concord, SOSP '23",
        params: &[
            K,
            quantum(5_000),
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
        ],
    },
    defaults: Facts {
        preemption: Facts::BY_DISPATCHER,
        depth: 2,
        dispatchers_work: true,
        ..Facts::CENTRAL
    },
    with_params: |facts, given| Facts {
        depth: given.whole("k") as usize,
        dispatchers: given.whole(DISPATCHERS) as usize,
        dispatchers_work: given.word("dispatcher") == "works",
        ..facts
    },
    grids: &[
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
    ],
    ..ServerPolicy::CENTRAL
};

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
) -> Result<Replicas<Concord, locals::Fifo, Quantum>, SpecError> {
    let mut read = Reader::new(&POLICY.about, spec)?;
    let depth = read.whole("k")? as usize;
    let quantum_ns = quantum_ns(&mut read, 0)?;
    let costs = PreemptionCosts {
        notif_ns: read.time("notif")?,
        switch_ns: read.time("switch")?,
        next_ns: read.time("next")?,
        charge: charge(&mut read)?,
        ..PreemptionCosts::default()
    };
    let lateness = lateness(&mut read)?;
    let slice_ns = match read.word("dispatcher")? {
        "works" => quantum_ns,
        _ => 0,
    };
    let dispatchers = read.whole(DISPATCHERS)? as usize;
    if dispatchers > shape.workers {
        return Err(read.wrong_text(DISPATCHERS));
    }
    let params = read.used();
    Ok(Replicas::new(dispatchers, shape, |shape| {
        let fifo = SplitFifo::new(shape.queue_limit);
        let ingress = central(shape, depth, (fifo, Bounded, Fixed::Open));
        let ingress = Working::new(ingress, slice_ns);
        let base = System {
            depth,
            ..system(POLICY.about.name, shape, ingress, locals::Fifo)
        };
        let monitor = Quantum::new(quantum_ns, lateness.clone(), shape.seed);
        base.under(monitor, costs, params.clone())
    }))
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(concord(shape, spec)?.visit(visitor))
}
