//! The systems of the literature, a line each: which parts make which.
//!
//! | system | ingress | local | monitor | papers' name |
//! |---|---|---|---|---|
//! | d-fcfs | hashed | fifo | – | IX, Arrakis |
//! | c-fcfs | fifo → idle | fifo | – | the ideal single queue |
//! | work-stealing | hashed | own, then steal | – | `ZygOS`, Shenango |
//! | jbsq | fifo → bounded(k) | fifo | – | R2P2, Concord's queues |
//! | fixed-priority | typed → idle of all | fifo | – | |
//! | static-partition | typed → reserved | fifo | – | |
//! | darc-static | typed → reserved ∪ stealable, by hand | fifo | – | DARC-static |
//! | darc | typed → reserved ∪ stealable, DARC control | fifo | – | Perséphone |
//! | darc-stable | the same, control with stability check | fifo | – | ours |
//! | shinjuku-sq, -ci | fifo → idle | fifo | quantum | Shinjuku, by interrupt or by probe |
//! | concord | fifo → bounded(k), may work itself; [several](Replicas) | fifo | quantum | Concord |
//! | tiny-quanta | fifo → shortest, at once | round robin, ends its own slices | – | Tiny Quanta |
//! | tardis | nobody: one global queue | batches, then steal, own timer | – | Tardis |
//! | synergy | hashed | Algorithm 5.2 | timer core (Algorithm 5.3) | SYNERGY |
//! | sjf, edf | by size, by deadline → idle | fifo | – | |
//! | srpt | by size → idle | fifo | overtake | |
//! | drr, wrr | a queue a class, in turn → idle | fifo | – | |
//! | mlfq | levels → idle | fifo | ticks | |
//! | cscq | shorts, longs → idle | fifo | – | CS-CQ |
//! | on-blocked | fifo → idle | fifo | overtake | Perséphone § 6 |
//! | shinjuku-mq | a queue a class, by wait ÷ SLO → idle | fifo | quantum | Shinjuku, multi-queue |
//! | compose | any | fifo | any | |
//!
//! The choice by name happens once, at start-up: [`with`] hands a [`Visit`]or the composition
//! with all its types known, so that nothing is dispatched dynamically per request.

mod compose;
mod ordered;
mod parts;
mod preemptive;
mod replicas;

pub use compose::compose;
pub use ordered::ordered;
pub use parts::{AnyIngress, Composed};
pub use preemptive::{
    Concord, Shinjuku, concord, shinjuku_ci, shinjuku_sq, synergy, tardis, tiny_quanta,
};
pub use replicas::{Division, Replicas};

use crate::controls::{Darc, DarcRules, DarcStable, Fixed, Given, Known, Partition};
use crate::disciplines::{self, Typed};
use crate::fluid::ProcessorSharing;
use crate::locals::{self, Stealing, Take};
use crate::placements::{Bounded, Hashed, Idle, Reserved, Workers};
use crate::role::{Ingress, Local, Monitor, Never, Owner};
use crate::spec::{Params, Reader, Spec, SpecError};
use crate::{BitSet, Central, Jobs, Mechanism, Order, Plan, Resume, Shape};
use alloc::vec::Vec;

/// A composition: the three roles, one `Local` a worker.
pub struct System<I, L, M = Never> {
    /// Its name.
    pub name: &'static str,
    /// The parameters it was built with.
    pub params: Params,
    /// Who gets which request.
    pub ingress: I,
    /// What each worker runs next.
    pub locals: Vec<L>,
    /// Who is interrupted.
    pub monitor: M,
    /// Requests a worker may hold, the running one included.
    pub depth: usize,
    /// Queues that all workers share, at least one.
    pub shared_queues: usize,
    /// What interrupting costs.
    pub mechanism: Mechanism,
}

/// Takes a system whatever its types.
pub trait Visit {
    /// What comes of it.
    type Output;
    /// Called once, with the system that was asked for.
    fn visit<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static;

    /// Called instead where there are several dispatchers. Who asks what kind of system it is learns that of
    /// any instance; who runs it must run all of them.
    fn visit_replicas<I, L, M>(self, mut replicas: Replicas<I, L, M>) -> Self::Output
    where
        Self: Sized,
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        self.visit(replicas.instances.swap_remove(0))
    }
}

/// Every policy, by its own name.
pub const NAMES: &[&str] = &[
    "d-fcfs",
    "c-fcfs",
    "work-stealing",
    "jbsq",
    "fixed-priority",
    "static-partition",
    "darc",
    "darc-stable",
    "darc-static",
    "shinjuku-sq",
    "shinjuku-ci",
    "concord",
    "tiny-quanta",
    "tardis",
    "synergy",
    "sjf",
    "srpt",
    "edf",
    "drr",
    "wrr",
    "mlfq",
    "cscq",
    "on-blocked",
    "shinjuku-mq",
    "compose",
];

