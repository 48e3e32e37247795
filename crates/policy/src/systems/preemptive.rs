//! Systems that interrupt requests. Costs default to what the papers measured on their 2.6 GHz
//! testbeds.

use super::{Replicas, System, central, steered, system};
use crate::controls::Fixed;
use crate::disciplines::{Fifo, SplitFifo};
use crate::locals::{self, Batches, RoundRobin, SynergyWorker, WorkerRules};
use crate::monitors::{Lateness, MOST_WAIT_QUEUES, Quantum, TimerCore, TimerRules};
use crate::placements::{Bounded, Idle, Shortest};
use crate::role::{Never, Unplaced};
use crate::spec::{Params, Reader, Spec, SpecError, Value};
use crate::systems::Steered;
use crate::{Central, Charge, Mechanism, Shape, WorkerId, Working};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

/// Longest time a parameter may be.
pub(super) const LONGEST_NS: u64 = 3_600_000_000_000;
const A_TIME: &str = "a time such as 500ns or 5us, up to 1 h";
const A_QUANTUM: &str = "a time above 0 such as 5us, up to 1 h";

/// A time with a unit, 0 included.
pub(super) fn time(
    read: &mut Reader<'_>,
    key: &'static str,
    default_ns: u64,
) -> Result<u64, SpecError> {
    read.time(key, default_ns, 0..=LONGEST_NS, A_TIME)
}

pub(super) fn quantum_ns(read: &mut Reader<'_>, default_ns: u64) -> Result<u64, SpecError> {
    read.time("q", default_ns, 1..=LONGEST_NS, A_QUANTUM)
}

/// Where a cost falls.
pub(super) fn charge(read: &mut Reader<'_>) -> Result<Charge, SpecError> {
    let choices = &["blocking", "request"];
    Ok(match read.word("charge", choices, "blocking or request")? {
        0 => Charge::Blocking,
        _ => Charge::Request,
    })
}

/// How late interruptions come: `sigma`, or `late` with measured quantiles.
pub(super) fn lateness(read: &mut Reader<'_>) -> Result<Lateness, SpecError> {
    let sigma_ns = time(read, "sigma", 0)?;
    let quantiles_ns = read.times("late", "2 to 1000 ascending times, such as 0ns/80ns/2us")?;
    Ok(match quantiles_ns.len() {
        0 => Lateness::one_sided_normal(sigma_ns),
        _ => Lateness::measured(&quantiles_ns),
    })
}

/// A single queue whose quantum the dispatcher watches; what it interrupts joins the tail.
pub type Shinjuku = Central<Fifo, Idle, Fixed>;

/// Shinjuku's single queue, by interrupts: `cost` is 1 µs as in Perséphone's simulations.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn shinjuku_sq(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::Fifo, Quantum>, SpecError> {
    shinjuku("shinjuku-sq", 1_000, shape, spec)
}

/// Shinjuku's single queue with Concord's probes instead of interrupts (SYNERGY § 6.2): the flag
/// costs about 150 cycles (Concord § 3.1), 58 ns.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn shinjuku_ci(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::Fifo, Quantum>, SpecError> {
    shinjuku("shinjuku-ci", 58, shape, spec)
}

