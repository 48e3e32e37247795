//! Requests, utilization and slowdown of each server of a rack.

use crate::kinds::setting::SimulatedSystem;
use crate::kinds::{ServerChanges, Setting, Task};
use crate::{Datum, ExperimentKind, ReproduceError};
use headway_sim::Offered;
use headway_sim::rack::ServerFigures;
use serde::Deserialize;

/// Yields, over the servers counted from 1, `requests` (relative to the mean of all servers),
/// `utilization` and `slowdown.p99`. Of each it yields the `spread`, as in `slowdown.p99.spread`: the
/// largest ÷ the smallest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersMeasurement {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// Load of the rack.
    pub load: f64,
    /// Changes to the experiment's server.
    #[serde(default)]
    pub on: ServerChanges,
}

impl ExperimentKind for ServersMeasurement {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        let systems = setting.systems(&self.on)?;
        systems
            .iter()
            .map(|system: &&_| self.task(setting, setting.subject(system, &self.on, "")?))
            .collect()
    }

    fn axis(&self) -> String {
        "server".into()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl ServersMeasurement {
    fn task(
        &self,
        setting: &Setting<'_>,
        mut subject: SimulatedSystem,
    ) -> Result<Task, ReproduceError> {
        if !subject.simulation.is_rack() {
            return Err(setting.fault("only the policies of a rack have several servers"));
        }
        subject.simulation.offered = Offered::Load {
            load: self.load,
            workers: subject.simulation.total_workers(),
        };
        subject.simulation.check()?;
        let command = subject.command("sim", &format!("--load {}", self.load));
        Ok(Task::new(move || {
            let outcome = subject.simulation.run()?;
            let servers = outcome
                .run
                .extras
                .rack
                .map(|rack| rack.servers)
                .unwrap_or_default();
            Ok(figures(&subject, &servers))
        })
        .command(command))
    }
}

fn figures(subject: &SimulatedSystem, servers: &[ServerFigures]) -> Vec<Datum> {
    let requests: u64 = servers.iter().map(|server| server.requests).sum();
    let mean_requests = requests as f64 / servers.len() as f64;
    let mut data = over_servers(subject, "requests", servers, |server: &ServerFigures| {
        server.requests as f64 / mean_requests
    });
    data.extend(over_servers(subject, "utilization", servers, |server| {
        server.utilization
    }));
    data.extend(over_servers(subject, "slowdown.p99", servers, |server| {
        server.slowdown_p99
    }));
    data
}

fn over_servers(
    subject: &SimulatedSystem,
    what: &str,
    servers: &[ServerFigures],
    figure: impl Fn(&ServerFigures) -> f64,
) -> Vec<Datum> {
    let values: Vec<f64> = servers.iter().map(figure).collect();
    let mut data: Vec<Datum> = values
        .iter()
        .enumerate()
        .map(|(index, value): (usize, &f64)| {
            let number = Some((index + 1) as f64);
            subject.datum(what, number, *value)
        })
        .collect();
    data.push(subject.datum(&format!("{what}.spread"), None, spread(&values)));
    data
}

/// The largest ÷ the smallest; not a number if a server has no figure, such as one without requests.
fn spread(values: &[f64]) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    largest / smallest
}
