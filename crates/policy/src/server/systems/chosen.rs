//! The parts that a spec chooses by name, with what its parameters set: read and checked, not built yet.

use super::darc::DarcParams;
use super::params::{lateness, preemption_costs, quantum_ns, within_slices};
use crate::server::disciplines::{Levels, Reentry, SizeSource};
use crate::server::monitors::Lateness;
use crate::server::{PreemptionCosts, Shape};
use crate::spec::{Reader, SpecError, Value};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A quantum where the policy leaves it to the parts.
const A_QUANTUM_NS: u64 = 5_000;

/// The parts of a system with a dispatcher.
pub(super) struct ChosenParts {
    pub(super) discipline: ChosenDiscipline,
    pub(super) placement: ChosenPlacement,
    pub(super) control: ChosenControl,
    pub(super) monitor: Option<(ChosenMonitor, PreemptionCosts)>,
}

/// Which waiting request is first.
pub(super) enum ChosenDiscipline {
    Fifo,
    Typed,
    Shortest(SizeSource),
    Earliest { slo_means: f64 },
    DeficitRoundRobin { sizes: SizeSource, turn_ns: u64 },
    WeightedRoundRobin { weights: Vec<u32> },
    Mlfq(Levels),
    Gittins,
    MultiQueue { order: ClassOrder, reentry: Reentry },
    CycleStealing { long_part: f64 },
}

/// Which class of several queues is first.
#[derive(Clone, Copy)]
pub(super) enum ClassOrder {
    WaitOverSlo { slo_means: f64 },
    VirtualTime,
}

/// Which worker gets the request.
pub(super) enum ChosenPlacement {
    Idle,
    Reserved,
    Bounded { depth: usize },
    Shortest,
    Choices { draws: usize },
}

/// Which classes may use which workers.
pub(super) enum ChosenControl {
    Open,
    First(usize),
    Partition,
    Darc(DarcParams),
    DarcStable(DarcParams),
}

/// Who is interrupted when.
pub(super) enum ChosenMonitor {
    Quantum { quantum_ns: u64, lateness: Lateness },
    Remaining,
    Deadline { slo_means: f64 },
    Blocked { turn_ns: u64, delay_ns: u64 },
    Levels(Levels),
    Index { quantum_ns: u64 },
}

impl ChosenPlacement {
    pub(super) fn read(name: &str, read: &mut Reader<'_>) -> Result<Self, SpecError> {
        Ok(match name {
            "reserved" => Self::Reserved,
            "jbsq" => Self::Bounded {
                depth: read.whole("k")? as usize,
            },
            "shortest" => Self::Shortest,
            "choices" => Self::Choices {
                draws: read.whole("choices")? as usize,
            },
            "random" => Self::Choices { draws: 1 },
            _ => Self::Idle,
        })
    }
}

impl ChosenDiscipline {
    pub(super) fn read(
        name: &str,
        shape: &Shape,
        read: &mut Reader<'_>,
    ) -> Result<Self, SpecError> {
        Ok(match name {
            "typed" => Self::Typed,
            "sjf" => Self::Shortest(size(read)?),
            "edf" => Self::Earliest {
                slo_means: read.number("slo")?,
            },
            "drr" => Self::DeficitRoundRobin {
                sizes: size(read)?,
                turn_ns: turn_ns(shape, read)?,
            },
            "wrr" => Self::WeightedRoundRobin {
                weights: weights(shape, read)?,
            },
            "mlfq" => Self::Mlfq(levels(read)?),
            "gittins" => Self::Gittins,
            "mq" => multi_queue(read)?,
            "cscq" => cycle_stealing(shape, read)?,
            _ => Self::Fifo,
        })
    }
}

impl ChosenControl {
    pub(super) fn read(name: &str, read: &mut Reader<'_>) -> Result<Self, SpecError> {
        Ok(match name {
            "reserve" => Self::First(read.whole("reserved")? as usize),
            "partition" => Self::Partition,
            "darc" => Self::Darc(DarcParams::read(read)?),
            "darc-stable" => Self::DarcStable(DarcParams::read(read)?),
            _ => Self::Open,
        })
    }
}

impl ChosenMonitor {
    /// With what interrupting costs; `None` where nobody is interrupted.
    pub(super) fn read(
        name: &str,
        read: &mut Reader<'_>,
    ) -> Result<Option<(Self, PreemptionCosts)>, SpecError> {
        let monitor = match name {
            "quantum" => Self::Quantum {
                quantum_ns: quantum_ns(read, A_QUANTUM_NS)?,
                lateness: lateness(read)?,
            },
            "srpt" => Self::Remaining,
            "edf" => Self::Deadline {
                slo_means: read.number("slo")?,
            },
            "on-blocked" => Self::Blocked {
                turn_ns: read.time("q")?,
                delay_ns: read.time("propagation")?,
            },
            "levels" => Self::Levels(levels(read)?),
            "index" => Self::Index {
                quantum_ns: quantum_ns(read, A_QUANTUM_NS)?,
            },
            _ => return Ok(None),
        };
        let cost_ns = if matches!(name, "srpt" | "edf") {
            0
        } else {
            1_000
        };
        let costs = preemption_costs(read, cost_ns)?;
        let costs = match monitor {
            Self::Quantum { quantum_ns, .. } => within_slices(read, "cost", quantum_ns, costs)?,
            _ => costs,
        };
        Ok(Some((monitor, costs)))
    }
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

fn multi_queue(read: &mut Reader<'_>) -> Result<ChosenDiscipline, SpecError> {
    let reentry = match read.word("reentry")? {
        "tail" => Reentry::Tail,
        _ => Reentry::Head,
    };
    let order = match read.word("pick")? {
        "slo" => ClassOrder::WaitOverSlo {
            slo_means: read.number("slo")?,
        },
        _ => ClassOrder::VirtualTime,
    };
    Ok(ChosenDiscipline::MultiQueue { order, reentry })
}

/// Long hosts by the longs' part of the declared demand, unless told.
fn cycle_stealing(shape: &Shape, read: &mut Reader<'_>) -> Result<ChosenDiscipline, SpecError> {
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
    let long_part = hosts as f64 / workers as f64;
    Ok(ChosenDiscipline::CycleStealing { long_part })
}
