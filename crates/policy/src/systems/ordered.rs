//! Systems that differ in the order of the queue, each a choice of parts.

use super::parts::{self, Composed, Parts};
use super::{ServerPolicy, Visit, cscq, drr, edf, mlfq, on_blocked, shinjuku, sjf, srpt, wrr};
use crate::Shape;
use crate::spec::{Reader, Spec, SpecError};

/// The parts of a system of the literature: any idle worker takes what the discipline offers,
/// under a monitor, or none.
pub(super) struct Recipe {
    pub(super) policy: ServerPolicy,
    pub(super) discipline: &'static str,
    /// Who interrupts, unless a parameter `preemption` chooses.
    pub(super) preemption: &'static str,
}

const RECIPES: &[Recipe] = &[
    sjf::RECIPE,
    srpt::RECIPE,
    edf::RECIPE,
    drr::RECIPE,
    wrr::RECIPE,
    mlfq::RECIPE,
    cscq::RECIPE,
    on_blocked::RECIPE,
    shinjuku::MULTI_QUEUE,
];

/// One of `sjf`, `srpt`, `edf`, `drr`, `wrr`, `mlfq`, `cscq`, `on-blocked` and `shinjuku-mq`.
///
/// # Errors
/// [`SpecError`] when it is none of them, or a parameter is unknown or out of range.
pub fn ordered(shape: &Shape, spec: &Spec) -> Result<Composed, SpecError> {
    let mut recipes = RECIPES.iter();
    let recipe = recipes
        .find(|recipe| recipe.policy.about.name == spec.name)
        .ok_or_else(|| super::unknown(spec))?;
    let about = &recipe.policy.about;
    let mut read = Reader::new(about, spec)?;
    let preemption = if read.has("preemption") {
        read.word("preemption")?
    } else {
        recipe.preemption
    };
    let discipline = parts::discipline(recipe.discipline, shape, &mut read)?;
    let monitor = parts::monitor(preemption, shape, &mut read)?;
    read.refuse_unread("left out: nothing is interrupted that could cost")?;
    let parts = Parts {
        monitor,
        ..Parts::idle(discipline)
    };
    Ok(parts.assemble(about.name, shape).used(read.used()))
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(ordered(shape, spec)?.visit(visitor))
}
