//! How a caller receives a system, whose types the policy's name decides.

use super::replicas::Replicas;
use super::system::System;
use crate::server::role::{Ingress, Local, Monitor};

/// Takes a system whatever its types. No method has a default: a visitor that runs the system must run all its instances, and one that
/// asks only what kind of system it is says so by [`VisitInstance`].
pub trait Visit {
    /// What comes of it.
    type Output;

    /// Called once, with the system that was asked for.
    fn visit<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static;

    /// Called instead where there are several dispatchers.
    fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static;
}

/// Takes one instance of a system whatever its types: the system itself, or where there are several dispatchers the first one's.
pub trait VisitInstance {
    /// What comes of it.
    type Output;

    /// Called once.
    fn visit_instance<I, L, M>(self, instance: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static;
}

impl<V: VisitInstance> Visit for V {
    type Output = V::Output;

    fn visit<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        self.visit_instance(system)
    }

    fn visit_replicas<I, L, M>(self, mut replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        self.visit_instance(replicas.instances.swap_remove(0))
    }
}

impl<I, L, M> Replicas<I, L, M>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    /// Hands the only instance, or all of them, to the visitor.
    pub(super) fn visit<V: Visit>(mut self, visitor: V) -> V::Output {
        match self.instances.len() {
            1 => visitor.visit(self.instances.remove(0)),
            _ => visitor.visit_replicas(self),
        }
    }
}
