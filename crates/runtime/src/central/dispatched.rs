//! What an engine with a dispatcher takes of a system.

use headway_policy::server::systems::System;

/// A system whose ingress is a dispatcher.
pub(crate) struct Dispatched<I, L, M> {
    pub(crate) ingress: I,
    pub(crate) locals: Vec<L>,
    pub(crate) monitor: M,
    /// Requests a worker may hold.
    pub(crate) depth: usize,
}

impl<I, L, M> Dispatched<I, L, M> {
    /// What a dispatcher and its workers need of a system.
    pub(crate) fn of(system: System<I, L, M>) -> Self {
        Self {
            ingress: system.ingress,
            locals: system.locals,
            monitor: system.monitor,
            depth: system.depth,
        }
    }
}
