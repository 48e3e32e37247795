//! The promises of every core allocator, for any behaviour of applications.

mod audit;
mod churn;
mod hosts;
mod moves;
mod storm;
