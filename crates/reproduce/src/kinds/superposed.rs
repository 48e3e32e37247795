//! Figures over load, of streams of requests that each have an arrival process of their own.

use crate::kinds::setting::SimulatedSystem;
use crate::kinds::{On, Setting, Task};
use crate::{ExperimentKind, ReproduceError};
use headway_workload::Workload;
use serde::Deserialize;

/// Gives `show` of every system at every load of the streams together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Superposed {
    /// Tells its figures from those of other measurements.
    #[serde(default)]
    pub id: String,
    /// Workloads, whose classes are different ones.
    pub streams: Vec<String>,
    /// What fraction of the requests each gives.
    pub shares: Vec<f64>,
    /// Loads: the axis.
    pub loads: Vec<f64>,
    /// The figures wanted.
    pub show: Vec<String>,
    /// What else than the experiment says; its workload is replaced by the streams.
    #[serde(default)]
    pub on: On,
}

impl ExperimentKind for Superposed {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        if self.streams.len() != self.shares.len() {
            return Err(setting.fault("`shares` needs a number for each of the `streams`"));
        }
        let workloads: Vec<Workload> = self
            .streams
            .iter()
            .map(|name: &String| setting.workload(name))
            .collect::<Result<_, _>>()?;
        let streams: Vec<(Workload, f64)> = workloads
            .into_iter()
            .zip(self.shares.iter().copied())
            .collect();
        let mut tasks = Vec::new();
        for system in setting.systems(&self.on)? {
            for &load in &self.loads {
                let subject = setting.subject(system, &self.on, "")?;
                tasks.push(self.task(setting, subject, &streams, load)?);
            }
        }
        Ok(tasks)
    }

    fn axis(&self) -> String {
        "load".into()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Superposed {
    fn task(
        &self,
        setting: &Setting<'_>,
        mut subject: SimulatedSystem,
        streams: &[(Workload, f64)],
        load: f64,
    ) -> Result<Task, ReproduceError> {
        let simulation = &mut subject.simulation;
        let rates = rates(streams, load, simulation.total_workers());
        // So few that they are drawn at once: what the streams have in common is checked here.
        let first = Workload::superposed("streams", &rates, 1, simulation.seed)?;
        let show = setting.observables(&self.show, &first)?;
        let requests = simulation.expected_requests() as u64;
        Ok(Task::new(move || {
            let mut simulation = subject.simulation.clone();
            simulation.workload =
                Workload::superposed("streams", &rates, requests, simulation.seed)?;
            let outcome = simulation.run()?;
            let data = show
                .iter()
                .map(|observable| subject.datum(observable, Some(load), observable.of(&outcome)));
            Ok(data.collect())
        }))
    }
}

/// Each stream with its requests per second.
fn rates(streams: &[(Workload, f64)], load: f64, workers: usize) -> Vec<(Workload, f64)> {
    let mean_ns: f64 = streams
        .iter()
        .map(|(stream, share): &(Workload, f64)| share * stream.mean_service_ns())
        .sum();
    let total_rps = load * workers as f64 * 1e9 / mean_ns;
    streams
        .iter()
        .map(|(stream, share): &(Workload, f64)| (stream.clone(), share * total_rps))
        .collect()
}
