//! The machine-readable result of a run: what `--format json` prints and saved files hold.
//!
//! Field names, nesting and units are a contract with everything that reads them, fixed by the
//! schemas in `schema/`. Latencies are in µs, slowdowns are ratios, rates are in requests per
//! second. Fields marked optional are left out when they do not apply.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::cores;
use crate::histogram::Histogram;
use crate::null::null_as_nan;
use crate::rack::RackFigures;
use crate::recorder::{ClassRecord, Recorder, SLOWDOWN_SCALE};
use crate::slo_seeds::SloSeeds;

/// The largest fraction of requests that a run may lose and still count as sustained.
pub const LOST_FRACTION_MAX: f64 = 0.001;

/// Where a run took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunLevel {
    /// Simulated workers of one server.
    Server,
    /// Simulated servers behind a switch.
    Rack,
    /// Simulated applications that share the cores of a host.
    Host,
    /// A real server on this machine or over a network.
    Live,
}

/// Mean and nearest-rank percentiles of one measure.
///
/// Not a number, written as `null`, when no request was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Exact mean.
    #[serde(deserialize_with = "null_as_nan")]
    pub mean: f64,
    /// Median.
    #[serde(deserialize_with = "null_as_nan")]
    pub p50: f64,
    /// 90th percentile.
    #[serde(deserialize_with = "null_as_nan")]
    pub p90: f64,
    /// 99th percentile.
    #[serde(deserialize_with = "null_as_nan")]
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(deserialize_with = "null_as_nan")]
    pub p999: f64,
    /// Exact maximum.
    #[serde(deserialize_with = "null_as_nan")]
    pub max: f64,
}

impl Summary {
    fn latency_us(record: &ClassRecord) -> Self {
        let histogram = record.latency_ns();
        let max_ns = histogram.max().map(|max| max as f64);
        Self::new(
            histogram,
            1e3,
            histogram.mean().map(|mean| mean / 1e3),
            max_ns.map(|ns| ns / 1e3),
        )
    }

    fn slowdown(record: &ClassRecord) -> Self {
        let (mean, max) = (record.slowdown_mean(), record.slowdown_max());
        Self::new(record.slowdown_milli(), SLOWDOWN_SCALE, mean, max)
    }

    fn new(histogram: &Histogram, scale: f64, mean: Option<f64>, max: Option<f64>) -> Self {
        let max = max.unwrap_or(f64::NAN);
        // Percentiles are rounded up to their bucket's edge and the maximum is exact. So they are
        // cut at the maximum.
        let quantile = |quantile| {
            histogram
                .quantile(quantile)
                .map_or(f64::NAN, |value| (value as f64 / scale).min(max))
        };
        Self {
            mean: mean.unwrap_or(f64::NAN),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max,
        }
    }
}

/// Latency and slowdown over all classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    /// Sojourn times, in µs.
    pub latency_us: Summary,
    /// Sojourn time over un-instrumented service time.
    pub slowdown: Summary,
}

impl Overall {
    /// The summary of `recorded`.
    #[must_use]
    pub fn of(record: &ClassRecord) -> Self {
        Self {
            latency_us: Summary::latency_us(record),
            slowdown: Summary::slowdown(record),
        }
    }
}

/// The results of one class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// The class's name in the workload.
    pub name: String,
    /// Requests measured.
    pub count: u64,
    /// Measured requests shed or lost.
    pub dropped: u64,
    /// Mean un-instrumented service time, in µs.
    pub service_us: f64,
    /// Sojourn times, in µs.
    pub latency_us: Summary,
    /// Sojourn time over un-instrumented service time.
    pub slowdown: Summary,
}

impl ClassResult {
    /// The summary of a class's records.
    #[must_use]
    pub fn of(record: &ClassRecord) -> Self {
        let Overall {
            latency_us,
            slowdown,
        } = Overall::of(record);
        Self {
            name: record.meta().name.clone(),
            count: record.count(),
            dropped: record.dropped(),
            service_us: record.meta().service_ns / 1e3,
            latency_us,
            slowdown,
        }
    }

    /// The fraction of the class's measured requests that were shed or lost.
    #[must_use]
    pub fn lost_fraction(&self) -> f64 {
        self.dropped as f64 / (self.count + self.dropped).max(1) as f64
    }
}

/// Workers reserved for a group of classes at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The group's classes.
    pub classes: Vec<String>,
    /// Workers that serve the group first.
    pub reserved: Vec<usize>,
    /// Workers reserved for longer groups that this one may use while they are idle.
    pub stealable: Vec<usize>,
}

