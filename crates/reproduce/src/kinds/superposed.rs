//! Figures over load, of superposed streams of requests that have separate arrival processes.

use crate::kinds::setting::SimulatedSystem;
use crate::kinds::{ServerChanges, Setting, Task};
use crate::{ExperimentKind, ReproduceError};
use headway_workload::Workload;
use serde::Deserialize;

/// Yields the figures `show` of every system, over the load of all streams together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Superposed {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// The streams' workloads, without a class in common.
    pub streams: Vec<String>,
    /// Each stream's fraction of the requests.
    pub shares: Vec<f64>,
    /// Loads: the axis.
    pub loads: Vec<f64>,
    /// Names of the figures.
    pub show: Vec<String>,
    /// Changes to the experiment's server. The streams replace its workload.
    #[serde(default)]
    pub on: ServerChanges,
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
        // A single request: constructing this workload checks the streams without drawing all requests.
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

/// The streams with their requests per second.
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
