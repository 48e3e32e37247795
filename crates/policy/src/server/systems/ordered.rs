//! Systems that differ in the order of the queue, each a choice of parts.

use super::build::Build;
use super::chosen::{ChosenControl, ChosenDiscipline, ChosenMonitor, ChosenParts, ChosenPlacement};
use super::describe::ServerPolicy;
use super::visit::Visit;
use crate::server::Shape;
use crate::spec::{Params, Reader, SpecError};

/// The parts of a system of the literature: any idle worker takes what the discipline offers,
/// under a monitor, or none.
pub(super) struct Recipe {
    pub(super) policy: ServerPolicy,
    pub(super) discipline: &'static str,
    /// Who interrupts, unless a parameter `preemption` chooses.
    pub(super) preemption: &'static str,
}

/// A policy made by a recipe.
pub(super) trait Ordered {
    const RECIPE: &'static Recipe;
}

impl<P: Ordered> Build for P {
    const POLICY: &'static ServerPolicy = &P::RECIPE.policy;
    type Settings = ChosenParts;

    fn read(read: &mut Reader<'_>, shape: &Shape) -> Result<ChosenParts, SpecError> {
        let preemption = if read.has("preemption") {
            read.word("preemption")?
        } else {
            P::RECIPE.preemption
        };
        let chosen = ChosenParts {
            discipline: ChosenDiscipline::read(P::RECIPE.discipline, shape, read)?,
            placement: ChosenPlacement::Idle,
            control: ChosenControl::Open,
            monitor: ChosenMonitor::read(preemption, read)?,
        };
        read.refuse_unread("left out: nothing is interrupted that could cost")?;
        Ok(chosen)
    }

    fn build<V: Visit>(
        chosen: ChosenParts,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output {
        let name = Self::POLICY.about.name;
        chosen.assemble(name, params, shape).visit(visitor)
    }
}
