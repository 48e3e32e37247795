//! A rack in virtual time: servers behind a switch, as far apart as half a round trip.
//!
//! The switch and its control plane are those of [`headway_policy::rack`], the servers those of [`crate::server`]. The
//! round trip ages the switch's knowledge: a request reaches its server half of it later, and a reply the switch.
//! Latencies exclude it. They are the latencies at the servers, plus the time that a request waited in the switch or
//! lost by bouncing.

mod engine;
mod flights;
mod links;
mod measures;
mod ring;
mod rival;
mod score;

pub use headway_report::{RackFigures, ServerFigures};
pub use score::{RackSlo, score_candidates};

use crate::error::SimError;
use crate::experiment::Experiment;
use crate::outcome::Outcome;
use headway_policy::rack::{self, RackShape, RackSystem, RackVisit, Switch};
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::Spec;

/// Runs an experiment under a rack's policy. The servers run `inner`, or the decisions of the rack's control plane.
pub(crate) fn run(
    experiment: &Experiment,
    policy: &Spec,
    inner: Option<&ServerSpec>,
) -> Result<Outcome, SimError> {
    struct RunRack<'a> {
        experiment: &'a Experiment,
        inner: Option<&'a ServerSpec>,
    }
    impl RackVisit for RunRack<'_> {
        type Output = Result<Outcome, SimError>;
        fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output {
            engine::run(self.experiment, system, self.inner, score::scores)
        }
    }
    let run = RunRack { experiment, inner };
    rack::systems::behind_core_switch(policy, &shape(experiment), experiment.racks, run)?
}

/// Checks the rack policy and that of its servers.
pub(crate) fn check(
    experiment: &Experiment,
    policy: &Spec,
    inner: Option<&ServerSpec>,
) -> Result<(), SimError> {
    rack::systems::check(policy, &shape(experiment))?;
    if let Some(inner) = inner {
        experiment.costs.check_policy(inner, &experiment.shape())?;
    }
    Ok(())
}

fn shape(experiment: &Experiment) -> RackShape {
    const HELD_AT_FIRST: usize = 1024;
    RackShape {
        cores: vec![experiment.workers; experiment.servers],
        types: experiment.shape().classes,
        room: HELD_AT_FIRST.min(experiment.queue_limit),
        seed: experiment.seed,
    }
}
