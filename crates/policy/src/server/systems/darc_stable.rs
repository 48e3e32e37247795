//! DARC that leaves no class overloaded that need not be.

use super::build::Build;
use super::darc::{
    DELAY, DELTA, DEVIATION, DarcParams, GRIDS, RESERVING, SPILLWAY, WINDOW, WINDOW_TIME,
    by_profile, reserving, starts,
};
use super::describe::ServerPolicy;
use super::system::System;
use super::visit::Visit;
use crate::server::controls::DarcStable;
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};
use crate::spec::{Param, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("darc-stable")
    .summary("DARC that never leaves a class overloaded when it need not be")
    .params(PARAMS)
    .defaults(RESERVING)
    .with_params(by_profile)
    .grids(GRIDS);

/// Its check needs loads, which nobody declares: it starts in order of arrival.
const PARAMS: &[Param] = &[
    DELTA,
    WINDOW,
    WINDOW_TIME,
    DEVIATION,
    DELAY,
    SPILLWAY,
    starts(&["observed", "declared", "known"]),
];

/// DARC with the stability check.
#[must_use]
pub fn darc_stable(
    shape: &Shape,
    params: DarcParams,
) -> System<Central<Typed, Reserved, DarcStable>, locals::LocalFifo> {
    reserving(POLICY.about.name, shape, params, DarcStable::new)
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = DarcParams;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<DarcParams, SpecError> {
        DarcParams::read(read)
    }

    fn build<V: Visit>(
        settings: DarcParams,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output {
        visitor.visit(System {
            params,
            ..darc_stable(shape, settings)
        })
    }
}