/// Names of the papers' systems for what we call otherwise.
const ALIASES: &[(&str, &str)] = &[
    ("persephone", "darc"),
    ("ix", "d-fcfs"),
    ("arrakis", "d-fcfs"),
    ("zygos", "work-stealing"),
    ("shenango", "work-stealing"),
];

/// What a policy is, in a line, for lists.
#[must_use]
pub fn summary(name: &str) -> Option<&'static str> {
    Some(match find(name)? {
        "d-fcfs" => "one queue per worker, requests steered by hash",
        "c-fcfs" => "one queue for all workers",
        "work-stealing" => "one queue per worker; idle workers steal from the others",
        "jbsq" => "one queue and bounded ones of depth k at the workers",
        "fixed-priority" => "typed queues, shortest class first, every worker open to all",
        "static-partition" => "every class has workers of its own, by declared demand",
        "darc" => "typed queues, workers reserved for short classes by profile (Perséphone)",
        "darc-stable" => "DARC that never leaves a class overloaded when it need not be",
        "darc-static" => "typed queues, workers reserved for the shortest class by hand",
        "shinjuku-sq" => "one queue, requests interrupted at the end of a quantum join its tail",
        "shinjuku-ci" => "the same, interrupted by probes that the compiler put in",
        "concord" => "bounded queues, interruption by a flag, a dispatcher that also works",
        "tiny-quanta" => "shortest queue at once, each worker goes round its own",
        "tardis" => "one global queue taken in batches, stealing, each worker its own timer",
        "synergy" => "no dispatcher; longs interrupted only for what waits at their worker",
        "sjf" => "one queue, the shortest request first",
        "srpt" => "least remaining service first; what wants less interrupts what wants more",
        "edf" => "one queue, the earliest deadline first",
        "drr" => "a queue per class, the same service time for each that waits",
        "wrr" => "a queue per class, so many requests of each in turn",
        "mlfq" => "levels by the service received so far, the lowest first, a tick to interrupt by",
        "cscq" => "workers for longs that run shorts while no long waits",
        "on-blocked" => "one queue; a short at its head interrupts a long, which joins the tail",
        "shinjuku-mq" => "a queue per class, the longest wait for its SLO first, a quantum",
        "compose" => "any discipline, placement, preemption and control that go together",
        _ => return None,
    })
}

/// The own name behind a name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    let own = ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, own)| own);
    NAMES.iter().copied().find(|&known| known == own)
}

/// Builds the system a spec asks for and hands it to the visitor.
///
/// # Errors
/// [`SpecError`] when there is no such policy or parameter, or a value is out of range.
pub fn with<V: Visit>(spec: &Spec, shape: &Shape, visitor: V) -> Result<V::Output, SpecError> {
    if spec.name == ProcessorSharing::NAME {
        let policy = ProcessorSharing::NAME;
        return Err(SpecError::OnlyVirtual { policy });
    }
    let name = find(&spec.name).ok_or_else(|| unknown(spec))?;
    let reader = |valid| Reader::new(name, valid, spec);
    Ok(match name {
        "d-fcfs" => visitor.visit(reader(&[]).map(|_| d_fcfs(shape))?),
        "c-fcfs" => visitor.visit(reader(&[]).map(|_| c_fcfs(shape))?),
        "work-stealing" => {
            let mut read = reader(&["steal", "flows"])?;
            let steal = read.word("steal", &["half", "one"], "half or one")?;
            let flows = read.whole(
                "flows",
                0,
                0..=1 << 32,
                "a whole number up to 2^32, 0 for none",
            )?;
            let take = if steal == 0 { Take::Half } else { Take::One };
            visitor.visit(work_stealing(shape, take, flows).used(read))
        }
        "jbsq" => {
            let mut read = reader(&["k"])?;
            let depth = read.whole("k", 2, 1..=1024, "a whole number, 1 to 1024")?;
            visitor.visit(jbsq(shape, depth as usize).used(read))
        }
        "fixed-priority" => visitor.visit(reader(&[]).map(|_| fixed_priority(shape))?),
        "static-partition" => visitor.visit(reader(&[]).map(|_| static_partition(shape))?),
        "darc" => {
            let mut read = reader(DarcParams::KEYS)?;
            let params = DarcParams::read(&mut read)?;
            visitor.visit(darc(shape, params).used(read))
        }
        "darc-stable" => {
            let mut read = reader(DarcParams::KEYS)?;
            let params = DarcParams::read(&mut read)?;
            visitor.visit(darc_stable(shape, params).used(read))
        }
        "shinjuku-sq" => visitor.visit(shinjuku_sq(shape, spec)?),
        "shinjuku-ci" => visitor.visit(shinjuku_ci(shape, spec)?),
        "concord" => concord(shape, spec)?.visit(visitor),
        "tiny-quanta" => visitor.visit(tiny_quanta(shape, spec)?),
        "tardis" => visitor.visit(tardis(shape, spec)?),
        "synergy" => visitor.visit(synergy(shape, spec)?),
        "sjf" | "srpt" | "edf" | "drr" | "wrr" | "mlfq" | "cscq" | "on-blocked" | "shinjuku-mq" => {
            ordered(shape, spec)?.visit(visitor)
        }
        "compose" => compose(shape, spec)?.visit(visitor),
        _ => {
            let mut read = reader(&["reserved"])?;
            let reserved = read.whole("reserved", 1, 0..=256, "a number of workers, 0 to 256")?;
            visitor.visit(darc_static(shape, reserved as usize).used(read))
        }
    })
}

