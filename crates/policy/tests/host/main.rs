//! What every allocator of cores promises, whatever applications do.

mod audit;
mod churn;
mod hosts;
mod moves;
mod storm;
