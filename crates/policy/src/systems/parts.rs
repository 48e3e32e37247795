//! Parts by name. Systems made of them share one compiled type that chooses its parts at start-up.

use super::darc::known;
use super::params::{lateness, preemption_costs, quantum_ns};
use super::{DarcParams, System, Visit, central, system};
use crate::controls::{AnyControl, Control, Darc, DarcStable, Fixed, Partition};
use crate::disciplines::{
    AnyDiscipline, CycleStealing, Deadlines, DeficitRoundRobin, Discipline, Earliest, Fifo, Levels,
    Mlfq, MultiQueue, Reentry, Shortest, SizeSource, Sizes, Typed, WeightedRoundRobin,
};
use crate::locals;
use crate::monitors::{AnyMonitor, Overtake, Quantum, Ticks, Urgency};
use crate::placements::{AnyPlacement, Choices, Idle, Placement, Reserved, ReservedBounded};
use crate::spec::{Params, Reader, SpecError, Value};
use crate::{BitSet, Central, PreemptionCosts, Shape};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A quantum where the policy leaves it to the parts.
const A_QUANTUM_NS: u64 = 5_000;

/// The ingress that any parts make.
pub type AnyIngress = Central<AnyDiscipline, AnyPlacement, AnyControl>;

/// A system put together from parts: one that interrupts, or one that runs requests to their end.
#[expect(
    clippy::large_enum_variant,
    reason = "one exists, while a system is put together"
)]
pub enum Composed {
    /// Nobody is interrupted.
    Cooperative(System<AnyIngress, locals::Fifo>),
    /// A monitor interrupts.
    Preemptive(System<AnyIngress, locals::Fifo, AnyMonitor>),
    /// What is shorter overtakes: SRPT, by far the most simulated of these, is compiled for itself.
    Overtaking(System<Central<Shortest, Idle, Fixed>, locals::Fifo, Overtake>),
}

impl Composed {
    /// Hands it to the visitor.
    pub fn visit<V: Visit>(self, visitor: V) -> V::Output {
        match self {
            Self::Cooperative(system) => visitor.visit(system),
            Self::Preemptive(system) => visitor.visit(system),
            Self::Overtaking(system) => visitor.visit(system),
        }
    }

    /// The system, whichever it is, with the parameters it was built with.
    pub(super) fn used(self, params: Params) -> Self {
        match self {
            Self::Cooperative(system) => Self::Cooperative(System { params, ..system }),
            Self::Preemptive(system) => Self::Preemptive(System { params, ..system }),
            Self::Overtaking(system) => Self::Overtaking(System { params, ..system }),
        }
    }
}

/// The parts of a system with a dispatcher.
pub(super) struct Parts {
    pub(super) discipline: AnyDiscipline,
    pub(super) placement: AnyPlacement,
    pub(super) control: AnyControl,
    /// Requests a worker may hold, the running one included.
    pub(super) depth: usize,
    pub(super) monitor: Option<(AnyMonitor, PreemptionCosts)>,
}

impl Parts {
    /// A single stage: an idle worker takes what the discipline offers.
    pub(super) fn idle(discipline: AnyDiscipline) -> Self {
        Self {
            discipline,
            placement: AnyPlacement::Idle(Idle),
            control: AnyControl::Fixed(Fixed::Open),
            depth: 1,
            monitor: None,
        }
    }

    pub(super) fn assemble(self, name: &'static str, shape: &Shape) -> Composed {
        let depth = self.depth;
        let none = Params::new();
        match (self.discipline, self.placement, self.control, self.monitor) {
            (
                AnyDiscipline::Shortest(discipline),
                AnyPlacement::Idle(placement),
                AnyControl::Fixed(control),
                Some((AnyMonitor::Overtake(monitor), costs)),
            ) => {
                let system = around(name, shape, depth, (discipline, placement, control));
                Composed::Overtaking(system.under(monitor, costs, none))
            }
            (discipline, placement, control, Some((monitor, costs))) => {
                let system = around(name, shape, depth, (discipline, placement, control));
                Composed::Preemptive(system.under(monitor, costs, none))
            }
            (discipline, placement, control, None) => {
                let parts = (discipline, placement, control);
                Composed::Cooperative(around(name, shape, depth, parts))
            }
        }
    }
}

