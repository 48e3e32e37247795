//! Changing a policy's parameters while the server serves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use headway_policy::Shape;
use headway_policy::server::change::{self, Changed, ParamChange};
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::{Params, SpecError};

use crate::engine::parts::{LiveEngine, SetRules};
use crate::threads::control::ServerControl;

/// Changes the parameters of a server's policy while it serves, from any thread; see [`Server::tuner`](crate::Server::tuner).
#[derive(Clone)]
pub struct Tuner {
    control: Arc<ServerControl>,
    set_rules: SetRules,
    shape: Arc<Shape>,
    in_force: Arc<Mutex<InForce>>,
}

/// The parameters in force.
#[derive(Clone, Debug)]
pub struct InForce {
    /// The policy with its parameters, as given at the start or changed since.
    pub spec: ServerSpec,
    /// All parameters, defaults included.
    pub params: Params,
    /// Since when: the server's start, or the last change.
    pub since: SystemTime,
    /// How often they were changed.
    pub changes: u64,
}

impl Tuner {
    pub(super) fn of(engine: &LiveEngine, shape: Shape, spec: ServerSpec, params: Params) -> Self {
        let in_force = InForce {
            spec,
            params,
            since: SystemTime::now(),
            changes: 0,
        };
        // What is built for its rules alone holds no requests.
        let shape = Shape {
            job_capacity: 1,
            ..shape
        };
        Self {
            control: Arc::clone(&engine.control),
            set_rules: Arc::clone(&engine.set_rules),
            shape: Arc::new(shape),
            in_force: Arc::new(Mutex::new(in_force)),
        }
    }

    /// The parameters in force.
    #[must_use]
    pub fn in_force(&self) -> InForce {
        self.lock().clone()
    }

    /// Sets parameters, each by key and value, and returns those that differ now, also by following from others. The policy keeps what it has
    /// learned, requests keep their places, and a slice that was given before ends as it was given. The server's threads go by the new
    /// rules from their next turns on.
    ///
    /// # Errors
    /// [`SpecError`], and nothing changes: the policy has no such parameter, takes it at the start only, or cannot have the value.
    pub fn set(&self, wanted: &[(String, String)]) -> Result<Vec<ParamChange>, SpecError> {
        let mut in_force = self.lock();
        let Changed {
            spec,
            params,
            changes,
        } = change::change(&in_force.spec, &self.shape, wanted)?;
        if changes.is_empty() {
            return Ok(changes);
        }
        (self.set_rules)(&spec, &self.shape)?;
        self.control.announce_rules();
        *in_force = InForce {
            spec,
            params,
            since: SystemTime::now(),
            changes: in_force.changes + 1,
        };
        Ok(changes)
    }

    /// One change at a time.
    fn lock(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
