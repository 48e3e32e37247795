//! What a worker runs next.

mod batches;
mod feedback;
mod fifo;
mod round_robin;
mod stealing;

pub use batches::Batches;
pub use feedback::{SynergyWorker, WorkerRules};
pub use fifo::LocalFifo;
pub use round_robin::RoundRobin;
pub use stealing::{StealAmount, Stealing, victims};