/// A system with a dispatcher of these parts that interrupts nobody yet.
fn around<D: Discipline, P: Placement, C: Control>(
    name: &'static str,
    shape: &Shape,
    depth: usize,
    parts: (D, P, C),
) -> System<Central<D, P, C>, locals::Fifo> {
    System {
        depth,
        ..system(name, shape, central(shape, depth, parts), locals::Fifo)
    }
}

pub(super) fn placement(
    name: &str,
    shape: &Shape,
    read: &mut Reader<'_>,
) -> Result<(AnyPlacement, usize), SpecError> {
    let seed = shape.seed;
    Ok(match name {
        "reserved" => (AnyPlacement::Reserved(Reserved), 1),
        "jbsq" => {
            let depth = read.whole("k")?;
            let placement = AnyPlacement::ReservedBounded(ReservedBounded);
            (placement, depth as usize)
        }
        "shortest" => {
            let placement = crate::placements::Shortest::new(seed);
            (AnyPlacement::Shortest(placement), usize::MAX)
        }
        "choices" => {
            let draws = read.whole("choices")?;
            let placement = Choices::new(draws as usize, seed);
            (AnyPlacement::Choices(placement), usize::MAX)
        }
        "random" => (AnyPlacement::Choices(Choices::new(1, seed)), usize::MAX),
        _ => (AnyPlacement::Idle(Idle), 1),
    })
}

pub(super) fn discipline(
    name: &str,
    shape: &Shape,
    read: &mut Reader<'_>,
) -> Result<AnyDiscipline, SpecError> {
    let (classes, limit) = (shape.queues(), shape.queue_limit);
    Ok(match name {
        "typed" => AnyDiscipline::Typed(Typed::new(classes, limit)),
        "sjf" => AnyDiscipline::Shortest(Shortest::by_size(size(read)?, shape)),
        "edf" => {
            let deadlines = Deadlines::new(shape, read.number("slo")?);
            AnyDiscipline::Earliest(Earliest::by_deadline(deadlines, shape))
        }
        "drr" => {
            let sizes = Sizes::new(size(read)?, shape);
            let quantum_ns = turn_ns(shape, read)?;
            AnyDiscipline::DeficitRoundRobin(DeficitRoundRobin::new(
                classes, limit, quantum_ns, sizes,
            ))
        }
        "wrr" => {
            let weights = weights(shape, read)?;
            AnyDiscipline::WeightedRoundRobin(WeightedRoundRobin::new(weights, limit))
        }
        "mlfq" => AnyDiscipline::Mlfq(Mlfq::new(levels(read)?, limit)),
        "mq" => AnyDiscipline::MultiQueue(multi_queue(shape, read)?),
        "cscq" => AnyDiscipline::CycleStealing(cycle_stealing(shape, read)?),
        _ => AnyDiscipline::Fifo(Fifo::new(limit)),
    })
}

pub(super) fn control(
    name: &str,
    shape: &Shape,
    read: &mut Reader<'_>,
) -> Result<AnyControl, SpecError> {
    let classes = shape.classes.len();
    Ok(match name {
        "reserve" => {
            let reserved = read.whole("reserved")?;
            AnyControl::Fixed(Fixed::First(reserved as usize))
        }
        "partition" => AnyControl::Partition(Partition::new(&shape.classes)),
        "darc" | "darc-stable" => {
            let params = DarcParams::read(read)?;
            let known = params.known.then(|| known(shape));
            match name {
                "darc" => AnyControl::Darc(Darc::new(classes, params.rules, known.as_ref())),
                _ => AnyControl::DarcStable(DarcStable::new(classes, params.rules, known.as_ref())),
            }
        }
        _ => AnyControl::Fixed(Fixed::Open),
    })
}

pub(super) fn monitor(
    name: &str,
    shape: &Shape,
    read: &mut Reader<'_>,
) -> Result<Option<(AnyMonitor, PreemptionCosts)>, SpecError> {
    let overtake = |urgency| AnyMonitor::Overtake(Overtake::new(urgency, shape.workers));
    let monitor = match name {
        "quantum" => {
            let quantum_ns = quantum_ns(read, A_QUANTUM_NS)?;
            AnyMonitor::Quantum(Quantum::new(quantum_ns, lateness(read)?, shape.seed))
        }
        "srpt" => overtake(Urgency::Remaining),
        "edf" => overtake(Urgency::Deadline(Deadlines::new(
            shape,
            read.number("slo")?,
        ))),
        "on-blocked" => AnyMonitor::Overtake(on_blocked(shape, read)?),
        "levels" => AnyMonitor::Ticks(Ticks::new(levels(read)?, shape.workers)),
        _ => return Ok(None),
    };
    let cost_ns = if matches!(name, "srpt" | "edf") {
        0
    } else {
        1_000
    };
    Ok(Some((monitor, preemption_costs(read, cost_ns)?)))
}