fn unknown(spec: &Spec) -> SpecError {
    SpecError::UnknownPolicy {
        name: spec.name.clone(),
        valid: NAMES,
    }
}

/// Checks a spec without using the system.
///
/// # Errors
/// As [`with`]; [`SpecError::Roams`] where requests may only resume on their own worker and the system's workers help
/// themselves to what others began.
pub fn check(spec: &Spec, shape: &Shape) -> Result<Params, SpecError> {
    struct Check(Resume);
    impl Visit for Check {
        type Output = Result<Params, SpecError>;
        fn visit<I: Ingress, L: Local, M: Monitor>(
            self,
            system: System<I, L, M>,
        ) -> Result<Params, SpecError> {
            let interrupts = M::PREEMPTS || L::SLICES;
            let shares = I::OWNER != Owner::Dispatcher;
            if self.0 == Resume::OwnWorker && interrupts && shares {
                let policy = system.name;
                return Err(SpecError::Roams { policy });
            }
            Ok(system.params)
        }
    }
    with(spec, shape, Check(shape.resume))?
}

impl<I, L, M> System<I, L, M> {
    fn used(self, reader: Reader<'_>) -> Self {
        Self {
            params: reader.used(),
            ..self
        }
    }
}

fn system<I, L: Clone>(name: &'static str, shape: &Shape, ingress: I, local: L) -> System<I, L> {
    let locals = alloc::vec![local; shape.workers];
    System {
        name,
        params: Params::new(),
        ingress,
        locals,
        monitor: Never,
        depth: 1,
        shared_queues: 1,
        mechanism: Mechanism::default(),
    }
}

/// d-FCFS: one queue a worker, steered by the flow's hash.
#[must_use]
pub fn d_fcfs(shape: &Shape) -> System<Steered, locals::Fifo> {
    steered("d-fcfs", shape, 0, alloc::vec![locals::Fifo; shape.workers])
}

/// Work stealing over hashed queues; `flows` as in [`Hashed::new`].
#[must_use]
pub fn work_stealing(shape: &Shape, take: Take, flows: u64) -> System<Steered, Stealing> {
    let thief = |worker| Stealing::new(take, shape.seed ^ (worker as u64 + 1).rotate_left(40));
    steered(
        "work-stealing",
        shape,
        flows,
        (0..shape.workers).map(thief).collect(),
    )
}

/// c-FCFS: one queue, any idle worker.
#[must_use]
pub fn c_fcfs(shape: &Shape) -> System<Central<disciplines::Fifo, Idle, Fixed>, locals::Fifo> {
    let fifo = disciplines::Fifo::new(shape.queue_limit);
    system(
        "c-fcfs",
        shape,
        central(shape, 1, (fifo, Idle, Fixed::Open)),
        locals::Fifo,
    )
}

/// JBSQ(k): one queue, and bounded ones at the workers.
#[must_use]
pub fn jbsq(
    shape: &Shape,
    depth: usize,
) -> System<Central<disciplines::Fifo, Bounded, Fixed>, locals::Fifo> {
    let fifo = disciplines::Fifo::new(shape.queue_limit);
    let ingress = central(shape, depth, (fifo, Bounded, Fixed::Open));
    System {
        depth,
        ..system("jbsq", shape, ingress, locals::Fifo)
    }
}

