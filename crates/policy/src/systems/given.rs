//! What a rack's control plane says; no policy by name.

use super::assemble::typed;
use super::system::System;
use crate::controls::GivenShares;
use crate::disciplines::Typed;
use crate::placements::Reserved;
use crate::{Central, Shape, locals};

/// c-FCFS, or DARC with a reservation that is given (Pallas).
#[must_use]
pub fn given(shape: &Shape) -> System<Central<Typed, Reserved, GivenShares>, locals::LocalFifo> {
    typed("given", shape, GivenShares::new(shape.queues()))
}