/// The machine's noise during a live run, measured by a calibrated spin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Fraction (0 to 1) of the spin's time that other work took.
    pub lost_fraction: f64,
    /// Gaps of more than 10 µs seen by the spin.
    pub gaps_over_10us: u64,
}

/// A load generator's counts of requests and replies.
///
/// Every request sent is counted in exactly one of `answered` and `lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Requests sent.
    pub sent: u64,
    /// Requests whose first reply arrived before the generator stopped listening.
    pub answered: u64,
    /// Requests never answered.
    pub lost: u64,
    /// Requests sent later than intended by more than the allowed lag.
    pub late: u64,
    /// Replies to requests already answered.
    pub duplicates: u64,
    /// Replies that could not be matched or parsed.
    pub invalid: u64,
}

impl Delivery {
    /// The fraction of requests sent that were lost; 0 when nothing was sent.
    pub fn lost_fraction(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

/// The description of a run: everything but the measurements of its [`Recorder`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMeta {
    /// The policy's name.
    pub policy: String,
    /// The policy's parameters as used: all of them, so that the run can be repeated.
    pub params: Map<String, Value>,
    /// Where the run took place.
    pub level: RunLevel,
    /// The workload's name.
    pub workload: String,
    /// Workers per server.
    pub workers: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// Requests that arrived, the discarded warm-up included.
    pub requests: u64,
    /// Arrival rate, in requests per second.
    pub offered_rps: f64,
    /// Completion rate over the measured interval, in requests per second.
    pub achieved_rps: f64,
    /// Offered rate × mean service time / all workers: overheads not included.
    pub load: f64,
    /// Fraction (0 to 1) of all workers' time that was busy.
    pub utilization: f64,
    /// Measured requests shed or lost, summed over all classes by [`Run::new`].
    pub dropped: u64,
    /// Preemptions: times that a request was taken off its worker before it was done.
    pub preemptions: u64,
    /// Whether the backlog of a class grew without bound. The tail of such a run measures only its
    /// length, so it meets no SLO and is not compared.
    pub overloaded: bool,
}

/// Parts of a run's result that only some runs have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunExtras {
    /// Whether the run was interrupted before its end: its figures are those of the requests until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Servers of the rack, at the level of racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<usize>,
    /// Number of racks behind a core switch, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub racks: Option<usize>,
    /// All cores of the system, those of its servers' dispatchers and timers included; absent where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// The cores of these that run requests: the workers', and those of dispatchers that work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving_cores: Option<usize>,
    /// The system as it was asked for, which tells runs of one policy apart; absent where it runs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Figures of a rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<RackFigures>,
    /// Reserved workers, for policies that reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Vec<Reservation>>,
    /// Mean number of cores idle while some request waited: capacity that the policy, and the delays of handing requests over, left unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasted_cores: Option<f64>,
    /// Cores that the plan at the end of the run sets aside beyond what its groups need, nothing stolen (Perséphone,
    /// Equation 2); for policies that reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_waste_cores: Option<f64>,
    /// Classes whose backlog grew without bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<String>,
    /// The cost model that a simulation assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Map<String, Value>>,
    /// The machine of a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Map<String, Value>>,
    /// The machine's noise during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// How many runs of different seeds, this one among them, meet the SLO; absent where one run alone was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_seeds: Option<SloSeeds>,
    /// The load generator's counts.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// One run: a policy under a workload, simulated or live.
///
/// # Examples
///
/// ```
/// use headway_report::{ClassMeta, RunLevel, Recorder, Run, RunExtras, RunMeta};
///
/// let mut recorder = Recorder::new(&[ClassMeta::new("short", 500.0)]);
/// recorder.record(0, 1_000, 500);
/// let meta = RunMeta {
///     policy: "c-fcfs".into(),
///     params: Default::default(),
///     level: RunLevel::Server,
///     workload: "fixed".into(),
///     workers: 1,
///     seed: 1,
///     requests: 1,
///     offered_rps: 1e6,
///     achieved_rps: 1e6,
///     load: 0.5,
///     utilization: 0.5,
///     dropped: 0,
///     preemptions: 0,
///     overloaded: false,
/// };
/// let run = Run::new(meta, &recorder, RunExtras::default());
/// assert_eq!(run.overall.slowdown.p999, 2.0);
///
/// let json = serde_json::to_string(&run).unwrap();
/// assert_eq!(serde_json::from_str::<Run>(&json).unwrap(), run);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The description of the run, and its totals.
    #[serde(flatten)]
    pub meta: RunMeta,
    /// All classes together.
    pub overall: Overall,
    /// Each class, in the workload's order.
    pub classes: Vec<ClassResult>,
    /// Figures that only some runs have.
    #[serde(flatten)]
    pub extras: RunExtras,
}

