//! The Shenango paper's figures of a host whose applications trade cores.

use crate::kinds::{ExperimentKind, Setting, Task};
use crate::{Datum, ReproduceError, RunLength};
use headway_sim::host::figures::{self, CurvePoint, FigureEffort};
use headway_workload::rate;
use serde::Deserialize;

/// The kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostFigure {
    /// CPU efficiency over offered cores, beside that of the best possible allocator with an interval of 1 ms.
    Efficiency,
    /// A spin server with constant service times and a batch application, over the rate.
    SpinConstant,
    /// The same with exponential service times.
    SpinExponential,
    /// The same with bimodal service times.
    SpinBimodal,
    /// The worst window's tail over the rate to which a low load jumps.
    LoadStep,
    /// The spin server's tail over the rate, for 24 and 1200 connections.
    Connections,
    /// Tail and batch throughput over the allocation interval.
    Interval,
}

/// A `[[measure]]` of kind `host`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostMeasurement {
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    #[serde(default)]
    pub id: String,
    /// The kind of figure.
    pub figure: HostFigure,
    /// Places on its axis: cores, rates (`400k`) or, for `interval`, µs.
    pub at: Vec<String>,
    /// The rate, for `interval`.
    pub rate: Option<String>,
    /// Virtual time of a run, or of a phase for `load-step`, ms.
    pub duration_ms: u64,
}

impl ExperimentKind for HostMeasurement {
    /// One task for each place, so that places run in parallel.
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        let number = |text: &String| {
            rate::parse(text).map_err(|error| setting.fault(format!("`{text}`: {error}")))
        };
        let places: Vec<f64> = self.at.iter().map(number).collect::<Result<_, _>>()?;
        let rate_rps = self.rate.as_ref().map(number).transpose()?;
        if (self.figure == HostFigure::Interval) != rate_rps.is_some() {
            return Err(setting.fault("`rate` goes with the figure `interval`, and with no other"));
        }
        let effort = FigureEffort {
            duration_ms: self.shortened_ms(setting.extent()),
            seed: setting.server().seed,
            threads: 1,
            cutoff: None,
        };
        let cutoff = setting.cutoff.cloned();
        let tasks = places.iter().map(|&place| {
            let (figure, id, cutoff) = (self.figure, self.id.clone(), cutoff.clone());
            Task::new(move || {
                let effort = FigureEffort {
                    cutoff: cutoff.as_ref(),
                    ..effort
                };
                let at = FigurePlace { id: &id, x: place };
                measure(figure, at, rate_rps, effort)
            })
        });
        Ok(tasks.collect())
    }

    fn axis(&self) -> String {
        match self.figure {
            HostFigure::Efficiency => "offered load, cores",
            HostFigure::LoadStep => "raised rate, rps",
            HostFigure::Interval => "interval, µs",
            _ => "rate, rps",
        }
        .into()
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl HostMeasurement {
    fn shortened_ms(&self, extent: RunLength) -> u64 {
        match extent {
            RunLength::Full => self.duration_ms,
            RunLength::Fast => (self.duration_ms / 10).max(1),
            RunLength::AtMost(_) => 2,
        }
    }
}

/// Measures a figure at a place of its axis.
fn measure(
    figure: HostFigure,
    at: FigurePlace<'_>,
    rate_rps: Option<f64>,
    effort: FigureEffort<'_>,
) -> Result<Vec<Datum>, ReproduceError> {
    match figure {
        HostFigure::Efficiency => {
            let found = figures::efficiency(&[at.x], effort)?;
            let best = found.bound[0].map_or(f64::NAN, |bound| bound.efficiency);
            let app = &found.shenango[0].outcome.apps[0];
            Ok(vec![
                at.datum("1 ms bound", "efficiency", best),
                at.datum("Shenango", "efficiency", app.efficiency),
                at.datum("Shenango", "p999_us", p999_us(&found.shenango[0])),
            ])
        }
        HostFigure::SpinConstant => at.spin(0, effort),
        HostFigure::SpinExponential => at.spin(1, effort),
        HostFigure::SpinBimodal => at.spin(2, effort),
        HostFigure::LoadStep => {
            let bursts = figures::load_step(&[at.x], effort.duration_ms, effort)?;
            let worst = bursts
                .iter()
                .map(|burst| at.datum(burst.system, "worst_p999_us", burst.worst_p999_us()));
            Ok(worst.collect())
        }
        HostFigure::Connections => {
            let curves = figures::few_connections(&[24, 1200], &[at.x], effort)?;
            Ok(curves
                .iter()
                .map(|(flows, points): &(u64, Vec<CurvePoint>)| {
                    at.datum(
                        &format!("{flows} connections"),
                        "p999_us",
                        p999_us(&points[0]),
                    )
                })
                .collect())
        }
        HostFigure::Interval => {
            let rate_rps = rate_rps.unwrap_or(f64::NAN);
            let points = figures::allocation_interval(&[at.x as u64], rate_rps, effort)?;
            Ok(at.tail_and_batch("Shenango", &points[0]).into())
        }
    }
}

/// A place on a figure's axis, with the name of the measurement.
#[derive(Clone, Copy)]
struct FigurePlace<'a> {
    id: &'a str,
    x: f64,
}

impl FigurePlace<'_> {
    fn datum(self, system: &str, what: &str, value: f64) -> Datum {
        Datum {
            system: match self.id {
                "" => system.into(),
                id => format!("{id}/{system}"),
            },
            what: what.into(),
            axis: String::new(),
            x: Some(self.x),
            value,
            rests_on: None,
        }
    }

    fn tail_and_batch(self, system: &str, point: &CurvePoint) -> [Datum; 3] {
        let (host, batch) = (&point.outcome.host, point.outcome.apps.get(1));
        [
            self.datum(system, "p999_us", p999_us(point)),
            self.datum(
                system,
                "batch_cores",
                batch.map_or(0.0, |app| app.useful_cores),
            ),
            self.datum(system, "reallocations_per_s", host.reallocations_per_s),
        ]
    }

    fn spin(self, which: usize, effort: FigureEffort<'_>) -> Result<Vec<Datum>, ReproduceError> {
        let workload = &figures::spin_workloads()[which];
        let curves = figures::spin_server(workload, &[self.x], effort)?;
        let points = curves
            .iter()
            .flat_map(|curve| self.tail_and_batch(curve.system, &curve.points[0]));
        Ok(points.collect())
    }
}

/// The server's tail; not a number if it is overloaded, since that tail only measures the run's length.
fn p999_us(point: &CurvePoint) -> f64 {
    let app = &point.outcome.apps[0];
    match (app.overloaded, app.latency_us) {
        (false, Some(latency)) => latency.p999,
        _ => f64::NAN,
    }
}
