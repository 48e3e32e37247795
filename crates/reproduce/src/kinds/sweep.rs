//! Figures over load, or over a parameter at one load, as `headway sweep` makes them.

use crate::kinds::setting::SimulatedSystem;
use crate::kinds::{ServerChanges, Setting, Task, Vary};
use crate::{Datum, ExperimentKind, Observable, ReproduceError};
use headway_sim::Offered;
use headway_workload::rate;
use serde::Deserialize;

/// Yields the figures `show` of every system at every point.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// Names of the figures.
    pub show: Vec<String>,
    /// Loads: the axis, unless `vary` sets another.
    #[serde(default)]
    pub loads: Vec<f64>,
    /// Rates (`5.1M`) instead of loads; the axis is then in requests per second.
    #[serde(default)]
    pub rates: Vec<String>,
    /// The parameter that varies instead, at one load or rate. Without it, a single load or rate
    /// yields single figures instead of curves.
    pub vary: Option<Vary>,
    /// Changes to the experiment's server.
    #[serde(default)]
    pub on: ServerChanges,
}

impl ExperimentKind for Sweep {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        let offers = self.offers(setting)?;
        let mut tasks = Vec::new();
        for system in setting.systems(&self.on)? {
            match &self.vary {
                None => {
                    let is_curve = offers.len() > 1;
                    for offer in &offers {
                        let subject = setting.subject(system, &self.on, "")?;
                        let x = is_curve.then_some(offer.x);
                        tasks.push(self.task(setting, subject, offer, x)?);
                    }
                }
                Some(vary) => {
                    let [offer] = offers.as_slice() else {
                        return Err(setting.fault("where something varies, one load is needed"));
                    };
                    for point in vary.points(&self.on, setting)? {
                        let subject = setting.subject(system, &point.on, &point.inserted)?;
                        tasks.push(self.task(setting, subject, offer, Some(point.x))?);
                    }
                }
            }
        }
        Ok(tasks)
    }

    fn axis(&self) -> String {
        match &self.vary {
            Some(vary) => vary.axis.clone(),
            None if self.rates.len() > 1 => "offered rate, requests/s".into(),
            None if self.loads.len() > 1 => "load".into(),
            None => String::new(),
        }
    }

    fn id(&self) -> &str {
        &self.id
    }
}

/// The offered load or rate.
struct OfferedPoint {
    x: f64,
    is_rate: bool,
    flag: String,
}

impl Sweep {
    fn offers(&self, setting: &Setting<'_>) -> Result<Vec<OfferedPoint>, ReproduceError> {
        let mut offers: Vec<OfferedPoint> = Vec::new();
        offers.extend(self.loads.iter().map(|&load| OfferedPoint {
            x: load,
            is_rate: false,
            flag: format!("--load {load}"),
        }));
        for text in &self.rates {
            let x = rate::parse(text).map_err(|problem| setting.fault(problem))?;
            offers.push(OfferedPoint {
                x,
                is_rate: true,
                flag: format!("--rate {text}"),
            });
        }
        if offers.is_empty() {
            Err(setting.fault("a sweep needs `loads` or `rates`"))
        } else {
            Ok(offers)
        }
    }

    fn task(
        &self,
        setting: &Setting<'_>,
        mut subject: SimulatedSystem,
        offer: &OfferedPoint,
        x: Option<f64>,
    ) -> Result<Task, ReproduceError> {
        let show = setting.observables(&self.show, &subject.simulation.workload)?;
        let workers = subject.simulation.total_workers();
        subject.simulation.offered = if offer.is_rate {
            Offered::Rate(offer.x)
        } else {
            Offered::Load {
                load: offer.x,
                workers,
            }
        };
        subject.simulation.check()?;
        let command = subject.command("sim", &offer.flag);
        Ok(Task::new(move || {
            let outcome = subject.simulation.run()?;
            let datum = |observable: &Observable| Datum {
                rests_on: observable.rests_on(&outcome.run),
                ..subject.datum(observable, x, observable.of(&outcome))
            };
            Ok(show.iter().map(datum).collect())
        })
        .command(command))
    }
}
