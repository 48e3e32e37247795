//! What a rack's control plane says; no policy by name.

use super::assemble::typed;
use super::system::System;
use crate::server::controls::GivenShares;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};

/// c-FCFS, or DARC with a reservation that is given (Pallas).
#[must_use]
pub fn given(shape: &Shape) -> System<Central<Typed, Reserved, GivenShares>, locals::LocalFifo> {
    typed("given", shape, GivenShares::new(shape.queues()))
}
