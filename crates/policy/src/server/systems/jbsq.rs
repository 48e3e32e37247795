//! Join the bounded shortest queue.

use super::assemble::{central, system};
use super::build::Build;
use super::describe::{Facts, Grid, ServerPolicy, Values};
use super::params::K;
use super::system::System;
use super::visit::Visit;
use crate::server::controls::Fixed;
use crate::server::disciplines::Fifo;
use crate::server::placements::Bounded;
use crate::server::{Central, CentralParts, Shape, locals};
use crate::spec::{Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("jbsq")
    .summary("one queue and bounded ones of depth k at the workers")
    .paper("R2P2, ATC '19")
    .params(&[K])
    .defaults(Facts {
        depth: 2,
        ..Facts::CENTRAL
    })
    .with_params(|facts, given| Facts {
        depth: given.whole("k") as usize,
        ..facts
    })
    .grids(&[Grid::of(&[("k", Values::These(&["2", "3", "4"]))])]);

/// JBSQ(k): one queue, and bounded ones at the workers.
#[must_use]
pub fn jbsq(
    shape: &Shape,
    depth: usize,
) -> System<Central<Fifo, Bounded, Fixed>, locals::LocalFifo> {
    let parts = CentralParts {
        discipline: Fifo::new(shape.queue_limit),
        placement: Bounded,
        control: Fixed::Open,
    };
    let ingress = central(shape, depth, parts);
    System {
        depth,
        ..system(POLICY.about.name, shape, ingress, locals::LocalFifo)
    }
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = usize;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<usize, SpecError> {
        Ok(read.whole("k")? as usize)
    }

    fn build<V: Visit>(depth: usize, params: Params, shape: &Shape, visitor: V) -> V::Output {
        visitor.visit(System {
            params,
            ..jbsq(shape, depth)
        })
    }
}
