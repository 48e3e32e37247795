//! Which policies a live server runs, and how: decided without starting anything.

use headway_policy::role::Owner;
use headway_policy::spec::{Spec, SpecError};
use headway_policy::systems::{self, Facts, Preemption};
use headway_policy::{Policy, Shape};

use crate::error::StartError;

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

/// Whether a server of this shape runs a policy, and how. [`Builder::start`](crate::Builder::start) asks the same.
///
/// # Errors
/// [`StartError`], which says why not and what to choose instead.
pub fn admit(spec: &Spec, shape: &Shape) -> Result<Admission, StartError> {
    let server = Policy::server(spec)?;
    let (policy, facts) = (server.about.name, server.facts(spec));
    let checked = systems::check(spec, shape);
    // That a policy moves what it interrupts is the lesser fault: one that no live server runs is refused for that.
    if !matches!(checked, Err(SpecError::Roams { .. })) {
        checked.clone()?;
    }
    if facts.knows_load {
        return Err(StartError::KnownProfile { policy });
    }
    if facts.dispatchers > 1 {
        return Err(StartError::Dispatchers { policy });
    }
    if facts.owner == Owner::Nobody {
        return Err(StartError::Unplaced { policy });
    }
    checked?;
    Ok(Admission {
        has_dispatcher: facts.owner == Owner::Dispatcher,
        dispatcher_interrupts: facts.preemption == Facts::BY_DISPATCHER,
        workers_interrupt: !matches!(facts.preemption, Preemption::None | Facts::BY_DISPATCHER),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::Resume;

    fn admitted(policy: &str) -> Result<Admission, StartError> {
        admitted_to(policy, Resume::Anywhere)
    }

    fn admitted_to(policy: &str, resume: Resume) -> Result<Admission, StartError> {
        let mut shape = Shape::new(2).class(1_000, 0.5).class(100_000, 0.5);
        shape.resume = resume;
        admit(&policy.parse().unwrap(), &shape)
    }

    #[test]
    fn what_no_live_server_runs_is_refused_for_the_right_reason() {
        let refused = |policy| admitted(policy).unwrap_err();
        assert!(matches!(
            refused("concord,dispatchers=2"),
            StartError::Dispatchers { .. }
        ));
        assert!(matches!(
            refused("darc,profile=known"),
            StartError::KnownProfile { .. }
        ));
        assert!(matches!(refused("tardis"), StartError::Unplaced { .. }));
        assert!(matches!(refused("ps"), StartError::Policy(_)));
    }

    #[test]
    fn requests_that_stay_on_their_workers_are_no_matter_of_workers_that_help_themselves() {
        let refused = admitted_to("synergy", Resume::OwnWorker);
        let roams = matches!(refused, Err(StartError::Policy(SpecError::Roams { .. })));
        assert!(roams, "{refused:?}");
        assert!(admitted_to("concord", Resume::OwnWorker).is_ok());
    }

    #[test]
    fn how_a_policy_is_carried_out_is_said() {
        let said = |policy| admitted(policy).unwrap();
        assert!(!said("d-fcfs").has_dispatcher);
        let darc = said("darc");
        assert!(darc.has_dispatcher && !darc.interrupts());
        assert!(said("concord").dispatcher_interrupts);
        assert!(said("tiny-quanta").workers_interrupt);
        let synergy = said("synergy");
        assert!(!synergy.has_dispatcher && synergy.workers_interrupt);
    }

    #[test]
    fn it_runs_what_policies_say_that_it_runs() {
        for policy in systems::ALL {
            let name = policy.about.name;
            let all = policy.engines == systems::Engines::All;
            assert_eq!(admitted(name).is_ok(), all, "{name}");
            assert_eq!(policy.runs_live(&name.parse().unwrap()), all, "{name}");
        }
    }
}
