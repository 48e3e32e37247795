//! One run through the phases of a workload: latencies and reservations as time goes by.

use crate::kinds::setting::Subject;
use crate::kinds::{On, Setting, Task};
use crate::{Datum, Error, Kind};
use headway_report::Histogram;
use headway_sim::{Length, Offered, Outcome, PlanChange};
use headway_workload::duration;
use serde::Deserialize;

/// Gives, over time in seconds, `class.NAME.latency.p999` of what arrived in each interval and
/// `reserved.NAME` at its end; and for each phase N, counted from 1, `phase N reserved.NAME`
/// (at its end) and `phase N reaction_us`: from its beginning to the plan in force at its end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Tells its figures from those of other measurements.
    #[serde(default)]
    pub id: String,
    /// Load in every phase.
    pub load: f64,
    /// Length of an interval: `25ms`.
    pub interval: String,
    /// What else than the experiment says.
    #[serde(default)]
    pub on: On,
}

impl Kind for Phases {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, Error> {
        let systems = setting.systems(&self.on)?;
        let task = |system: &&_| self.task(setting, setting.subject(system, &self.on, "")?);
        systems.iter().map(task).collect()
    }

    fn axis(&self) -> String {
        "time, s".into()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Phases {
    fn task(&self, setting: &Setting<'_>, mut subject: Subject) -> Result<Task, Error> {
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
        Ok(Task::new(move || {
            let outcome = subject.simulation.run()?;
            let mut data = over_time(&subject, &outcome, interval_ns);
            data.extend(by_phase(&subject, &outcome, &ends_ns));
            Ok(data)
        }))
    }
}

fn ends_ns(durations_ns: impl Iterator<Item = u64>) -> Vec<u64> {
    let running = |sum: &mut u64, ns| {
        *sum += ns;
        Some(*sum)
    };
    durations_ns.scan(0, running).collect()
}

/// Places on the axis are those of the full run, also where it is shortened.
fn over_time(subject: &Subject, outcome: &Outcome, interval_ns: u64) -> Vec<Datum> {
    let names = subject.simulation.workload.class_names();
    let mut data = Vec::new();
    for (class, name) in names.iter().enumerate() {
        for (index, interval) in outcome.timeline.iter().enumerate() {
            let x = Some((index as u64 * interval_ns) as f64 / 1e9);
            let what = format!("class.{name}.latency.p999");
            data.push(subject.datum(&what, x, p999_us(&interval.classes[class])));
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

fn by_phase(subject: &Subject, outcome: &Outcome, ends_ns: &[u64]) -> Vec<Datum> {
    let names = subject.simulation.workload.class_names();
    let mut data = Vec::new();
    let mut begin_ns = 0;
    for (index, &end_ns) in ends_ns.iter().enumerate() {
        let phase = index + 1;
        let plan = plan_at(outcome, end_ns);
        let changed = plan.filter(|plan| plan.at_ns >= begin_ns);
        let reaction_us = changed.map_or(f64::NAN, |plan| (plan.at_ns - begin_ns) as f64 / 1e3);
        data.push(subject.datum(&format!("phase {phase} reaction_us"), None, reaction_us));
        for name in &names {
            let what = format!("phase {phase} reserved.{name}");
            data.push(subject.datum(&what, None, reserved(plan, name)));
        }
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

/// Not a number where there is no plan.
fn reserved(plan: Option<&PlanChange>, class: &str) -> f64 {
    let Some(plan) = plan else { return f64::NAN };
    let has_it = |classes: &Vec<String>| classes.iter().any(|name| name == class);
    let own = plan.reservation.iter().find(|group| has_it(&group.classes));
    own.map_or(0.0, |group| group.reserved.len() as f64)
}

fn p999_us(latency_ns: &Histogram) -> f64 {
    latency_ns
        .quantile(0.999)
        .map_or(f64::NAN, |ns| ns as f64 / 1e3)
}
