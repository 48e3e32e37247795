//! Systems that differ in the order of the queue, each a choice of parts.

use super::build::Build;
use super::chosen::{ChosenControl, ChosenDiscipline, ChosenMonitor, ChosenParts, ChosenPlacement};
use super::describe::ServerPolicy;
use super::visit::Visit;
use crate::server::Shape;
use crate::spec::{Params, Reader, SpecError};

/// A recipe: any idle worker takes the next request of the discipline, under a monitor or none.
pub(super) trait Ordered {
    /// What the policy says of itself.
    const POLICY: ServerPolicy;

    /// The order of the queue, by the name that `compose` has for it.
    const DISCIPLINE: &'static str;

    /// Who interrupts, by the name that `compose` has for it, unless a parameter `preemption` chooses.
    const PREEMPTION: &'static str;
}

impl<P: Ordered> Build for P {
    const POLICY: &'static ServerPolicy = &<P as Ordered>::POLICY;
    type Settings = ChosenParts;

    fn read(read: &mut Reader<'_>, shape: &Shape) -> Result<ChosenParts, SpecError> {
        let preemption = if read.has("preemption") {
            read.word("preemption")?
        } else {
            P::PREEMPTION
        };
        let chosen = ChosenParts {
            discipline: ChosenDiscipline::read(P::DISCIPLINE, shape, read)?,
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
        let name = <P as Build>::POLICY.about.name;
        chosen.assemble(name, params, shape).visit(visitor)
    }
}
