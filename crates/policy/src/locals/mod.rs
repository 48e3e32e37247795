//! What a worker runs next.

mod fifo;
mod stealing;

pub use fifo::Fifo;
pub use stealing::{Stealing, Take};
