//! A candidate with what it did.

use crate::trial::Tried;
use headway_policy::Resume;
use headway_policy::server::systems::ServerSpec;
use headway_report::PlanEntry;
use headway_report::stats::ConfidenceInterval;

/// A candidate with its last replications.
pub(crate) struct Ranked {
    pub(crate) policy: ServerSpec,
    pub(crate) tried: Tried,
    /// The run on the recorded arrivals, where there are any.
    pub(crate) recorded: Option<Tried>,
    pub(crate) live: bool,
    /// Candidates under which every request fared the same.
    pub(crate) alike: Vec<ServerSpec>,
}

impl Ranked {
    /// The key of the ranking: the largest ratio of value to bound; infinite where a replication has none.
    pub(crate) fn badness(&self) -> f64 {
        self.tried.used().unwrap_or(f64::INFINITY)
    }

    /// The runs that decide: those on the recording, where there is one.
    pub(crate) fn deciding(&self) -> &Tried {
        self.recorded.as_ref().unwrap_or(&self.tried)
    }

    pub(crate) fn entry(&self, of_best: Option<ConfidenceInterval>) -> PlanEntry {
        PlanEntry {
            policy: self.policy.to_string(),
            layout: self.tried.task.server.layout.name().into(),
            resume: match self.tried.task.server.resume {
                Resume::Anywhere => "anywhere",
                Resume::OwnWorker => "own-worker",
            }
            .into(),
            params: self.tried.replications[0].run.meta.params.clone(),
            workers: self.tried.task.workers,
            cores: self.tried.task.workers + self.tried.task.server.cores_beside(),
            live: self.live,
            lost_fraction: self.tried.lost(),
            met: self.tried.met(),
            replications: self.tried.task.replications,
            overloaded: self.tried.overloaded(),
            slo_use: self.tried.interval(),
            tightest: self.tried.tightest(),
            replay: self
                .recorded
                .as_ref()
                .map(|tried| tried.report(&self.policy)),
            alike: self.alike.iter().map(ServerSpec::to_string).collect(),
            tied: of_best.is_some_and(|ratio| !ratio.distinguishable_from(1.0)),
            of_best,
        }
    }
}
