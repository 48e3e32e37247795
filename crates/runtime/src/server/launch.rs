//! From a system to the engine that runs it.

use std::marker::PhantomData;

use headway_policy::server::role::{Ingress, Local, Monitor, Owner};
use headway_policy::server::systems::{Replicas, System, Visit};

use super::PolicyInUse;
use crate::central::{self, Dispatched};
use crate::engine::parts::{EngineParts, LiveEngine};
use crate::error::StartError;
use crate::steered::{self, SteeredSystem};
use crate::unplaced::{self, UnplacedSystem};

/// An engine that runs, and its policy.
pub(super) struct StartedEngine {
    pub(super) engine: LiveEngine,
    pub(super) policy: PolicyInUse,
}

/// Starts the engine that the system asks for.
pub(super) struct Launch(pub(super) EngineParts);

impl Visit for Launch {
    type Output = Result<StartedEngine, StartError>;

    fn visit<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let policy = PolicyInUse {
            name: system.name,
            params: system.params.clone(),
        };
        let engine = match I::OWNER {
            Owner::Dispatcher => central::launch(vec![Dispatched::of(system)], self.0),
            Owner::Nobody => {
                assert!(!M::PREEMPTS, "workers that help themselves keep time");
                let unplaced = UnplacedSystem::<I, L, M> {
                    others: PhantomData,
                    locals: system.locals,
                    shared_queues: system.shared_queues,
                };
                unplaced::launch(unplaced, self.0)
            }
            Owner::Steering => {
                let steered = SteeredSystem::<I, L, M> {
                    ingress: PhantomData,
                    locals: system.locals,
                    monitor: system.monitor,
                    shared_queues: system.shared_queues,
                    sheds_first: system.sheds_first,
                };
                steered::launch(steered, self.0)
            }
        };
        Ok(StartedEngine {
            engine: engine?,
            policy,
        })
    }

    fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let instances = replicas.instances;
        let policy = PolicyInUse {
            name: instances[0].name,
            params: instances[0].params.clone(),
        };
        let systems = instances.into_iter().map(Dispatched::of).collect();
        Ok(StartedEngine {
            engine: central::launch(systems, self.0)?,
            policy,
        })
    }
}
