//! A plan: what `headway plan --format json` prints.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::run::Run;
use crate::stats::ConfidenceInterval;

/// The result of a search for policies, parameters and numbers of workers that meet an SLO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// The SLO, as given.
    pub slo: String,
    /// The workload's name.
    pub workload: String,
    /// Whether the simulations assumed that dispatching and preemption cost nothing.
    pub ideal: bool,
    /// Cores for workers and dispatchers together; absent where only workers were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cores: Option<usize>,
    /// Workers of a server with one dispatcher.
    pub workers: usize,
    /// Offered load, as a fraction of the capacity of these workers.
    pub load: f64,
    /// The same as an arrival rate, in requests per second.
    pub offered_rps: f64,
    /// Seed of the first replication; all candidates see the same arrivals.
    pub seed: u64,
    /// The verdict.
    pub verdict: PlanVerdict,
    /// Bounds that no policy can keep, with the proof of each; empty unless one was found.
    pub impossible: Vec<Impossible>,
    /// The rounds of the search.
    pub rounds: Vec<PlanRound>,
    /// The candidates of the last round, best first.
    pub ranking: Vec<PlanEntry>,
    /// How the ranking was compared with the best candidate.
    pub comparison: PlanComparison,
    /// The best candidate that the live server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// For each policy, the fewest workers that meet the SLO at the same rate.
    pub cores: Vec<CoresNeeded>,
    /// The best candidate at higher loads and with longer service times.
    pub sensitivity: Vec<Sensitivity>,
    /// The best candidate on the recorded trace itself, which decides the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<TrialResult>,
    /// A live run of the best candidate that the live server supports; absent unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Why the process that was fitted to the trace's arrivals may mislead; absent without a trace or a doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Caveats to the figures, for the reader.
    pub caveats: Vec<String>,
    /// Whether the plan was interrupted: the ranking is that of the last complete round, and what is missing was not reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}

/// A policy simulated and run live, with the same arrivals for the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The policy.
    pub policy: String,
    /// Whether the live run met the SLO.
    pub met: bool,
    /// The simulated run.
    pub simulated: Run,
    /// The live run.
    pub live: Run,
}

/// The verdict of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanVerdict {
    /// The best candidate met the SLO: on the trace itself where there is one, else in every replication.
    Met,
    /// No candidate met the SLO; whether another policy could is unknown.
    Missed,
    /// The plan was interrupted before its last round, on which the verdict rests.
    Undecided,
    /// No policy can meet the SLO: a bound proves it.
    Impossible,
}

/// A bound of the SLO that no policy can keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impossible {
    /// The bound of the SLO, or `every bound`.
    pub bound: String,
    /// The kind of proof.
    pub shown_by: ShownBy,
    /// The proof in words, with its figures.
    pub why: String,
}

/// The limit that every policy is subject to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShownBy {
    /// The offered work exceeds the workers' capacity.
    Utilization,
    /// The requests' own service times exceed the bound.
    ServiceTime,
    /// The mean latency of one worker as fast as all workers together.
    PooledMean,
    /// The largest latency of one worker as fast as all workers together.
    PooledMax,
    /// The share of requests that must be late even at one worker as fast as all workers together.
    PooledPercentile,
}

/// A round of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRound {
    /// Candidates compared.
    pub candidates: usize,
    /// Arrivals of each run.
    pub requests: u64,
    /// Runs of each candidate.
    pub replications: u64,
}

/// How the candidates of the last round were compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanComparison {
    /// What makes up for comparing many.
    pub method: CompareMethod,
    /// Nominal probability that every [`of_best`](PlanEntry::of_best) interval contains the true ratio.
    pub confidence: f64,
    /// Pairs of candidates that share the error probability: all pairs of the ranking, since the same runs choose the best.
    pub pairs: usize,
}

/// What makes up for comparing many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompareMethod {
    /// The error probability is divided equally among the pairs.
    Bonferroni,
}

/// A candidate of the last round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// The policy in the syntax of `--policy`.
    pub policy: String,
    /// All its parameters as used.
    pub params: Map<String, Value>,
    /// Who dispatches and interrupts: dedicated, inline, steered, monitored or unplaced; empty in older reports.
    #[serde(default)]
    pub layout: String,
    /// Where an interrupted request resumes, anywhere or own-worker; empty in older reports.
    #[serde(default)]
    pub resume: String,
    /// Number of workers.
    pub workers: usize,
    /// Cores of the workers, and of the dispatchers and timers beside them.
    #[serde(default)]
    pub cores: usize,
    /// Whether the live server runs it.
    pub live: bool,
    /// The largest part of its requests that a replication shed, 0 to 1.
    #[serde(default)]
    pub lost_fraction: f64,
    /// Replications that met the SLO.
    pub met: u64,
    /// Replications made.
    pub replications: u64,
    /// Whether some replication was overloaded.
    pub overloaded: bool,
    /// The largest ratio of value to bound over all bounds, as the geometric mean over the replications.
    /// The SLO is met up to 1. Absent where a replication has no such ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_use: Option<ConfidenceInterval>,
    /// The bound with the largest ratio of value to bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tightest: Option<String>,
    /// Its `slo_use` ÷ that of the best, paired by seed. The confidence here is that of the single
    /// interval; [`PlanComparison`] has that of all intervals together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_best: Option<ConfidenceInterval>,
    /// The candidate on the recorded trace itself. Those that meet the SLO there come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<TrialResult>,
    /// Other candidates with identical results for every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// Whether it is statistically tied with the best: `of_best` contains 1.
    pub tied: bool,
}

/// How many workers a policy needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoresNeeded {
    /// The policy.
    pub policy: String,
    /// Its layout, as in [`PlanEntry::layout`].
    #[serde(default)]
    pub layout: String,
    /// The fewest workers that met the SLO, on the trace itself where there is one, else in every replication; `None` when not even
    /// `searched_to` did.
    pub workers: Option<usize>,
    /// These workers' cores plus those of the threads beside them, where the machine's cores were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Most workers tried.
    pub searched_to: usize,
    /// Offered load, as a fraction of the capacity of `workers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

/// The best candidate after a change of load or service times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// What changed, such as `load +20 %`.
    pub change: String,
    /// Its result.
    #[serde(flatten)]
    pub trial: TrialResult,
}

/// The results of a policy's replications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// The policy.
    pub policy: String,
    /// Offered load.
    pub load: f64,
    /// Replications that met the SLO.
    pub met: u64,
    /// Replications made.
    pub replications: u64,
    /// Whether some replication was overloaded.
    pub overloaded: bool,
    /// The largest part of its requests that a replication shed, 0 to 1.
    #[serde(default)]
    pub lost_fraction: f64,
    /// The geometric mean of [`PlanEntry::slo_use`] over the replications; absent where a replication has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_use: Option<f64>,
}
