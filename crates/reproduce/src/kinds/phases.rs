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
/// (at its end) and `phase N reaction_us`: the time from its beginning to the first new plan.
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
    /// The phases' lengths are part of the workload: these runs are never shortened.
    fn task(&self, setting: &Setting<'_>, mut subject: Subject) -> Result<Task, Error> {
        let parsed = duration::parse(&self.interval);
        let interval_ns = parsed.map_err(|problem| setting.fault(problem))?;
        let simulation = &mut subject.simulation;
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
        simulation.timeline_ns = Some(interval_ns);
        simulation.offered = Offered::Load {
            load: self.load,
            workers: simulation.workers,
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

fn over_time(subject: &Subject, outcome: &Outcome, interval_ns: u64) -> Vec<Datum> {
    let names = subject.simulation.workload.class_names();
    let mut data = Vec::new();
    for (class, name) in names.iter().enumerate() {
        for interval in &outcome.timeline {
            let x = Some(interval.from_ns as f64 / 1e9);
            let what = format!("class.{name}.latency.p999");
            let p999_us = p999_us(&interval.classes[class]);
            data.push(subject.datum(&what, x, p999_us));
            let plan = plan_at(&outcome.plan_changes, interval.from_ns + interval_ns);
            if let Some(plan) = plan {
                let what = format!("reserved.{name}");
                data.push(subject.datum(&what, x, reserved(plan, name)));
            }
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
        let within = |change: &&PlanChange| (begin_ns..end_ns).contains(&change.at_ns);
        let first = outcome.plan_changes.iter().find(within);
        if let Some(first) = first {
            let reaction_us = (first.at_ns - begin_ns) as f64 / 1e3;
            data.push(subject.datum(&format!("phase {phase} reaction_us"), None, reaction_us));
        }
        if let Some(plan) = plan_at(&outcome.plan_changes, end_ns) {
            for name in &names {
                let what = format!("phase {phase} reserved.{name}");
                data.push(subject.datum(&what, None, reserved(plan, name)));
            }
        }
        begin_ns = end_ns;
    }
    data
}

/// The plan in force just before `at_ns`.
fn plan_at(changes: &[PlanChange], at_ns: u64) -> Option<&PlanChange> {
    changes.iter().rev().find(|change| change.at_ns < at_ns)
}

fn reserved(plan: &PlanChange, class: &str) -> f64 {
    let has_it = |classes: &Vec<String>| classes.iter().any(|name| name == class);
    let own = plan.reservation.iter().find(|group| has_it(&group.classes));
    own.map_or(0.0, |group| group.reserved.len() as f64)
}

fn p999_us(latency_ns: &Histogram) -> f64 {
    latency_ns
        .quantile(0.999)
        .map_or(f64::NAN, |ns| ns as f64 / 1e3)
}
