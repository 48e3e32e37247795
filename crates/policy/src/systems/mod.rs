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
//! Each is a file, which describes the policy ([`ServerPolicy`]) beside its builder; [`ALL`] lists them.
//! The choice by name happens once, at start-up: [`with`] hands a [`Visit`]or the composition
//! with all its types known, so that nothing is dispatched dynamically per request.

mod build;
mod c_fcfs;
mod chosen;
mod compose;
mod concord;
mod cscq;
mod d_fcfs;
mod darc;
mod darc_stable;
mod darc_static;
mod describe;
mod drr;
mod edf;
mod fixed_priority;
mod given;
mod jbsq;
mod mlfq;
mod on_blocked;
mod ordered;
mod params;
mod parts;
mod replicas;
mod server_spec;
mod shinjuku;
mod sjf;
mod srpt;
mod static_partition;
mod synergy;
mod tardis;
mod tiny_quanta;
mod work_stealing;
mod wrr;

pub use c_fcfs::c_fcfs;
pub use concord::{Concord, concord};
pub use d_fcfs::d_fcfs;
pub use darc::{DarcParams, darc};
pub use darc_stable::darc_stable;
pub use darc_static::darc_static;
pub use describe::{Engines, Facts, Grid, Preemption, Promises, ServerPolicy, Values};
pub use fixed_priority::fixed_priority;
pub use given::given;
pub use jbsq::jbsq;
pub use parts::AnyIngress;
pub use replicas::{Division, Replicas};
pub use server_spec::ServerSpec;
pub use shinjuku::{Shinjuku, shinjuku_ci, shinjuku_sq};
pub use static_partition::static_partition;
pub use synergy::synergy;
pub use tardis::tardis;
pub use tiny_quanta::tiny_quanta;
pub use work_stealing::{POLICY as WORK_STEALING, work_stealing};

use crate::controls::Fixed;
use crate::disciplines::{self, Typed};
use crate::fluid::ProcessorSharing;
use crate::locals;
use crate::placements::{Hashed, Reserved, Workers};
use crate::role::{Ingress, Local, Monitor, Never};
use crate::spec::{Description, Params, Spec, SpecError};
use crate::{BitSet, Central, Jobs, Order, Plan, PreemptionCosts, Shape};
use alloc::vec::Vec;
use build::Build;

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
    /// Queues that all workers share.
    pub shared_queues: SharedQueues,
    /// What interrupting costs.
    pub preemption_costs: PreemptionCosts,
}

/// The queues that all workers of a system share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedQueues {
    /// How many there are, at least one.
    pub count: usize,
    /// Requests that each has room for, at least one; `usize::MAX` for all there are.
    pub room: usize,
}

impl SharedQueues {
    /// One, for all requests there are.
    pub const ONE: Self = Self {
        count: 1,
        room: usize::MAX,
    };
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

/// Lists the policies once: each says what it is, reads its parameters and builds its system.
macro_rules! registry {
    ($($entry:ty,)*) => {
        /// Every policy of a server, the simplest first: a planner prefers the earlier of two that do equally well.
        pub const ALL: &[&ServerPolicy] = &[$(<$entry>::POLICY),*];

        /// Builds the system a spec asks for and hands it to the visitor.
        ///
        /// # Errors
        /// As [`check`].
        pub fn with<V: Visit>(
            spec: &Spec,
            shape: &Shape,
            visitor: V,
        ) -> Result<V::Output, SpecError> {
            let name = find(&spec.name).ok_or_else(|| unknown(spec))?.about.name;
            $(if name == <$entry>::POLICY.about.name {
                let (settings, params) = <$entry>::settings(spec, shape)?;
                return Ok(<$entry>::build(settings, params, shape, visitor));
            })*
            Err(unknown(spec))
        }

        /// Checks a spec for a server of this shape, as [`with`] does before it builds, and says the parameters as used.
        ///
        /// # Errors
        /// [`SpecError`] when there is no such policy or parameter, or a value is out of range on this shape;
        /// [`SpecError::Roams`] where requests may only resume on their own worker and the system's workers help
        /// themselves to what others began.
        pub fn check(spec: &Spec, shape: &Shape) -> Result<Params, SpecError> {
            let name = find(&spec.name).ok_or_else(|| unknown(spec))?.about.name;
            $(if name == <$entry>::POLICY.about.name {
                return <$entry>::settings(spec, shape).map(|(_, params)| params);
            })*
            Err(unknown(spec))
        }
    };
}

registry! {
    c_fcfs::Entry,
    d_fcfs::Entry,
    work_stealing::Entry,
    jbsq::Entry,
    fixed_priority::Entry,
    static_partition::Entry,
    darc_static::Entry,
    darc::Entry,
    darc_stable::Entry,
    shinjuku::SingleQueue,
    shinjuku::ByProbes,
    concord::Entry,
    tiny_quanta::Entry,
    tardis::Entry,
    synergy::Entry,
    sjf::Entry,
    srpt::Entry,
    edf::Entry,
    drr::Entry,
    wrr::Entry,
    mlfq::Entry,
    cscq::Entry,
    on_blocked::Entry,
    shinjuku::MultiQueue,
    compose::Entry,
}

/// Every policy's own name, in the order of [`ALL`].
pub const NAMES: &[&str] = &{
    let mut names = [""; ALL.len()];
    let mut at = 0;
    while at < ALL.len() {
        names[at] = ALL[at].about.name;
        at += 1;
    }
    names
};

/// The policy of this name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static ServerPolicy> {
    let mut all = ALL.iter().copied();
    all.find(|policy| policy.about.is_called(name))
}

pub(crate) fn unknown(spec: &Spec) -> SpecError {
    if spec.name == ProcessorSharing::NAME {
        let policy = ProcessorSharing::NAME;
        return SpecError::OnlyVirtual { policy };
    }
    SpecError::UnknownPolicy {
        name: spec.name.clone(),
        valid: NAMES,
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
        shared_queues: SharedQueues::ONE,
        preemption_costs: PreemptionCosts::default(),
    }
}

/// Hashed steering: every request goes to its flow's worker at once; the engine's queues bound
/// what waits there, as a network card's do.
pub type Steered = Central<disciplines::Fifo, Hashed, Fixed>;

fn steered<L>(name: &'static str, shape: &Shape, flows: u64, locals: Vec<L>) -> System<Steered, L> {
    let fifo = disciplines::Fifo::new(usize::MAX);
    let ingress = central(
        shape,
        1,
        (fifo, Hashed::new(flows, shape.seed), Fixed::Open),
    );
    System {
        name,
        params: Params::new(),
        ingress,
        locals,
        monitor: Never,
        depth: usize::MAX,
        shared_queues: SharedQueues::ONE,
        preemption_costs: PreemptionCosts::default(),
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

impl<I, L> System<I, L> {
    /// The same under a monitor.
    fn under<M>(
        self,
        monitor: M,
        preemption_costs: PreemptionCosts,
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
            preemption_costs,
        }
    }
}
