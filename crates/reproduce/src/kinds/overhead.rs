//! Concord's model of scheduling costs (§ 2.1, Equations 1–4), computed without a simulation.

use crate::kinds::{Setting, Task};
use crate::{Datum, ExperimentKind, ReproduceError};
use headway_workload::duration;
use serde::Deserialize;

/// Yields three figures of every mechanism over the quantum or the service time in µs:
/// `worker.overhead` (Equation 2), `preemption.overhead` (its part `c_proc + c_pre`) and
/// `system.overhead` (Equation 1).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// Service time of a request, if the quantum varies.
    pub service: Option<String>,
    /// The quantum, if the service time varies; without it, no request is preempted.
    pub quantum: Option<String>,
    /// Quanta along the axis.
    #[serde(default)]
    pub quanta: Vec<String>,
    /// Service times along the axis.
    #[serde(default)]
    pub services: Vec<String>,
    /// Workers beside the dispatcher.
    #[serde(default = "workers")]
    pub workers: u32,
    /// The mechanisms to compare.
    pub mechanism: Vec<MechanismCosts>,
}

fn workers() -> u32 {
    14
}

/// The costs of one mechanism that preempts and hands over requests, as in the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MechanismCosts {
    /// Name in the results.
    pub name: String,
    /// `c_proc` ÷ service time: the additional time of instrumented code, as a fraction.
    pub proc: f64,
    /// `c_notif`: cost of an interruption.
    pub notif: Option<String>,
    /// `c_switch`: cost of a switch from one request's context to another.
    pub switch: Option<String>,
    /// `c_next`: cost of the wait for the dispatcher's next request.
    pub next: Option<String>,
    /// The fraction of the dispatcher's time that no application gets: 1 for a dedicated dispatcher.
    pub dispatcher: Option<f64>,
}

/// Concord's equations for one mechanism; costs in ns.
#[derive(Clone, Copy, Debug)]
struct CostModel {
    proc: f64,
    notif_ns: f64,
    switch_ns: f64,
    next_ns: f64,
    dispatcher: f64,
}

/// A point of the axis.
#[derive(Clone, Copy, Debug)]
struct AxisPoint {
    x_ns: f64,
    service_ns: f64,
    quantum_ns: f64,
}

impl CostModel {
    /// Preemption's part of Equation 2: `(c_proc + c_pre) ÷ S`, with `c_pre` of Equation 3.
    fn preemption(&self, service_ns: f64, quantum_ns: f64) -> f64 {
        let times = (service_ns / quantum_ns).floor();
        self.proc + times * (self.notif_ns + self.switch_ns + self.next_ns) / service_ns
    }

    /// Equation 2, with `c_fin` of Equation 4.
    fn worker(&self, service_ns: f64, quantum_ns: f64) -> f64 {
        self.preemption(service_ns, quantum_ns) + (self.switch_ns + self.next_ns) / service_ns
    }

    /// Equation 1.
    fn system(&self, service_ns: f64, quantum_ns: f64, workers: f64) -> f64 {
        (workers * self.worker(service_ns, quantum_ns) + self.dispatcher) / (workers + 1.0)
    }
}

impl ExperimentKind for Overhead {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        let time = |text: &String| match duration::parse(text) {
            Ok(ns) => Ok(ns as f64),
            Err(problem) => Err(setting.fault(problem)),
        };
        let times = |texts: &[String]| texts.iter().map(time).collect::<Result<Vec<f64>, _>>();
        let optional = |text: &Option<String>| text.as_ref().map_or(Ok(0.0), time);
        let quantum_ns = self.quantum.as_ref().map_or(Ok(f64::INFINITY), time)?;
        let points: Vec<AxisPoint> = match &self.service {
            Some(service) => {
                let service_ns = time(service)?;
                times(&self.quanta)?
                    .into_iter()
                    .map(|quantum_ns: f64| AxisPoint {
                        x_ns: quantum_ns,
                        service_ns,
                        quantum_ns,
                    })
                    .collect()
            }
            None => times(&self.services)?
                .into_iter()
                .map(|service_ns: f64| AxisPoint {
                    x_ns: service_ns,
                    service_ns,
                    quantum_ns,
                })
                .collect(),
        };
        if points.is_empty() {
            return Err(setting.fault("`service` with `quanta`, or `services`, must be given"));
        }
        let mut data = Vec::new();
        for mechanism in &self.mechanism {
            let costs = CostModel {
                proc: mechanism.proc,
                notif_ns: optional(&mechanism.notif)?,
                switch_ns: optional(&mechanism.switch)?,
                next_ns: optional(&mechanism.next)?,
                dispatcher: mechanism.dispatcher.unwrap_or(1.0),
            };
            let label = setting.label(&mechanism.name);
            data.extend(figures(&label, &costs, &points, f64::from(self.workers)));
        }
        Ok(vec![Task::new(move || Ok(data.clone()))])
    }

    fn axis(&self) -> String {
        match self.service {
            Some(_) => "quantum, µs".into(),
            None => "service time, µs".into(),
        }
    }

    fn id(&self) -> &str {
        &self.id
    }
}

fn figures(label: &str, costs: &CostModel, points: &[AxisPoint], workers: f64) -> Vec<Datum> {
    let mut data = Vec::new();
    for &AxisPoint {
        x_ns,
        service_ns,
        quantum_ns,
    } in points
    {
        let figures = [
            (
                "preemption.overhead",
                costs.preemption(service_ns, quantum_ns),
            ),
            ("worker.overhead", costs.worker(service_ns, quantum_ns)),
            (
                "system.overhead",
                costs.system(service_ns, quantum_ns, workers),
            ),
        ];
        data.extend(figures.map(|(what, value)| Datum {
            system: label.into(),
            what: what.into(),
            axis: String::new(),
            x: Some(x_ns / 1e3),
            value,
            rests_on: None,
        }));
    }
    data
}

#[cfg(test)]
mod tests {
    use super::CostModel;

    /// § 2.2.1: 1200 cycles at 2 GHz every 5 µs are 12 %, every 2 µs 30 %.
    #[test]
    fn interrupts_cost_what_the_paper_says() {
        let interrupts = CostModel {
            proc: 0.0,
            notif_ns: 600.0,
            switch_ns: 0.0,
            next_ns: 0.0,
            dispatcher: 1.0,
        };
        assert!((interrupts.preemption(500e3, 5e3) - 0.12).abs() < 1e-12);
        assert!((interrupts.preemption(500e3, 2e3) - 0.30).abs() < 1e-12);
        assert_eq!(interrupts.worker(1e3, f64::INFINITY), 0.0);
        assert!((interrupts.system(1e3, f64::INFINITY, 3.0) - 0.25).abs() < 1e-12);
    }
}