fn size(read: &mut Reader<'_>) -> Result<SizeSource, SpecError> {
    Ok(match read.word("size")? {
        "known" => SizeSource::Known,
        _ => SizeSource::Profile,
    })
}

/// Service time of a turn of deficit round robin; by default the longest class's mean, so that
/// nobody waits for a second turn.
fn turn_ns(shape: &Shape, read: &mut Reader<'_>) -> Result<u64, SpecError> {
    let means = shape.classes.iter().map(|hint| hint.mean_ns as u64);
    let longest_ns = means.max().filter(|&ns| ns > 0).unwrap_or(1_000);
    read.time_or("quantum", longest_ns)
}

/// Requests per turn of each declared class, `3/1`; one each by default, and of UNKNOWN.
fn weights(shape: &Shape, read: &mut Reader<'_>) -> Result<Vec<u32>, SpecError> {
    let classes = shape.classes.len();
    let mut weights = alloc::vec![1; shape.queues()];
    let text = read.text("weights");
    if !text.is_empty() {
        let given: Result<Vec<u32>, _> = text.split('/').map(str::parse).collect();
        match given {
            // Without classes there is nothing to hold it against: the grammar alone is checked.
            Ok(given) if !given.contains(&0) && (given.len() == classes || classes == 0) => {
                weights[..classes].copy_from_slice(&given[..classes]);
            }
            _ => return Err(read.wrong_text("weights")),
        }
    }
    let each: Vec<String> = weights[..classes].iter().map(u32::to_string).collect();
    read.note("weights", Value::Text(each.join("/")));
    Ok(weights)
}

fn levels(read: &mut Reader<'_>) -> Result<Levels, SpecError> {
    Ok(Levels {
        quantum_ns: quantum_ns(read, A_QUANTUM_NS)?,
        count: read.whole("levels")? as usize,
    })
}

fn multi_queue(shape: &Shape, read: &mut Reader<'_>) -> Result<MultiQueue, SpecError> {
    let reentry = match read.word("reentry")? {
        "tail" => Reentry::Tail,
        _ => Reentry::Head,
    };
    Ok(match read.word("pick")? {
        "slo" => MultiQueue::by_wait_over_slo(shape, read.number("slo")?, reentry),
        _ => MultiQueue::by_virtual_time(shape, reentry),
    })
}

/// Long hosts by the longs' part of the declared demand, unless told.
fn cycle_stealing(shape: &Shape, read: &mut Reader<'_>) -> Result<CycleStealing, SpecError> {
    let (workers, longs) = (shape.workers, shape.longs());
    let demand = |long: Option<bool>| -> f64 {
        let classes = shape.classes.iter().enumerate();
        let counted =
            classes.filter(|(class, _)| long.is_none_or(|is| longs.contains(*class) == is));
        counted.map(|(_, hint)| hint.mean_ns * hint.share).sum()
    };
    let part = demand(Some(true)) / demand(None).max(f64::MIN_POSITIVE);
    let wanted = (part * workers as f64 + 0.5) as u64;
    let default = wanted.clamp(1, (workers as u64 - 1).max(1));
    let hosts = read.whole_or("long", default)?;
    let part = hosts as f64 / workers as f64;
    Ok(CycleStealing::new(
        or_unknown(longs, shape),
        part,
        workers,
        shape.queue_limit,
    ))
}

/// What nobody recognised may be long.
fn or_unknown(mut longs: BitSet, shape: &Shape) -> BitSet {
    longs.insert(shape.unknown().index());
    longs
}

/// Perséphone § 6: as soon as a short is blocked at the head of the queue, whichever long has run
/// longest is told to stop, which takes `propagation` to reach it, and joins the tail. `q` leaves
/// it that much of a turn at least.
fn on_blocked(shape: &Shape, read: &mut Reader<'_>) -> Result<Overtake, SpecError> {
    let longs = or_unknown(shape.longs(), shape);
    let monitor = Overtake::new(Urgency::Long(longs), shape.workers);
    Ok(monitor
        .after(read.time("q")?)
        .delayed(read.time("propagation")?))
}