impl Run {
    /// The result of the run described by `meta`, with what `recorder` measured.
    pub fn new(meta: RunMeta, recorder: &Recorder, extras: RunExtras) -> Self {
        let overall = recorder.overall();
        Self {
            meta: RunMeta {
                dropped: overall.dropped(),
                ..meta
            },
            overall: Overall::of(&overall),
            classes: recorder.classes().iter().map(ClassResult::of).collect(),
            extras,
        }
    }

    /// The class called `name`.
    pub fn class(&self, name: &str) -> Option<&ClassResult> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// The measured interval: from the first measured arrival to the last completion, over which [`achieved_rps`](RunMeta::achieved_rps)
    /// is. Zero where nothing was measured.
    #[must_use]
    pub fn measured_interval(&self) -> Duration {
        let completed: u64 = self.classes.iter().map(|class| class.count).sum();
        let seconds = completed as f64 / self.meta.achieved_rps;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }

    /// The cores for tables: of the workers, then those beside them, and whether these serve too; `2 + 1 serving`. Empty where they are not
    /// known.
    #[must_use]
    pub fn cores_shown(&self) -> String {
        let workers = self.meta.workers * self.extras.servers.unwrap_or(1);
        let known = self.extras.cores.zip(self.extras.serving_cores);
        known.map_or(String::new(), |(all, serving)| cores(workers, all, serving))
    }

    /// The fraction of requests that were shed or lost: of the measured requests or of all requests that a load
    /// generator sent, whichever fraction is larger.
    #[must_use]
    pub fn lost_fraction(&self) -> f64 {
        let measured: u64 = self.classes.iter().map(|class| class.count).sum();
        let dropped = self.meta.dropped;
        let of_measured = dropped as f64 / (measured + dropped).max(1) as f64;
        let delivery = self.extras.delivery;
        of_measured.max(delivery.map_or(0.0, |delivery| delivery.lost_fraction()))
    }

    /// Whether the run kept up: not overloaded, and at most [`LOST_FRACTION_MAX`] of its requests
    /// dropped or lost.
    #[must_use]
    pub fn sustained(&self) -> bool {
        !self.meta.overloaded && self.lost_fraction() <= LOST_FRACTION_MAX
    }
}

/// A live comparison on this machine: what `headway bench --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// One run per policy and round.
    pub runs: Vec<Run>,
    /// The machine's noise over all runs.
    pub noise: Noise,
    /// Whether it was interrupted before its end: these are the rounds that were complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}

/// Highest loads that meet an SLO: what `headway capacity --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// The SLO, as given.
    pub slo: String,
    /// One entry per policy.
    pub results: Vec<Capacity>,
    /// Whether it was interrupted before its end: loads are then lower limits of what the policies carry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}

/// The highest load at which a policy met the SLO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The policy's name.
    pub policy: String,
    /// The policy as given to `--policy`, such as `jbsq,k=4`; it distinguishes two entries of the same name.
    pub spec: String,
    /// The policy's parameters as used.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// All cores of the system, those of dispatchers and timers included.
    #[serde(default)]
    pub cores: usize,
    /// Those of them that run requests.
    #[serde(default)]
    pub serving_cores: usize,
    /// Offered load (0 to 1); 0 when no load tried met the SLO.
    pub load: f64,
    /// The same as an arrival rate, in requests per second.
    pub rps: f64,
    /// What runs of other seeds carry, where one of them carries less: then `load` is chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_seeds: Option<LoadRange>,
    /// The run at that load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<Run>>,
}

/// The least and the most load that a policy carried in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRange {
    /// The least; 0 where a run carried no load that was tried.
    pub lowest: f64,
    /// The most.
    pub highest: f64,
}

impl LoadRange {
    /// Of these loads.
    #[must_use]
    pub fn of(loads: &[f64]) -> Self {
        Self {
            lowest: loads.iter().copied().fold(f64::INFINITY, f64::min),
            highest: loads.iter().copied().fold(0.0, f64::max),
        }
    }
}
