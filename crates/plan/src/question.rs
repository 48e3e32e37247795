//! The question that a plan answers.

use headway_policy::Resume;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;
use headway_report::slo::{Slo, SloError};
use headway_sim::{MachineCosts, Offered, SimError, available_threads};
use headway_workload::fit::Doubt;
use headway_workload::{Arrivals, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The question that a plan answers.
#[derive(Clone, Debug)]
pub struct Question {
    /// The requests that arrive.
    pub workload: Workload,
    /// The rate or the load at which they arrive.
    pub offered: Offered,
    /// The SLO that the plan must meet.
    pub slo: Slo,
    /// Number of workers for the ranking, one dispatcher beside them not counted.
    pub workers: usize,
    /// Cores of the machine, where workers share them with dispatchers and timers: a candidate's workers are the cores
    /// that its dispatchers and timers leave, and it is also tried with workers that take turns as the dispatcher or time themselves. `None`: every candidate
    /// has `workers` workers, whatever further cores it needs.
    pub cores: Option<usize>,
    /// Arrivals of each run of the last round; the first tenth is not measured.
    pub requests: u64,
    /// Runs of each candidate in the last round, of consecutive seeds; at least 2 for intervals.
    pub replications: u64,
    /// Seed of the first run.
    pub seed: u64,
    /// The costs of dispatching and preemption, by layout.
    pub costs: MachineCosts,
    /// The further cost of receiving a request, ns. The dispatcher pays it, or the worker under a policy without a dispatcher.
    pub receive_ns: u64,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Most requests in one queue.
    pub queue_limit: usize,
    /// Requests that may have begun and not ended, as in a pool; others wait before the policy. `None`: any number, as in a server.
    pub begun_at_most: Option<usize>,
    /// Where interrupted requests may resume; policies that cannot obey it are left out. `None`: on their own worker, and anywhere under a policy that moves
    /// them.
    pub resume: Option<Resume>,
    /// Policies to try, with their fixed parameters; all policies of the table if empty.
    pub policies: Option<Vec<ServerSpec>>,
    /// Whether the live server runs a policy.
    pub live: fn(&ServerSpec) -> bool,
    /// The trace behind the workload. It decides: the candidates are screened on it, the finalists run on it as well, and so do the verdict and the number of workers.
    pub replay: Option<Workload>,
    /// Why the process that was fitted to that trace's arrivals may mislead.
    pub doubt: Option<Doubt>,
    /// Number of threads; the plan is independent of it.
    pub threads: usize,
    /// Once it is true no further run begins: the plan gives the last round that was complete, and says that it was cut off.
    pub cutoff: Option<Arc<AtomicBool>>,
}

/// Why there is no plan.
#[derive(thiserror::Error)]
pub enum PlanError {
    /// The table, or a policy's parameters, are wrong.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The runs.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The SLO.
    #[error(transparent)]
    Slo(#[from] SloError),
    /// None of the named policies is in the table or applies to the workload.
    #[error("none of the policies to try is a candidate for this workload")]
    NoCandidates,
    /// The plan was [cut off](Question::cutoff) before its first round was complete.
    #[error("the plan was cut off before its first round was complete")]
    CutOff,
}

headway_words::debug_is_display!(PlanError);

/// The progress of the planner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanProgress {
    /// A stage of this number of runs begins.
    Stage(&'static str, u64),
    /// A run is done.
    Run,
}

impl Question {
    /// Ideal costs, 400 000 requests, 5 replications from seed 1.
    #[must_use]
    pub fn new(workload: Workload, slo: Slo, workers: usize, offered: Offered) -> Self {
        Self {
            workload,
            offered,
            slo,
            workers,
            cores: None,
            requests: 400_000,
            replications: 5,
            seed: 1,
            costs: MachineCosts::default(),
            receive_ns: 0,
            network_ns: 0,
            queue_limit: usize::MAX,
            begun_at_most: None,
            resume: Some(Resume::Anywhere),
            policies: None,
            live: |_| true,
            replay: None,
            doubt: None,
            threads: available_threads(),
            cutoff: None,
        }
    }

    /// The question about the recorded arrivals themselves, where there is a recording: a single replication, since nothing in it
    /// is drawn but the policy's own choices.
    pub(crate) fn on_the_recording(&self) -> Option<Self> {
        let replay = self.replay.clone()?;
        let Arrivals::Trace(trace) = &replay.arrivals else {
            return None;
        };
        Some(Self {
            requests: trace.records().len() as u64,
            replications: 1,
            workload: replay,
            ..self.clone()
        })
    }

    /// Whether the plan is to end early.
    pub(crate) fn is_cut_off(&self) -> bool {
        let cutoff = self.cutoff.as_ref();
        cutoff.is_some_and(|cutoff| cutoff.load(Ordering::Relaxed))
    }

    /// Whether queues are bounded, so that requests may be shed.
    pub(crate) fn is_bounded(&self) -> bool {
        self.queue_limit != usize::MAX
    }
}
