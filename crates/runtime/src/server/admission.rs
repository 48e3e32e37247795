//! Which policies a live server runs, and how: decided without starting anything.

use headway_policy::Shape;
use headway_policy::role::{Ingress, Local, Monitor, Owner};
use headway_policy::spec::{Spec, Value};
use headway_policy::systems::{self, Replicas, System, Visit};

use crate::error::StartError;
use crate::parts::Layout;

/// How a live server carries a policy out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// Whether a dispatcher places requests; else the network steers them.
    pub has_dispatcher: bool,
    /// Whether the dispatcher interrupts requests.
    pub dispatcher_interrupts: bool,
    /// Whether workers interrupt their own requests.
    pub workers_interrupt: bool,
}

impl Admission {
    /// Whether running requests are interrupted.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        self.dispatcher_interrupts || self.workers_interrupt
    }
}

/// Whether a server of this shape and layout runs a policy, and how. [`Builder::start`](crate::Builder::start) asks the same.
///
/// # Errors
/// [`StartError`], which says why not and what to choose instead.
pub fn admit(spec: &Spec, shape: &Shape, layout: Layout) -> Result<Admission, StartError> {
    // First what it is: a policy that no live server runs need not be told what else it lacks.
    let admission = systems::with(spec, shape, Judge(layout))??;
    systems::check(spec, shape)?;
    Ok(admission)
}

struct Judge(Layout);

impl Visit for Judge {
    type Output = Result<Admission, StartError>;

    fn visit<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let policy = system.name;
        let admission = Admission {
            has_dispatcher: I::OWNER == Owner::Dispatcher,
            dispatcher_interrupts: M::PREEMPTS,
            workers_interrupt: L::SLICES,
        };
        match I::OWNER {
            _ if system.params.contains(&("profile", Value::Word("known"))) => {
                Err(StartError::KnownProfile { policy })
            }
            Owner::Nobody => Err(StartError::Unplaced { policy }),
            Owner::Steering if admission.interrupts() => Err(StartError::Preemptive { policy }),
            Owner::Dispatcher if admission.interrupts() && self.0 == Layout::Inline => {
                Err(StartError::Inline)
            }
            Owner::Dispatcher | Owner::Steering => Ok(admission),
        }
    }

    fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let policy = replicas.instances[0].name;
        Err(StartError::Dispatchers { policy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::Resume;

    fn admitted(policy: &str, layout: Layout) -> Result<Admission, StartError> {
        let mut shape = Shape::new(2).class(1_000, 0.5).class(100_000, 0.5);
        shape.resume = Resume::OwnWorker;
        admit(&policy.parse().unwrap(), &shape, layout)
    }

    #[test]
    fn what_no_live_server_runs_is_refused_for_the_right_reason() {
        for policy in ["synergy", "tardis"] {
            let error = admitted(policy, Layout::Auto).unwrap_err();
            assert!(
                matches!(
                    error,
                    StartError::Preemptive { .. } | StartError::Unplaced { .. }
                ),
                "{policy}: {error}"
            );
        }
        let refused = |policy, layout| admitted(policy, layout).unwrap_err();
        assert!(matches!(
            refused("concord,dispatchers=2", Layout::Auto),
            StartError::Dispatchers { .. }
        ));
        assert!(matches!(
            refused("darc,profile=known", Layout::Auto),
            StartError::KnownProfile { .. }
        ));
        assert!(matches!(
            refused("concord", Layout::Inline),
            StartError::Inline
        ));
        assert!(matches!(refused("ps", Layout::Auto), StartError::Policy(_)));
    }

    #[test]
    fn how_a_policy_is_carried_out_is_said() {
        let said = |policy| admitted(policy, Layout::Auto).unwrap();
        assert!(!said("d-fcfs").has_dispatcher);
        let darc = said("darc");
        assert!(darc.has_dispatcher && !darc.interrupts());
        assert!(said("concord").dispatcher_interrupts);
        assert!(said("tiny-quanta").workers_interrupt);
    }
}