fn shinjuku(
    name: &'static str,
    cost_ns: u64,
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Shinjuku, locals::Fifo, Quantum>, SpecError> {
    let keys = &["q", "cost", "charge", "switch", "next", "sigma", "late"];
    let mut read = Reader::new(name, keys, spec)?;
    let quantum_ns = quantum_ns(&mut read, 5_000)?;
    let mechanism = Mechanism {
        notif_ns: time(&mut read, "cost", cost_ns)?,
        charge: charge(&mut read)?,
        switch_ns: time(&mut read, "switch", 0)?,
        next_ns: time(&mut read, "next", 0)?,
        ..Mechanism::default()
    };
    let monitor = Quantum::new(quantum_ns, lateness(&mut read)?, shape.seed);
    let fifo = Fifo::new(shape.queue_limit);
    let ingress = central(shape, 1, (fifo, Idle, Fixed::Open));
    let base = system(name, shape, ingress, locals::Fifo);
    Ok(base.under(monitor, mechanism, read.used()))
}

/// Concord's ingress.
pub type Concord = Working<SplitFifo, Bounded, Fixed>;

/// Concord: JBSQ(k), a flag instead of interrupts, a dispatcher that works when all queues are
/// full, or several dispatchers with workers of their own (§ 6). Defaults: 150 cycles to notice the
/// flag, 100 ns to switch, 400 cycles to wait for the dispatcher (§ 2.2, § 3).
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range, or there are more dispatchers than workers.
pub fn concord(
    shape: &Shape,
    spec: &Spec,
) -> Result<Replicas<Concord, locals::Fifo, Quantum>, SpecError> {
    let keys = &[
        "k",
        "q",
        "notif",
        "switch",
        "next",
        "charge",
        "sigma",
        "late",
        "dispatcher",
        "dispatchers",
    ];
    let mut read = Reader::new("concord", keys, spec)?;
    let depth = read.whole("k", 2, 1..=1024, "a whole number, 1 to 1024")? as usize;
    let quantum_ns = quantum_ns(&mut read, 5_000)?;
    let mechanism = Mechanism {
        notif_ns: time(&mut read, "notif", 58)?,
        switch_ns: time(&mut read, "switch", 100)?,
        next_ns: time(&mut read, "next", 154)?,
        charge: charge(&mut read)?,
        ..Mechanism::default()
    };
    let lateness = lateness(&mut read)?;
    let choices = &["works", "dedicated"];
    let stint_ns = match read.word("dispatcher", choices, "works or dedicated")? {
        0 => quantum_ns,
        _ => 0,
    };
    let expected = "a whole number, 1 to the number of workers: each dispatcher feeds its own";
    let dispatchers = read.whole("dispatchers", 1, 1..=shape.workers as u64, expected)? as usize;
    let params = read.used();
    Ok(Replicas::new(dispatchers, shape, |shape| {
        let fifo = SplitFifo::new(shape.queue_limit);
        let ingress = central(shape, depth, (fifo, Bounded, Fixed::Open));
        let base = System {
            depth,
            ..system(
                "concord",
                shape,
                Working::new(ingress, stint_ns),
                locals::Fifo,
            )
        };
        let monitor = Quantum::new(quantum_ns, lateness.clone(), shape.seed);
        base.under(monitor, mechanism, params.clone())
    }))
}

/// Requests one worker may hold where its queue is in effect unbounded.
const DEEP: usize = 4096;

/// Tiny Quanta: the queue with the fewest requests at once, ties at random; each worker goes
/// round its own requests and interrupts itself. A switch takes 100 ns as Concord's does.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn tiny_quanta(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Central<Fifo, Shortest, Fixed>, RoundRobin>, SpecError> {
    let mut read = Reader::new("tiny-quanta", &["q", "cost", "charge"], spec)?;
    let slice_ns = quantum_ns(&mut read, 2_000)?;
    let mechanism = Mechanism {
        notif_ns: time(&mut read, "cost", 100)?,
        charge: charge(&mut read)?,
        ..Mechanism::default()
    };
    let parts = (
        Fifo::new(shape.queue_limit),
        Shortest::new(shape.seed),
        Fixed::Open,
    );
    let base = System {
        depth: DEEP,
        ..system(
            "tiny-quanta",
            shape,
            central(shape, DEEP, parts),
            RoundRobin::new(slice_ns),
        )
    };
    Ok(base.under(Never, mechanism, read.used()))
}

/// Tardis: workers take batches of `n` from one global queue, steal, and are interrupted by
/// timers of their own. The interrupt is a hardware timer delivered to user space; `cost` is that
/// of a user interrupt's delivery and return (SYNERGY, Table 5.1).
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn tardis(shape: &Shape, spec: &Spec) -> Result<System<Unplaced, Batches>, SpecError> {
    let mut read = Reader::new("tardis", &["n", "q", "cost", "charge"], spec)?;
    let batch = read.whole("n", 4, 1..=1024, "a whole number, 1 to 1024")? as usize;
    let slice_ns = quantum_ns(&mut read, 5_000)?;
    let mechanism = Mechanism {
        notif_ns: time(&mut read, "cost", 509)?,
        charge: charge(&mut read)?,
        ..Mechanism::default()
    };
    let worker = |me: u64| Batches::new(batch, slice_ns, shape.seed ^ (me + 1).rotate_left(40));
    Ok(System {
        name: "tardis",
        params: read.used(),
        ingress: Unplaced,
        locals: (0..shape.workers as u64).map(worker).collect(),
        monitor: Never,
        depth: usize::MAX,
        shared_queues: 1,
        mechanism,
    })
}

