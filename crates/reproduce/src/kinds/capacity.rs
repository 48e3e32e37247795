//! The highest load that meets an SLO, by bisection, as `headway capacity` finds it.

use crate::kinds::setting::SimulatedSystem;
use crate::kinds::{ServerChanges, Setting, Task, Vary};
use crate::{Datum, ExperimentKind, Observable, ReproduceError};
use headway_report::Slo;
use headway_sim::CapacitySearch;
use serde::Deserialize;

/// Yields `load` and `rps` of every system, and the figures `show` of the run at that load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityMeasurement {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// The SLO.
    pub slo: String,
    /// Changes to the experiment's server.
    #[serde(default)]
    pub on: ServerChanges,
    /// Figures of the run at the highest load.
    #[serde(default)]
    pub show: Vec<String>,
    /// The parameter that varies along the axis; without it, there is one figure for each system.
    pub vary: Option<Vary>,
    /// The largest difference between the found and the true load.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// The load at which the search begins; a system that misses the SLO at this load has no capacity.
    #[serde(default = "lowest")]
    pub lowest: f64,
}

fn tolerance() -> f64 {
    CapacitySearch::default().tolerance
}

fn lowest() -> f64 {
    CapacitySearch::default().lowest
}

impl ExperimentKind for CapacityMeasurement {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        let mut tasks = Vec::new();
        for system in setting.systems(&self.on)? {
            let Some(vary) = &self.vary else {
                let subject = setting.subject(system, &self.on, "")?;
                tasks.push(self.task(setting, subject, None)?);
                continue;
            };
            for point in vary.points(&self.on, setting)? {
                let subject = setting.subject(system, &point.on, &point.inserted)?;
                tasks.push(self.task(setting, subject, Some(point.x))?);
            }
        }
        Ok(tasks)
    }

    fn axis(&self) -> String {
        self.vary
            .as_ref()
            .map(|vary| vary.axis.clone())
            .unwrap_or_default()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl CapacityMeasurement {
    fn task(
        &self,
        setting: &Setting<'_>,
        subject: SimulatedSystem,
        x: Option<f64>,
    ) -> Result<Task, ReproduceError> {
        let slo = setting.slo(&self.slo, &subject.simulation.workload)?;
        let show = setting.observables(&self.show, &subject.simulation.workload)?;
        let search = CapacitySearch {
            tolerance: self.tolerance,
            lowest: self.lowest,
            ..CapacitySearch::default()
        };
        let rest = format!("--slo '{}' --tolerance {}", self.slo, self.tolerance);
        // The command line has no flag for this load: it always begins at the default.
        let sayable = self.lowest == lowest();
        let command = subject.command("capacity", &rest).filter(|_| sayable);
        Ok(Task::new(move || find(&subject, &slo, search, &show, x)).command(command))
    }
}

fn find(
    subject: &SimulatedSystem,
    slo: &Slo,
    search: CapacitySearch,
    show: &[Observable],
    x: Option<f64>,
) -> Result<Vec<Datum>, ReproduceError> {
    let found = search.find(&subject.simulation, slo, |_, _| {})?;
    let mut data = vec![
        subject.datum("load", x, found.load),
        subject.datum("rps", x, found.rate_rps),
    ];
    for observable in show {
        let value = found
            .outcome
            .as_ref()
            .map_or(f64::NAN, |outcome| observable.of(outcome));
        data.push(subject.datum(observable, x, value));
    }
    Ok(data)
}
