//! One queue a worker; the network steers.

use super::assemble::{Steered, steered};
use super::build::entry_without_params;
use super::describe::{Facts, Grid, ServerPolicy};
use super::system::System;
use crate::server::{Shape, locals};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("d-fcfs")
    .summary("one queue per worker, requests steered by hash")
    .aliases(&["ix", "arrakis"])
    .paper("IX, OSDI '14; Arrakis, OSDI '14")
    .defaults(Facts::STEERED)
    .grids(&[Grid::of(&[])]);

/// d-FCFS: one queue a worker, steered by the flow's hash.
#[must_use]
pub fn d_fcfs(shape: &Shape) -> System<Steered, locals::LocalFifo> {
    let locals = alloc::vec![locals::LocalFifo; shape.workers];
    steered(POLICY.about.name, shape, 0, locals)
}

entry_without_params!(POLICY, d_fcfs);