/// SYNERGY, whole or in parts (§ 6.3.1), with one wait queue or more (§ 5.1). Interruption is by compiled-in
/// probes: 150 cycles for the flag and 100 ns for the switch.
///
/// # Errors
/// [`SpecError`] when a parameter is unknown or out of range.
pub fn synergy(
    shape: &Shape,
    spec: &Spec,
) -> Result<System<Steered, SynergyWorker, TimerCore>, SpecError> {
    let keys = &[
        "factor",
        "congested_factor",
        "thresh_wqd",
        "alpha",
        "steal_threshold",
        "cost",
        "charge",
        "q",
        "parts",
        "flows",
        "waits",
    ];
    let mut read = Reader::new("synergy", keys, spec)?;
    let a_factor = "a number above 0, up to 1e6";
    let factor = read.number("factor", 2.0, 1e-6..=1e6, a_factor)?;
    let parts = Parts::read(&mut read)?;
    let timer = TimerRules {
        factor,
        congested_factor: read.number("congested_factor", factor, 1e-6..=1e6, a_factor)?,
        thresh_wqd_ns: time(&mut read, "thresh_wqd", 0)?,
        first_quantum_ns: quantum_ns(&mut read, 5_000)?,
        dynamic: parts.adaptive_quantum,
        conditional: parts.conditional,
    };
    let worker = WorkerRules {
        steals: parts.stealing,
        steal_threshold: read.whole("steal_threshold", 0, 0..=1 << 20, "a number of requests")?
            as usize,
        wait_queue: parts.wait_queue,
        alpha: read.number("alpha", 0.125, 1e-6..=1.0, "a weight above 0, up to 1")?,
    };
    let mechanism = Mechanism {
        notif_ns: time(&mut read, "cost", 158)?,
        charge: charge(&mut read)?,
        ..Mechanism::default()
    };
    let flows = "a whole number up to 2^32, 0 for none";
    let flows = read.whole("flows", 0, 0..=1 << 32, flows)?;
    let waits = "a number of wait queues, 1 to 64";
    let waits = read.whole("waits", 1, 1..=MOST_WAIT_QUEUES as u64, waits)?;
    let wait_queues = shape.wait_queues(waits as usize);
    let shared_queues = wait_queues.iter().max().map_or(1, |last| last + 1);
    let longs = shape.longs();
    let local = |me| {
        let me = WorkerId(me as u16);
        SynergyWorker::new(me, worker, longs, wait_queues.clone())
    };
    let base = System {
        shared_queues,
        ..steered(
            "synergy",
            shape,
            flows,
            (0..shape.workers).map(local).collect(),
        )
    };
    let monitor = TimerCore::new(timer, longs, shared_queues);
    Ok(base.under(monitor, mechanism, read.used()))
}

/// Which of SYNERGY's parts are there.
struct Parts {
    stealing: bool,
    wait_queue: bool,
    conditional: bool,
    adaptive_quantum: bool,
}

impl Parts {
    const NAMES: [&'static str; 4] = ["ws", "wq", "cp", "qa"];

    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let expected = "none, or any of ws, wq, cp and qa joined by +";
        let text = read.text("parts", "ws+wq+cp+qa");
        let named: Vec<&str> = match text {
            "none" => vec![],
            parts => parts.split('+').collect(),
        };
        if !named.iter().all(|name| Self::NAMES.contains(name)) {
            return Err(read.bad("parts", text, expected));
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

impl<I, L> System<I, L> {
    /// The same under a monitor.
    pub(super) fn under<M>(
        self,
        monitor: M,
        mechanism: Mechanism,
        params: Params,
    ) -> System<I, L, M> {
        System {
            name: self.name,
            params,
            ingress: self.ingress,
            locals: self.locals,
            monitor,
            depth: self.depth,
            shared_queues: self.shared_queues,
            mechanism,
        }
    }
}
