//! A plan: what `headway plan --format json` prints.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::run::Run;
use crate::stats::ConfidenceInterval;

/// Which policy, with which parameters, on how many workers meets an SLO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// The SLO, as given.
    pub slo: String,
    /// The workload's name.
    pub workload: String,
    /// Whether the machinery was taken to cost nothing.
    pub ideal: bool,
    /// Cores that the candidates shared with their dispatchers; absent where workers were counted alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cores: Option<usize>,
    /// Workers of a server with one dispatcher.
    pub workers: usize,
    /// Offered load of these workers.
    pub load: f64,
    /// The same as an arrival rate, in requests per second.
    pub offered_rps: f64,
    /// Seed of the first replication; all candidates see the same arrivals.
    pub seed: u64,
    /// What came of it.
    pub verdict: PlanVerdict,
    /// Why no policy at all can meet the SLO, where that was shown.
    pub impossible: Vec<Impossible>,
    /// The rounds of the search.
    pub rounds: Vec<PlanRound>,
    /// The candidates of the last round, best first.
    pub ranking: Vec<PlanEntry>,
    /// How they were compared with the best.
    pub comparison: PlanComparison,
    /// The best candidate that the live server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// Fewest workers that meet the SLO at the same rate.
    pub cores: Vec<CoresNeeded>,
    /// What becomes of the best when more comes, or takes longer.
    pub sensitivity: Vec<Sensitivity>,
    /// The best, on the recorded trace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<TrialResult>,
    /// The best that the live server runs, run live; absent unless it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// What the reader should know before trusting the figures.
    pub caveats: Vec<String>,
}

/// A policy simulated and run live, with the same arrivals for the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The policy.
    pub policy: String,
    /// Whether the live run met the SLO.
    pub met: bool,
    /// What the simulation says.
    pub simulated: Run,
    /// What the server did.
    pub live: Run,
}

/// What came of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanVerdict {
    /// The best candidate met the SLO in every replication.
    Met,
    /// None did; that none can was not shown.
    Missed,
    /// No policy can: a bound shows it.
    Impossible,
}

/// A bound of the SLO that nobody can keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impossible {
    /// The bound of the SLO, or `every bound`.
    pub bound: String,
    /// What shows it.
    pub shown_by: ShownBy,
    /// The same with the figures.
    pub why: String,
}

/// What no policy can do better than.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShownBy {
    /// More work comes than the workers can do.
    Utilization,
    /// The service of the requests themselves.
    ServiceTime,
    /// The mean latency of one worker as fast as all.
    PooledMean,
    /// The largest latency of one worker as fast as all.
    PooledMax,
    /// How many of the requests one worker as fast as all must leave late.
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
    /// Probability, as far as few runs tell, that every [`of_best`](PlanEntry::of_best) holds the true ratio.
    pub confidence: f64,
    /// Pairs among which the error is shared: all of those ranked, since the same runs choose the best.
    pub pairs: usize,
}

/// What makes up for comparing many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompareMethod {
    /// Each pair has its part of the error.
    Bonferroni,
}

/// A candidate of the last round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// The policy as `--policy` takes it.
    pub policy: String,
    /// All its parameters as used.
    pub params: Map<String, Value>,
    /// Its workers.
    pub workers: usize,
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
    /// How much of the SLO is used: the largest value ÷ bound over all bounds, its geometric mean
    /// over the replications. Up to 1 the SLO is met. Absent where a replication has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_use: Option<ConfidenceInterval>,
    /// The bound that is used most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tightest: Option<String>,
    /// Its `slo_use` ÷ that of the best, paired by seed. With what [`PlanComparison`] says all of
    /// them hold at once; the confidence here is that of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_best: Option<ConfidenceInterval>,
    /// Other candidates under which every request fared the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// Whether the replications do not tell it from the best: `of_best` contains 1.
    pub tied: bool,
}

/// How many workers a policy needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoresNeeded {
    /// The policy.
    pub policy: String,
    /// The fewest workers that met the SLO in every replication; `None` when not even
    /// `searched_to` did.
    pub workers: Option<usize>,
    /// Those and what dispatches, where the machine's cores were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Most workers tried.
    pub searched_to: usize,
    /// The load of the workers needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

/// The best candidate in another situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// What changed, such as `load +20 %`.
    pub change: String,
    /// What came of it.
    #[serde(flatten)]
    pub trial: TrialResult,
}

/// What came of a policy's replications.
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
    /// The geometric mean of how much of the SLO was used; absent where a replication has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_use: Option<f64>,
}
