//! DARC as printed: in order of arrival until 50 000 requests have completed, windows of as many (Perséphone, SOSP '21).

use super::build::Build;
use super::darc::{
    DELAY, DELTA, DEVIATION, DarcParams, GRIDS, RESERVING, SPILLWAY, WINDOW, by_profile, darc,
    starts,
};
use super::describe::ServerPolicy;
use super::system::System;
use super::visit::Visit;
use crate::server::Shape;
use crate::spec::{Param, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("darc-paper")
    .summary("the same as printed: it starts in order of arrival, and windows close by completions alone")
    .paper("Perséphone, SOSP '21")
    .params(PARAMS)
    .defaults(RESERVING)
    .with_params(by_profile)
    .grids(GRIDS);

const PARAMS: &[Param] = &[
    DELTA,
    WINDOW,
    DEVIATION,
    DELAY,
    SPILLWAY,
    starts(&["observed", "known"]),
];

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = DarcParams;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<DarcParams, SpecError> {
        DarcParams::read_printed(read)
    }

    fn build<V: Visit>(
        settings: DarcParams,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output {
        visitor.visit(System {
            name: POLICY.about.name,
            params,
            ..darc(shape, settings)
        })
    }
}
