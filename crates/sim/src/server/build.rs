//! Builds a server from the name of its policy.

use super::SimulatedServer;
use crate::engine::Engine;
use crate::replicated::Replicated;
use crate::{Costs, SimError};
use headway_policy::Shape;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::{Replicas, ServerSpec, System, Visit};

/// A server that obeys a rack's control plane: it runs c-FCFS, or DARC with the assigned reservation.
#[must_use]
pub fn instructed(shape: &Shape, costs: Costs) -> Box<dyn SimulatedServer> {
    let system = headway_policy::server::systems::given(shape);
    Box::new(Engine::new(system, shape, costs))
}

/// A server of this shape under the policy a spec names; `queue_limit` is that of the shape.
///
/// # Errors
/// [`SimError`] when a parameter is out of range.
pub fn server(
    spec: &ServerSpec,
    shape: &Shape,
    costs: Costs,
) -> Result<Box<dyn SimulatedServer>, SimError> {
    struct BuildServer<'a> {
        shape: &'a Shape,
        costs: Costs,
    }
    impl Visit for BuildServer<'_> {
        type Output = Box<dyn SimulatedServer>;
        fn visit<I, L, M>(self, system: System<I, L, M>) -> Box<dyn SimulatedServer>
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            Box::new(Engine::new(system, self.shape, self.costs))
        }

        fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Box<dyn SimulatedServer>
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            Box::new(Replicated::new(replicas, self.shape, self.costs))
        }
    }
    Ok(headway_policy::server::systems::with(
        spec,
        shape,
        BuildServer { shape, costs },
    )?)
}
