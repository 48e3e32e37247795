//! A policy's replications, judged by the SLO.

use crate::arrangement::PlannedServer;
use crate::question::{PlanError, PlanProgress, Question};
use headway_policy::server::systems::ServerSpec;
use headway_report::stats::ConfidenceInterval;
use headway_report::{Run, Slo, TrialResult};
use headway_sim::{CONFIDENCE, Experiment, Length, Offered, in_parallel};
use headway_workload::Workload;
use std::collections::BTreeMap;

/// A simulation to run several times, with a seed for each run.
#[derive(Clone, Debug)]
pub(crate) struct SeededTask {
    pub(crate) server: PlannedServer,
    pub(crate) workload: Workload,
    pub(crate) workers: usize,
    pub(crate) offered: Offered,
    pub(crate) requests: u64,
    pub(crate) replications: u64,
    /// Seed of the first replication.
    pub(crate) seed: u64,
}

/// The result of a replication.
#[derive(Clone, Debug)]
pub(crate) struct Replication {
    pub(crate) met: bool,
    pub(crate) overloaded: bool,
    /// The shed fraction of its requests.
    lost: f64,
    /// Largest value ÷ bound; `None` where it is unknown.
    pub(crate) used: Option<f64>,
    /// The bound of this ratio.
    tightest: Option<String>,
    pub(crate) run: Run,
}

/// All replications of a task, in the order of their seeds.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) task: SeededTask,
    pub(crate) replications: Vec<Replication>,
}

/// Runs all tasks, every replication on its own.
pub(crate) fn try_all(
    question: &Question,
    tasks: Vec<SeededTask>,
    stage: &'static str,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Vec<Tried>, PlanError> {
    let replications =
        |(index, task): (usize, &SeededTask)| (0..task.replications).map(move |r| (index, r));
    let runs: Vec<(usize, u64)> = tasks.iter().enumerate().flat_map(replications).collect();
    progress(PlanProgress::Stage(stage, runs.len() as u64));
    let judged = in_parallel(
        &runs,
        question.threads,
        |&(index, replication): &(usize, u64)| {
            let seed = tasks[index].seed.wrapping_add(replication);
            judge(&question.slo, &question.experiment(&tasks[index], seed))
        },
        |_, _| {
            progress(PlanProgress::Run);
        },
    );
    if question.is_cut_off() {
        return Err(PlanError::CutOff);
    }
    let mut judged = judged.into_iter();
    tasks
        .into_iter()
        .map(|task: SeededTask| {
            let mine = judged.by_ref().take(task.replications as usize);
            Ok(Tried {
                replications: mine.collect::<Result<_, _>>()?,
                task,
            })
        })
        .collect()
}

impl Question {
    pub(crate) fn experiment(&self, task: &SeededTask, seed: u64) -> Experiment {
        let mut experiment =
            Experiment::new(task.workload.clone(), task.server.policy.clone().into())
                .workers(task.workers)
                .offered(task.offered)
                .costs(self.costs_of(&task.server))
                .seed(seed);
        experiment.length = Length::Requests(task.requests);
        experiment.network_ns = self.network_ns;
        experiment.queue_limit = self.queue_limit;
        experiment.begun_at_most = self.begun_at_most;
        experiment.resume = task.server.resume;
        experiment.cutoff = self.cutoff.clone();
        experiment
    }
}

fn judge(slo: &Slo, experiment: &Experiment) -> Result<Replication, PlanError> {
    let run = experiment.run()?.run;
    let tightest = slo.tightest(&run);
    Ok(Replication {
        met: slo.evaluate(&run)?.is_met() && run.sustained(),
        overloaded: run.meta.overloaded,
        lost: run.lost_fraction(),
        used: tightest.as_ref().map(|(_, used)| *used),
        tightest: tightest.map(|(bound, _)| bound.to_string()),
        run,
    })
}

impl Tried {
    pub(crate) fn met(&self) -> u64 {
        self.replications.iter().filter(|one| one.met).count() as u64
    }

    pub(crate) fn all_met(&self) -> bool {
        self.replications.iter().all(|one| one.met)
    }

    pub(crate) fn overloaded(&self) -> bool {
        self.replications.iter().any(|one| one.overloaded)
    }

    /// The largest shed fraction of all replications.
    pub(crate) fn lost(&self) -> f64 {
        let each = self.replications.iter().map(|one| one.lost);
        each.fold(0.0, f64::max)
    }

    /// Whether every class has the same results in every replication, to the last digit.
    pub(crate) fn is_twin(&self, other: &Self) -> bool {
        let pairs = self.replications.iter().zip(&other.replications);
        pairs
            .into_iter()
            .all(|(a, b)| a.run.classes == b.run.classes)
    }

    /// Each replication's ratio of value to bound; `None` unless all have one.
    pub(crate) fn uses(&self) -> Option<Vec<f64>> {
        self.replications.iter().map(|one| one.used).collect()
    }

    /// Their geometric mean.
    pub(crate) fn used(&self) -> Option<f64> {
        let uses = self.uses()?;
        let logs: f64 = uses.iter().map(|used| libm::log(*used)).sum();
        Some(libm::exp(logs / uses.len() as f64))
    }

    /// The same mean with its interval; `None` for a single replication.
    pub(crate) fn interval(&self) -> Option<ConfidenceInterval> {
        let against_one: Vec<(f64, f64)> =
            self.uses()?.into_iter().map(|used| (used, 1.0)).collect();
        headway_report::stats::ratio_interval(&against_one, CONFIDENCE).ok()
    }

    /// The bound that has the largest ratio in most replications.
    pub(crate) fn tightest(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for bound in self
            .replications
            .iter()
            .filter_map(|one| one.tightest.as_deref())
        {
            *counts.entry(bound).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(bound, _)| bound.into())
    }

    /// The result for a report, under the policy's name in the server's syntax.
    pub(crate) fn report(&self, policy: &ServerSpec) -> TrialResult {
        TrialResult {
            policy: policy.to_string(),
            load: self.replications[0].run.meta.load,
            met: self.met(),
            replications: self.task.replications,
            overloaded: self.overloaded(),
            lost_fraction: self.lost(),
            slo_use: self.used(),
        }
    }
}
