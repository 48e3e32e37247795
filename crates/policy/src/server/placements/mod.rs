//! Placements: which worker a request that is offered goes to, if any.

mod any;
mod bounded;
mod choices;
mod flow_hash;
mod hashed;
mod idle;
mod reserved;
mod reserved_bounded;
mod shortest;
mod workers;

pub use any::AnyPlacement;
pub use bounded::Bounded;
pub use choices::Choices;
pub use flow_hash::{flow_hash, toeplitz};
pub use hashed::Hashed;
pub use idle::IdleWorker;
pub use reserved::Reserved;
pub use reserved_bounded::ReservedBounded;
pub use shortest::ShortestQueue;
pub use workers::Workers;

use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// Chooses a worker for the request that is offered.
pub trait Placement {
    /// Who carries it out.
    const OWNER: Owner;

    /// Whether any worker could take any request: where not, nobody need look for one to offer.
    fn has_room(&self, workers: &Workers) -> bool;

    /// The worker, or `None` when the request must wait.
    fn place(&mut self, job: &Job, plan: &Plan, workers: &Workers) -> Option<WorkerId>;

    /// Takes over the rules of one that was just built: see [`Ingress::adopt`](crate::server::role::Ingress::adopt).
    fn adopt(&mut self, fresh: &Self);
}
