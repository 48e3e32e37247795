//! DARC that leaves no class overloaded that need not be.

use super::darc::{GRIDS, PARAMS, RESERVING, by_profile, known};
use super::{DarcParams, Description, ServerPolicy, System, Visit, typed};
use crate::controls::DarcStable;
use crate::disciplines::Typed;
use crate::placements::Reserved;
use crate::spec::{Reader, Spec, SpecError};
use crate::{Central, Shape, locals};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "darc-stable",
        aliases: &[],
        summary: "DARC that never leaves a class overloaded when it need not be",
        paper: "",
        params: PARAMS,
    },
    defaults: RESERVING,
    with_params: by_profile,
    grids: GRIDS,
    ..ServerPolicy::CENTRAL
};

/// DARC with the stability check.
#[must_use]
pub fn darc_stable(
    shape: &Shape,
    params: DarcParams,
) -> System<Central<Typed, Reserved, DarcStable>, locals::Fifo> {
    let known = params.known.then(|| known(shape));
    let control = DarcStable::new(shape.classes.len(), params.rules, known.as_ref());
    typed(POLICY.about.name, shape, control)
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    let mut read = Reader::new(&POLICY.about, spec)?;
    let params = DarcParams::read(&mut read)?;
    Ok(visitor.visit(darc_stable(shape, params).used(read)))
}
