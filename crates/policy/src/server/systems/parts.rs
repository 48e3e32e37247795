//! Parts as chosen by name make one system. All such systems share one compiled type that chooses its parts at start-up.

use super::assemble::{central, system};
use super::chosen::{
    ChosenControl, ChosenDiscipline, ChosenMonitor, ChosenParts, ChosenPlacement, ClassOrder,
};
use super::system::System;
use super::visit::Visit;
use crate::BitSet;
use crate::server::controls::{AnyControl, Control, Darc, DarcStable, Fixed, Partition};
use crate::server::disciplines::{
    AnyDiscipline, CycleStealing, Deadlines, DeficitRoundRobin, Discipline, Earliest, Fifo,
    Gittins, Mlfq, MultiQueue, Reentry, Shortest, Sizes, Typed, WeightedRoundRobin,
};
use crate::server::locals;
use crate::server::monitors::{AnyMonitor, Outranked, Overtake, Quantum, Ticks, Urgency};
use crate::server::placements::{
    AnyPlacement, Choices, IdleWorker, Placement, Reserved, ReservedBounded,
};
use crate::server::{Central, CentralParts, Shape};
use crate::spec::Params;

/// The ingress that any parts make.
pub type AnyIngress = Central<AnyDiscipline, AnyPlacement, AnyControl>;

/// A system put together from parts: one that interrupts, or one that runs requests to their end.
#[expect(
    clippy::large_enum_variant,
    reason = "one exists, while a system is put together"
)]
pub(super) enum Composed {
    /// Nobody is interrupted.
    Cooperative(System<AnyIngress, locals::LocalFifo>),
    /// A monitor interrupts.
    Preemptive(System<AnyIngress, locals::LocalFifo, AnyMonitor>),
    /// What is shorter overtakes: SRPT, by far the most simulated of these, is compiled for itself.
    Overtaking(System<Central<Shortest, IdleWorker, Fixed>, locals::LocalFifo, Overtake>),
}

impl Composed {
    /// Hands it to the visitor.
    pub(super) fn visit<V: Visit>(self, visitor: V) -> V::Output {
        match self {
            Self::Cooperative(system) => visitor.visit(system),
            Self::Preemptive(system) => visitor.visit(system),
            Self::Overtaking(system) => visitor.visit(system),
        }
    }
}

impl ChosenParts {
    pub(super) fn assemble(self, name: &'static str, params: Params, shape: &Shape) -> Composed {
        let (placement, depth) = self.placement.make(shape);
        let discipline = self.discipline.make(shape);
        let control = self.control.make(shape);
        let Some((monitor, preemption_costs)) = self.monitor else {
            let parts = CentralParts {
                discipline,
                placement,
                control,
            };
            let system = around(name, shape, depth, parts);
            return Composed::Cooperative(System { params, ..system });
        };
        match (discipline, placement, control, monitor.make(shape)) {
            (
                AnyDiscipline::Shortest(discipline),
                AnyPlacement::Idle(placement),
                AnyControl::Fixed(control),
                AnyMonitor::Overtake(monitor),
            ) => {
                let parts = CentralParts {
                    discipline,
                    placement,
                    control,
                };
                let system = around(name, shape, depth, parts);
                Composed::Overtaking(system.under(monitor, preemption_costs, params))
            }
            (discipline, placement, control, monitor) => {
                let parts = CentralParts {
                    discipline,
                    placement,
                    control,
                };
                let system = around(name, shape, depth, parts);
                Composed::Preemptive(system.under(monitor, preemption_costs, params))
            }
        }
    }
}

/// A system with a dispatcher of these parts that interrupts nobody yet.
fn around<D: Discipline, P: Placement, C: Control>(
    name: &'static str,
    shape: &Shape,
    depth: usize,
    parts: CentralParts<D, P, C>,
) -> System<Central<D, P, C>, locals::LocalFifo> {
    System {
        depth,
        ..system(name, shape, central(shape, depth, parts), locals::LocalFifo)
    }
}

impl ChosenPlacement {
    /// The placement, and how many requests a worker may hold under it.
    fn make(self, shape: &Shape) -> (AnyPlacement, usize) {
        let seed = shape.seed;
        match self {
            Self::Idle => (AnyPlacement::Idle(IdleWorker), 1),
            Self::Reserved => (AnyPlacement::Reserved(Reserved), 1),
            Self::Bounded { depth } => (AnyPlacement::ReservedBounded(ReservedBounded), depth),
            Self::Shortest => {
                let placement = crate::server::placements::ShortestQueue::new(seed);
                (AnyPlacement::Shortest(placement), usize::MAX)
            }
            Self::Choices { draws } => {
                let placement = Choices::new(draws, seed);
                (AnyPlacement::Choices(placement), usize::MAX)
            }
        }
    }
}

