//! One run through the phases of a workload: latencies and reservations over time.

use crate::kinds::setting::SimulatedSystem;
use crate::kinds::{ServerChanges, Setting, Task};
use crate::{Datum, ExperimentKind, ReproduceError};
use headway_report::Histogram;
use headway_sim::{Length, Offered, Outcome, PlanChange};
use headway_workload::duration;
use serde::Deserialize;
use std::ops::Range;

/// Yields, over time in seconds, `class.NAME.latency.p999` of each interval's arrivals and
/// `reserved.NAME` at its end. For each phase N, from 1, it yields `phase N overall.latency.p999` and
/// `phase N class.NAME.latency.p999` of the phase's arrivals, `phase N reserved.NAME` at its end, and
/// `phase N reaction_us`: the time from the beginning of the phase to the plan in force at its end.
/// Tails are measured even if the backlog grows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// Load in every phase.
    pub load: f64,
    /// Length of an interval: `25ms`.
    pub interval: String,
    /// The percentile: `p99` or `p999`, the default.
    #[serde(default)]
    pub statistic: PhaseTail,
    /// Changes to the experiment's server.
    #[serde(default)]
    pub on: ServerChanges,
}

/// A tail of latencies.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseTail {
    /// 99 %.
    P99,
    /// 99.9 %.
    #[default]
    P999,
}

impl PhaseTail {
    fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::P999 => "p999",
        }
    }

    fn of_us(self, latency_ns: &Histogram) -> f64 {
        let quantile = match self {
            Self::P99 => 0.99,
            Self::P999 => 0.999,
        };
        latency_ns
            .quantile(quantile)
            .map_or(f64::NAN, |ns| ns as f64 / 1e3)
    }
}

impl ExperimentKind for Phases {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        let systems = setting.systems(&self.on)?;
        systems
            .iter()
            .map(|system: &&_| self.task(setting, setting.subject(system, &self.on, "")?))
            .collect()
    }

    fn axis(&self) -> String {
        "time, s".into()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Phases {
    fn task(
        &self,
        setting: &Setting<'_>,
        mut subject: SimulatedSystem,
    ) -> Result<Task, ReproduceError> {
        let parsed = duration::parse(&self.interval);
        let interval_ns = parsed.map_err(|problem| setting.fault(problem))?;
        let simulation = &mut subject.simulation;
        for phase in &mut simulation.workload.phases {
            phase.duration_ns = setting.extent().duration_ns(phase.duration_ns);
        }
        let ends_ns = ends_ns(
            simulation
                .workload
                .phases
                .iter()
                .map(|phase| phase.duration_ns),
        );
        let Some(&end_ns) = ends_ns.last() else {
            return Err(setting.fault("the workload has no phases"));
        };
        simulation.length = Length::Duration(end_ns);
        simulation.timeline_ns = Some(setting.extent().duration_ns(interval_ns));
        simulation.offered = Offered::Load {
            load: self.load,
            workers: simulation.total_workers(),
        };
        simulation.check()?;
        let tail = self.statistic;
        Ok(Task::new(move || {
            let outcome = subject.simulation.run()?;
            let mut data = over_time(&subject, &outcome, interval_ns, tail);
            data.extend(by_phase(&subject, &outcome, &ends_ns, tail));
            Ok(data)
        }))
    }
}

fn ends_ns(durations_ns: impl Iterator<Item = u64>) -> Vec<u64> {
    durations_ns
        .scan(0, |sum: &mut u64, ns| {
            *sum += ns;
            Some(*sum)
        })
        .collect()
}

/// Places on the axis are those of the full run even if the run is shortened, since claims name them.
fn over_time(
    subject: &SimulatedSystem,
    outcome: &Outcome,
    interval_ns: u64,
    tail: PhaseTail,
) -> Vec<Datum> {
    let names = subject.simulation.workload.class_names();
    let mut data = Vec::new();
    for (class, name) in names.iter().enumerate() {
        for (index, interval) in outcome.timeline.iter().enumerate() {
            let x = Some((index as u64 * interval_ns) as f64 / 1e9);
            let what = format!("class.{name}.latency.{}", tail.name());
            data.push(subject.datum(&what, x, tail.of_us(&interval.classes[class])));
            let next_ns = outcome
                .timeline
                .get(index + 1)
                .map_or(u64::MAX, |next| next.from_ns);
            let what = format!("reserved.{name}");
            data.push(subject.datum(&what, x, reserved(plan_at(outcome, next_ns), name)));
        }
    }
    data
}

fn by_phase(
    subject: &SimulatedSystem,
    outcome: &Outcome,
    ends_ns: &[u64],
    tail: PhaseTail,
) -> Vec<Datum> {
    let names = subject.simulation.workload.class_names();
    let mut data = Vec::new();
    let mut begin_ns = 0;
    for (index, &end_ns) in ends_ns.iter().enumerate() {
        let phase = index + 1;
        let plan = plan_at(outcome, end_ns);
        let changed = plan.filter(|plan| plan.at_ns >= begin_ns);
        let reaction_us = changed.map_or(f64::NAN, |plan| (plan.at_ns - begin_ns) as f64 / 1e3);
        data.push(subject.datum(&format!("phase {phase} reaction_us"), None, reaction_us));
        let mut overall = Histogram::new();
        for (class, name) in names.iter().enumerate() {
            let latency_ns = arrived_in(outcome, begin_ns..end_ns, class);
            overall.merge(&latency_ns);
            let what = format!("phase {phase} class.{name}.latency.{}", tail.name());
            data.push(subject.datum(&what, None, tail.of_us(&latency_ns)));
            let what = format!("phase {phase} reserved.{name}");
            data.push(subject.datum(&what, None, reserved(plan, name)));
        }
        let what = format!("phase {phase} overall.latency.{}", tail.name());
        data.push(subject.datum(&what, None, tail.of_us(&overall)));
        begin_ns = end_ns;
    }
    data
}

/// The plan in force just before `at_ns`.
fn plan_at(outcome: &Outcome, at_ns: u64) -> Option<&PlanChange> {
    outcome
        .plan_changes
        .iter()
        .rev()
        .find(|change| change.at_ns < at_ns)
}

/// Number of workers reserved for the class's group; not a number without a plan.
fn reserved(plan: Option<&PlanChange>, class: &str) -> f64 {
    let Some(plan) = plan else { return f64::NAN };
    let mut groups = plan.reservation.iter();
    let own = groups.find(|group| group.classes.iter().any(|name| name == class));
    own.map_or(0.0, |group| group.reserved.len() as f64)
}

/// Latencies of the class over all intervals that begin in the span.
fn arrived_in(outcome: &Outcome, span_ns: Range<u64>, class: usize) -> Histogram {
    let mut latency_ns = Histogram::new();
    let intervals = outcome.timeline.iter();
    for interval in intervals.filter(|interval| span_ns.contains(&interval.from_ns)) {
        latency_ns.merge(&interval.classes[class]);
    }
    latency_ns
}
