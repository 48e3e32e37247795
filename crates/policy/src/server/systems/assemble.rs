//! What several systems have in common: from a shape and parts to a system.

use super::system::{SharedQueues, System};
use crate::BitSet;
use crate::server::controls::{Control, Fixed};
use crate::server::disciplines::{self, Discipline, Typed};
use crate::server::locals;
use crate::server::placements::{Hashed, Placement, Reserved, Workers};
use crate::server::role::Never;
use crate::server::{Central, CentralParts, Jobs, Order, Plan, PreemptionCosts, Shape};
use crate::spec::Params;
use alloc::vec::Vec;

/// Workers that run one request at a time under this ingress.
pub(super) fn system<I, L: Clone>(
    name: &'static str,
    shape: &Shape,
    ingress: I,
    local: L,
) -> System<I, L> {
    let locals = alloc::vec![local; shape.workers];
    System {
        name,
        params: Params::new(),
        ingress,
        locals,
        monitor: Never,
        depth: 1,
        shared_queues: SharedQueues::ONE,
        sheds_first: BitSet::EMPTY,
        preemption_costs: PreemptionCosts::default(),
    }
}

/// Hashed steering: every request goes to its flow's worker at once; the engine's queues bound
/// what waits there, as a network card's do.
pub type Steered = Central<disciplines::Fifo, Hashed, Fixed>;

/// Workers with queues of their own, to which the network steers.
pub(super) fn steered<L>(
    name: &'static str,
    shape: &Shape,
    flows: u64,
    locals: Vec<L>,
) -> System<Steered, L> {
    let parts = CentralParts {
        discipline: disciplines::Fifo::new(usize::MAX),
        placement: Hashed::new(flows, shape.seed),
        control: Fixed::Open,
    };
    let ingress = central(shape, 1, parts);
    System {
        name,
        params: Params::new(),
        ingress,
        locals,
        monitor: Never,
        depth: usize::MAX,
        shared_queues: SharedQueues::ONE,
        sheds_first: BitSet::EMPTY,
        preemption_costs: PreemptionCosts::default(),
    }
}

/// A queue a class, for the workers that the control reserves.
pub(super) fn typed<C: Control>(
    name: &'static str,
    shape: &Shape,
    control: C,
) -> System<Central<Typed, Reserved, C>, locals::LocalFifo> {
    let parts = CentralParts {
        discipline: Typed::new(shape.queues(), shape.queue_limit),
        placement: Reserved,
        control,
    };
    system(name, shape, central(shape, 1, parts), locals::LocalFifo)
}

/// A dispatcher of these parts whose workers hold up to `depth` requests.
pub(super) fn central<D, P, C>(
    shape: &Shape,
    depth: usize,
    parts: CentralParts<D, P, C>,
) -> Central<D, P, C>
where
    D: Discipline,
    P: Placement,
    C: Control,
{
    let plan = Plan::open(
        Order::Rank,
        shape.ascending(),
        BitSet::range(0, shape.workers),
    );
    Central::new(
        Jobs::new(shape.job_capacity),
        Workers::new(shape.workers, depth),
        plan,
        parts,
    )
    .resuming(shape.resume, shape.workers)
}
