//! SYNERGY: no dispatcher; longs are interrupted only for what waits at their worker.

use super::assemble::{Steered, steered};
use super::build::{Build, read_settings};
use super::describe::{Facts, Grid, Preemption, ServerPolicy, Values};
use super::params::{CHARGE, FLOWS, any_time, cost, interruption, quantum, quantum_ns};
use super::system::{SharedQueues, System};
use super::visit::Visit;
use crate::BitSet;
use crate::server::lengths::Lengths;
use crate::server::locals::{SynergyWorker, WorkerRules};
use crate::server::monitors::{MOST_WAIT_QUEUES, TimerCore, TimerRules};
use crate::server::{PreemptionCosts, Shape, WorkerId};
use crate::spec::{Param, Params, Reader, Spec, SpecError, Value};
use alloc::string::ToString;
use alloc::vec::Vec;

/// What it says of itself. Interruption is by compiled-in probes: 150 cycles for the flag and 100 ns for the switch.
const POLICY: ServerPolicy = ServerPolicy::named("synergy")
    .summary("no dispatcher; longs interrupted only for what waits at their worker")
    .paper("SYNERGY")
    .params(PARAMS)
    .defaults(Facts {
        preemption: Preemption::ByMonitor {
            on_dispatcher: false,
        },
        steals: true,
        ..Facts::STEERED
    })
    .grids(&[Grid::by_class(&[(
        "factor",
        Values::These(&["1", "2", "5", "10"]),
    )])]);

/// Its parameters.
const PARAMS: &[Param] = &[
            Param::number("factor", 2.0, 1e-6, 1e6)
                .means("a long's quantum, in service times of its worker's shorts, 0.5 us at least")
                .while_serving(),
            SynergyParts::PARAM,
            Param::number("congested_factor", 2.0, 1e-6, 1e6)
                .following("as factor")
                .means("the same while a wait queue is congested")
                .while_serving(),
            any_time("thresh_wqd", 0)
                .means(
                    "a wait queue from which nothing was taken for so long is congested; 0: never",
                )
                .while_serving(),
            quantum(5_000).while_serving(),
            Param::whole("steal_threshold", 0, 0, 1 << 20)
                .in_units("requests")
                .means("workers steal from queues longer than this")
                .while_serving(),
            Param::number("alpha", 0.125, 1e-6, 1.0)
                .means("weight of the newest sample in the average of the shorts' service")
                .while_serving(),
            cost(158),
            CHARGE,
            FLOWS,
            Param::whole("waits", 1, 1, MOST_WAIT_QUEUES as u64)
                .in_units("wait queues")
                .means("wait queues for interrupted longs, one for each kind of them"),
            Param::whole("room", 0, 0, 1 << 20)
                .in_units("requests")
                .means("requests that a wait queue has room for, 0 for all there are; a long that finds it full stays with its worker"),
            Param::word("longs", &["auto", "hints", "learned"])
                .means("which classes are long: by hints; learned, from ten times the shortest's mean service on; auto: learned of classes without hints"),
        ];

/// SYNERGY, whole or in parts (§ 6.3.1), with one wait queue or more (§ 5.1).
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn synergy(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Steered, SynergyWorker, TimerCore>, SpecError> {
    let (settings, params) = read_settings::<Entry>(spec, shape)?;
    Ok(assembled(&settings, params, shape))
}

/// The rules of workers and timer, and the queues they share.
pub(super) struct Settings {
    timer: TimerRules,
    worker: WorkerRules,
    preemption_costs: PreemptionCosts,
    flows: u64,
    wait_queues: usize,
    /// Requests that a wait queue has room for; 0 for all there are.
    room: usize,
    longs: Longs,
}

/// By what a class is long.
#[derive(Clone, Copy)]
enum Longs {
    Auto,
    Hints,
    Learned,
}

impl Longs {
    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        Ok(match read.word("longs")? {
            "hints" => Self::Hints,
            "learned" => Self::Learned,
            _ => Self::Auto,
        })
    }

    /// The classes that are long by hints, and those of which workers find it out.
    fn of(self, shape: &Shape) -> (BitSet, BitSet) {
        let classes = 0..shape.classes.len();
        match self {
            Self::Hints => (shape.longs(), BitSet::EMPTY),
            Self::Learned => (BitSet::EMPTY, classes.collect()),
            Self::Auto => {
                let unknown = |class: &usize| !shape.classes[*class].tells_length();
                (shape.longs(), classes.filter(unknown).collect())
            }
        }
    }
}