impl ChosenDiscipline {
    fn make(self, shape: &Shape) -> AnyDiscipline {
        let (classes, limit) = (shape.queues(), shape.queue_limit);
        match self {
            Self::Fifo => AnyDiscipline::Fifo(Fifo::new(limit)),
            Self::Typed => AnyDiscipline::Typed(Typed::new(classes, limit)),
            Self::Shortest(sizes) => AnyDiscipline::Shortest(Shortest::by_size(sizes, shape)),
            Self::Earliest { slo_means } => {
                let deadlines = Deadlines::new(shape, slo_means);
                AnyDiscipline::Earliest(Earliest::by_deadline(deadlines, shape))
            }
            Self::DeficitRoundRobin { sizes, turn_ns } => {
                let sizes = Sizes::new(sizes, shape);
                let turns = DeficitRoundRobin::new(classes, limit, turn_ns, sizes);
                AnyDiscipline::DeficitRoundRobin(turns)
            }
            Self::WeightedRoundRobin { weights } => {
                AnyDiscipline::WeightedRoundRobin(WeightedRoundRobin::new(weights, limit))
            }
            Self::Mlfq(levels) => AnyDiscipline::Mlfq(Mlfq::new(levels, classes, limit)),
            Self::Gittins => AnyDiscipline::Gittins(Gittins::new(shape)),
            Self::MultiQueue { order, reentry } => {
                AnyDiscipline::MultiQueue(order.queues(shape, reentry))
            }
            Self::CycleStealing { long_part } => {
                let longs = or_unknown(shape.longs(), shape);
                let queue = CycleStealing::new(longs, long_part, shape.workers, classes, limit);
                AnyDiscipline::CycleStealing(queue)
            }
        }
    }
}

impl ClassOrder {
    fn queues(self, shape: &Shape, reentry: Reentry) -> MultiQueue {
        match self {
            Self::WaitOverSlo { slo_means } => {
                MultiQueue::by_wait_over_slo(shape, slo_means, reentry)
            }
            Self::VirtualTime => MultiQueue::by_virtual_time(shape, reentry),
        }
    }
}

impl ChosenControl {
    fn make(self, shape: &Shape) -> AnyControl {
        let classes = shape.classes.len();
        match self {
            Self::Open => AnyControl::Fixed(Fixed::Open),
            Self::First(reserved) => AnyControl::Fixed(Fixed::First(reserved)),
            Self::Partition => AnyControl::Partition(Partition::new(&shape.classes)),
            Self::Darc(params) => {
                let profile = params.profile(shape);
                AnyControl::Darc(Darc::new(classes, params.rules, profile.as_ref()))
            }
            Self::DarcStable(params) => {
                let profile = params.profile(shape);
                AnyControl::DarcStable(DarcStable::new(classes, params.rules, profile.as_ref()))
            }
        }
    }
}

impl ChosenMonitor {
    fn make(self, shape: &Shape) -> AnyMonitor {
        let overtake = |urgency| Overtake::new(urgency, shape.workers);
        match self {
            Self::Quantum {
                quantum_ns,
                lateness,
            } => AnyMonitor::Quantum(Quantum::new(quantum_ns, lateness, shape.seed)),
            Self::Remaining => AnyMonitor::Overtake(overtake(Urgency::Remaining)),
            Self::Deadline { slo_means } => {
                let deadlines = Deadlines::new(shape, slo_means);
                AnyMonitor::Overtake(overtake(Urgency::Deadline(deadlines)))
            }
            // Perséphone § 6: as soon as a short is blocked at the head of the queue, the long that has run longest is
            // told to stop, which takes `delay_ns` to reach it, and joins the tail. It has `turn_ns` of a turn at least.
            Self::Blocked { turn_ns, delay_ns } => {
                let longs = or_unknown(shape.longs(), shape);
                let monitor = overtake(Urgency::Long(longs));
                AnyMonitor::Overtake(monitor.after(turn_ns).delayed(delay_ns))
            }
            Self::Levels(levels) => AnyMonitor::Ticks(Ticks::new(levels, shape.workers)),
            Self::Index { quantum_ns } => {
                AnyMonitor::Outranked(Outranked::new(quantum_ns, shape.workers))
            }
        }
    }
}

/// What nobody recognised may be long.
fn or_unknown(mut longs: BitSet, shape: &Shape) -> BitSet {
    longs.insert(shape.unknown().index());
    longs
}
