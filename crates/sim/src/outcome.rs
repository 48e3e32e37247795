//! The result of an experiment.

use crate::experiment::Experiment;
use crate::server::{SimRequest, Work};
use crate::timeline::TimelineInterval;
use headway_policy::Plan;
use headway_policy::server::reservation::expected_waste_cores;
use headway_policy::spec::{Params, Value};
use headway_report::schedule::Slice;
use headway_report::{Recorder, Reservation, Run, RunExtras, RunLevel, RunMeta};

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) arrivals: u64,
    pub(crate) counted: u64,
    pub(crate) work: Work,
    pub(crate) last_arrival_ns: u64,
    first_counted_ns: Option<u64>,
    pub(crate) last_completion_ns: u64,
    /// Whether the arrivals ended before their time.
    pub(crate) cut_off: bool,
}

impl Totals {
    /// From the start to the last arrival or measured completion, ns.
    pub(crate) fn elapsed_ns(&self) -> f64 {
        self.last_arrival_ns.max(self.last_completion_ns).max(1) as f64
    }

    #[inline]
    pub(crate) fn arrived(&mut self, request: &SimRequest) {
        self.arrivals += 1;
        self.last_arrival_ns = request.arrived_ns;
        if request.counted {
            self.counted += 1;
            self.first_counted_ns.get_or_insert(request.arrived_ns);
        }
    }
}

/// A revision of the plan: a chart of them shows how reservations followed the traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanChange {
    /// When, in virtual time.
    pub at_ns: u64,
    /// The plan from then on.
    pub reservation: Vec<Reservation>,
}

/// The result of an experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The report.
    pub run: Run,
    /// The histograms behind the report.
    pub recorder: Recorder,
    /// Every revision of the plan.
    pub plan_changes: Vec<PlanChange>,
    /// Mean number of cores that idled while some request waited: the cost of not being work-conserving.
    pub wasted_cores: f64,
    /// Latencies over the course of the run, where [`Experiment::timeline_ns`] asks for it.
    pub timeline: Vec<TimelineInterval>,
    /// The slices in [`Experiment::trace_window`], in the order of their ends.
    pub slices: Vec<Slice>,
}

impl Outcome {
    pub(crate) fn new(
        experiment: &Experiment,
        policy: &str,
        params: &Params,
        totals: &Totals,
        recorder: Recorder,
        starved: &[usize],
    ) -> Self {
        let elapsed_ns = totals.elapsed_ns();
        let workers = experiment.total_workers();
        let rack = experiment.is_rack();
        let measured_ns = totals
            .last_completion_ns
            .saturating_sub(totals.first_counted_ns.unwrap_or(0));
        let completed: u64 = recorder.classes().iter().map(|class| class.count()).sum();
        let offered = experiment.mean_offered(totals.cut_off.then_some(totals.last_arrival_ns));
        let meta = RunMeta {
            policy: policy.into(),
            params: params
                .iter()
                .map(|(key, value)| ((*key).into(), value_json(value)))
                .collect(),
            level: if rack {
                RunLevel::Rack
            } else {
                RunLevel::Server
            },
            workload: experiment.workload.name.clone(),
            workers: experiment.workers,
            seed: experiment.seed,
            requests: totals.arrivals,
            offered_rps: offered.rate_rps,
            achieved_rps: completed as f64 * 1e9 / measured_ns.max(1) as f64,
            load: offered.load,
            utilization: totals.work.busy_ns as f64 / elapsed_ns / workers as f64,
            dropped: recorder.classes().iter().map(|class| class.dropped()).sum(),
            preemptions: totals.work.preemptions,
            overloaded: !starved.is_empty(),
        };
        let names = experiment.workload.class_names();
        let wasted_cores = totals.work.wasted_ns as f64 / elapsed_ns;
        let extras = RunExtras {
            cut_off: totals.cut_off,
            wasted_cores: Some(wasted_cores),
            starved: starved.iter().map(|&class| names[class].into()).collect(),
            costs: costs_json(experiment),
            servers: rack.then_some(experiment.servers),
            cores: Some(experiment.servers * experiment.server_cores().all()),
            serving_cores: Some(experiment.servers * experiment.server_cores().serving()),
            racks: (experiment.racks > 1).then_some(experiment.racks),
            ..RunExtras::default()
        };
        let run = Run::new(meta, &recorder, extras);
        Self {
            run,
            recorder,
            plan_changes: Vec::new(),
            timeline: Vec::new(),
            slices: Vec::new(),
            wasted_cores,
        }
    }
}

/// The plan in the terms of a report; `names` are those of the classes.
#[must_use]
pub fn reservation_of(plan: &Plan, names: &[&str]) -> Vec<Reservation> {
    plan.groups
        .iter()
        .map(|group: &headway_policy::Group| {
            let class = headway_policy::ClassId(group.classes.first().unwrap_or(0) as u16);
            Reservation {
                classes: group
                    .classes
                    .iter()
                    .map(|class| names[class].to_owned())
                    .collect(),
                reserved: plan.reserved(class).iter().collect(),
                stealable: plan.stealable(class).iter().collect(),
            }
        })
        .collect()
}

/// The number of cores that Equation 2 expects this plan to waste; `None` where it reserves nothing.
#[must_use]
pub fn expected_waste_of(plan: &Plan, workers: usize) -> Option<f64> {
    let reserves = !plan.groups.is_empty();
    reserves.then(|| expected_waste_cores(plan, workers))
}

/// A policy's parameter as JSON.
#[must_use]
pub fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(number) if number.fract() == 0.0 => (*number as u64).into(),
        Value::Number(number) => (*number).into(),
        time @ Value::Time(_) => time.to_string().into(),
        Value::Word(word) => (*word).into(),
        Value::Text(text) => text.clone().into(),
    }
}

/// The assumed costs, which every simulation reports.
fn costs_json(experiment: &Experiment) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut costs = match serde_json::to_value(experiment.costs) {
        Ok(serde_json::Value::Object(costs)) => costs,
        _ => return None,
    };
    costs.insert("network_ns".into(), experiment.network_ns.into());
    Some(costs)
}