impl Settings {
    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let factor = read.number("factor")?;
        let parts = SynergyParts::read(read)?;
        Ok(Self {
            timer: TimerRules {
                factor,
                congested_factor: read.number_or("congested_factor", factor)?,
                thresh_wqd_ns: read.time("thresh_wqd")?,
                first_quantum_ns: quantum_ns(read, 0)?,
                dynamic: parts.adaptive_quantum,
                conditional: parts.conditional,
            },
            worker: WorkerRules {
                steals: parts.stealing,
                steal_threshold: read.whole("steal_threshold")? as usize,
                wait_queue: parts.wait_queue,
                alpha: read.number("alpha")?,
            },
            preemption_costs: interruption(read)?,
            flows: read.whole("flows")?,
            wait_queues: read.whole("waits")? as usize,
            room: read.whole("room")? as usize,
            longs: Longs::read(read)?,
        })
    }
}

fn assembled(
    settings: &Settings,
    params: Params,
    shape: &Shape,
) -> System<Steered, SynergyWorker, TimerCore> {
    let (hinted, learned) = settings.longs.of(shape);
    let mut wait_queues = shape.wait_queues(settings.wait_queues);
    // Of classes without hints nobody knows beforehand which is longer.
    learned.iter().for_each(|class| wait_queues[class] = 0);
    let wait_queue_count = wait_queues.iter().max().map_or(1, |last| last + 1);
    let lengths = Lengths::new(hinted, learned, shape.classes.len());
    let locals = (0..shape.workers)
        .map(|me| {
            let me = WorkerId(me as u16);
            SynergyWorker::new(me, settings.worker, lengths.clone(), wait_queues.clone())
        })
        .collect();
    let base = System {
        shared_queues: SharedQueues {
            count: wait_queue_count,
            room: match settings.room {
                0 => usize::MAX,
                room => room,
            },
        },
        sheds_first: hinted,
        ..steered(POLICY.about.name, shape, settings.flows, locals)
    };
    let monitor = TimerCore::new(
        settings.timer,
        hinted,
        !learned.is_empty(),
        wait_queue_count,
    );
    base.under(monitor, settings.preemption_costs, params)
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = Settings;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<Settings, SpecError> {
        Settings::read(read)
    }

    fn build<V: Visit>(settings: Settings, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(assembled(&settings, params, shape))
    }
}

/// Which of SYNERGY's parts are there.
struct SynergyParts {
    stealing: bool,
    wait_queue: bool,
    conditional: bool,
    adaptive_quantum: bool,
}

impl SynergyParts {
    const NAMES: [&'static str; 4] = ["ws", "wq", "cp", "qa"];
    const PARAM: Param = Param::text(
        "parts",
        "ws+wq+cp+qa",
        "none, or any of ws, wq, cp and qa joined by +",
    )
    .means("stealing, the wait queue, conditional preemption, the adaptive quantum")
    .while_serving();

    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let text = read.text("parts");
        let named: Vec<&str> = if text == "none" {
            Vec::new()
        } else {
            text.split('+').collect()
        };
        if !named.iter().all(|name| Self::NAMES.contains(name)) {
            return Err(read.wrong_text("parts"));
        }
        read.note("parts", Value::Text(text.to_string()));
        let has = |name| named.contains(&name);
        Ok(Self {
            stealing: has("ws"),
            wait_queue: has("wq"),
            conditional: has("cp"),
            adaptive_quantum: has("qa"),
        })
    }
}