/// Shortest class first; every worker open to all.
#[must_use]
pub fn fixed_priority(shape: &Shape) -> System<Central<Typed, Reserved, Fixed>, locals::Fifo> {
    System {
        name: "fixed-priority",
        ..darc_static(shape, 0)
    }
}

/// So many workers reserved for the shortest class.
#[must_use]
pub fn darc_static(
    shape: &Shape,
    reserved: usize,
) -> System<Central<Typed, Reserved, Fixed>, locals::Fifo> {
    typed("darc-static", shape, Fixed::First(reserved))
}

/// Every class on workers of its own.
#[must_use]
pub fn static_partition(
    shape: &Shape,
) -> System<Central<Typed, Reserved, Partition>, locals::Fifo> {
    typed("static-partition", shape, Partition::new(&shape.classes))
}

/// DARC as published.
#[must_use]
pub fn darc(
    shape: &Shape,
    params: DarcParams,
) -> System<Central<Typed, Reserved, Darc>, locals::Fifo> {
    let known = params.known.then(|| known(shape));
    typed(
        "darc",
        shape,
        Darc::new(shape.classes.len(), params.rules, known.as_ref()),
    )
}

/// DARC with the stability check.
#[must_use]
pub fn darc_stable(
    shape: &Shape,
    params: DarcParams,
) -> System<Central<Typed, Reserved, DarcStable>, locals::Fifo> {
    let known = params.known.then(|| known(shape));
    typed(
        "darc-stable",
        shape,
        DarcStable::new(shape.classes.len(), params.rules, known.as_ref()),
    )
}

/// What a rack's control plane says: c-FCFS, or DARC with a given reservation (Pallas).
#[must_use]
pub fn given(shape: &Shape) -> System<Central<Typed, Reserved, Given>, locals::Fifo> {
    typed("given", shape, Given::new(shape.queues()))
}

/// Hashed steering: every request goes to its flow's worker at once; the engine's queues bound
/// what waits there, as a network card's do.
pub type Steered = Central<disciplines::Fifo, Hashed, Fixed>;

fn steered<L>(name: &'static str, shape: &Shape, flows: u64, locals: Vec<L>) -> System<Steered, L> {
    let fifo = disciplines::Fifo::new(usize::MAX);
    let ingress = central(shape, 1, (fifo, Hashed::new(flows), Fixed::Open));
    System {
        name,
        params: Params::new(),
        ingress,
        locals,
        monitor: Never,
        depth: usize::MAX,
        shared_queues: 1,
        mechanism: Mechanism::default(),
    }
}

fn typed<C: crate::controls::Control>(
    name: &'static str,
    shape: &Shape,
    control: C,
) -> System<Central<Typed, Reserved, C>, locals::Fifo> {
    let queues = Typed::new(shape.queues(), shape.queue_limit);
    system(
        name,
        shape,
        central(shape, 1, (queues, Reserved, control)),
        locals::Fifo,
    )
}

fn central<D, P, C>(shape: &Shape, depth: usize, parts: (D, P, C)) -> Central<D, P, C>
where
    D: disciplines::Discipline,
    P: crate::placements::Placement,
    C: crate::controls::Control,
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

fn known(shape: &Shape) -> Known {
    Known {
        mean_ns: shape.classes.iter().map(|hint| hint.mean_ns).collect(),
        share: shape.classes.iter().map(|hint| hint.share).collect(),
        load_cores: shape.known_load.unwrap_or(0.0) * shape.workers as f64,
    }
}

/// Parameters of `darc` and `darc-stable`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DarcParams {
    /// Windows and reservation.
    pub rules: DarcRules,
    /// Starts with the declared means and shares instead of a c-FCFS window (simulation).
    pub known: bool,
}

impl DarcParams {
    const KEYS: &'static [&'static str] = &[
        "delta",
        "window",
        "deviation",
        "delay",
        "spillway",
        "profile",
    ];

    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let mut params = Self::default();
        let rules = &mut params.rules;
        rules.reservation.delta =
            read.number("delta", 2.0, 1.0..=f64::MAX, "a factor, at least 1")?;
        rules.window = read.whole(
            "window",
            50_000,
            1..=1 << 40,
            "a number of completions, 1 to 2^40",
        )?;
        rules.deviation =
            read.number("deviation", 0.10, 0.0..=1.0, "a part of all demand, 0 to 1")?;
        rules.delay = read.number(
            "delay",
            10.0,
            0.0..=f64::MAX,
            "a multiple of the mean service time",
        )?;
        rules.reservation.spillway =
            read.whole("spillway", 1, 1..=256, "a number of workers, 1 to 256")? as usize;
        params.known = read.word("profile", &["observed", "known"], "observed or known")? == 1;
        Ok(params)
    }
}
