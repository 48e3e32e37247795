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
//! | darc-paper | the same as printed | fifo | – | Perséphone |
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
//! | gittins | Gittins → idle | fifo | index | |
//! | cscq | shorts, longs → idle | fifo | – | CS-CQ |
//! | on-blocked | fifo → idle | fifo | overtake | Perséphone § 6 |
//! | shinjuku-mq | a queue a class, by wait ÷ SLO → idle | fifo | quantum | Shinjuku, multi-queue |
//! | compose | any | fifo | any | |
//!
//! Each is a file, which describes the policy ([`ServerPolicy`]) beside its builder; [`ALL`] lists them.
//! The choice by name happens once, at start-up: [`with`] hands a [`Visit`]or the composition
//! with all its types known, so that nothing is dispatched dynamically per request.

mod assemble;
mod build;
mod c_fcfs;
mod chosen;
mod compose;
mod concord;
mod cscq;
mod d_fcfs;
mod darc;
mod darc_paper;
mod darc_stable;
mod darc_static;
mod describe;
mod drr;
mod edf;
mod fixed_priority;
mod gittins;
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
mod system;
mod tardis;
mod tiny_quanta;
mod visit;
mod work_stealing;
mod wrr;

pub use assemble::Steered;
pub use c_fcfs::c_fcfs;
pub use concord::{Concord, concord};
pub use d_fcfs::d_fcfs;
pub use darc::{DarcParams, DarcStart, darc};
pub use darc_stable::darc_stable;
pub use darc_static::darc_static;
pub use describe::{Facts, Grid, Preemption, Promises, ServerPolicy, Values};
pub use fixed_priority::fixed_priority;
pub use given::given;
pub use jbsq::jbsq;
pub use parts::AnyIngress;
pub use replicas::{Division, Replicas};
pub use server_spec::ServerSpec;
pub use shinjuku::{Shinjuku, shinjuku_ci, shinjuku_sq};
pub use static_partition::static_partition;
pub use synergy::synergy;
pub use system::{KEPT_FROM_LONGS, SharedQueues, System};
pub use tardis::tardis;
pub use tiny_quanta::tiny_quanta;
pub use visit::{Visit, VisitInstance};
pub use work_stealing::{POLICY as WORK_STEALING, work_stealing};

use crate::server::Shape;
use crate::server::fluid::ProcessorSharing;
use crate::spec::{Params, Spec, SpecError};
use build::{Build, read_settings};

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
            spec: &ServerSpec,
            shape: &Shape,
            visitor: V,
        ) -> Result<V::Output, SpecError> {
            $(if spec.name() == <$entry>::POLICY.about.name {
                let (settings, params) = read_settings::<$entry>(spec.spec(), shape)?;
                return Ok(<$entry>::build(settings, params, shape, visitor));
            })*
            Err(unknown(spec.spec()))
        }

        /// Checks a spec for a server of this shape, as [`with`] does before it builds, and says the parameters as used.
        ///
        /// # Errors
        /// [`SpecError`] when a value is out of range on this shape;
        /// [`SpecError::Roams`] where requests may only resume on their own worker and the system's workers help
        /// themselves to what others began.
        pub fn check(spec: &ServerSpec, shape: &Shape) -> Result<Params, SpecError> {
            $(if spec.name() == <$entry>::POLICY.about.name {
                return read_settings::<$entry>(spec.spec(), shape).map(|(_, params)| params);
            })*
            Err(unknown(spec.spec()))
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
    darc_paper::Entry,
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
    gittins::Entry,
    cscq::Entry,
    on_blocked::Entry,
    shinjuku::MultiQueueEntry,
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

fn unknown(spec: &Spec) -> SpecError {
    if spec.name == ProcessorSharing::NAME {
        let policy = ProcessorSharing::NAME;
        return SpecError::OnlyVirtual { policy };
    }
    SpecError::UnknownPolicy {
        name: spec.name.clone(),
        valid: NAMES,
    }
}

impl ServerSpec {
    /// Finds the policy, by its own name or an alias.
    ///
    /// # Errors
    /// [`SpecError`] when no server's policy is called so, or it has no such parameter.
    pub fn parse(spec: Spec) -> Result<Self, SpecError> {
        let policy = find(&spec.name).ok_or_else(|| unknown(&spec))?;
        Self::of(policy, spec)
    }

    /// Checks the values for a server of this shape and says all parameters as used.
    ///
    /// # Errors
    /// As [`check`].
    pub fn check(&self, shape: &Shape) -> Result<Params, SpecError> {
        check(self, shape)
    }
}
