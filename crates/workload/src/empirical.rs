//! Measured service times, drawn with their recorded frequencies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::csv_rows::{at, csv_error, csv_reader, service_time};
use crate::error::{Error, Problem, unreadable};
use crate::file::{TRACE_BYTES_MAX, read_regular};
use crate::section::Document;

/// A discrete distribution of service times.
///
/// As a file: one service time per line, or `value,weight`; a number without a unit is
/// microseconds; an optional header row starts with `service` or `value`; blank lines and lines
/// that start with `#` are skipped.
///
/// ```
/// use headway_workload::{Empirical, ServiceDistribution};
/// let samples = Empirical::from_csv_str("1us\n3us,2\n", "times.csv")?;
/// assert_eq!(samples.points(), [(1_000, 1.0), (3_000, 2.0)]);
/// # Ok::<(), headway_workload::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Empirical {
    points: Vec<(u64, f64)>,
    file: Option<PathBuf>,
}

impl Empirical {
    /// A distribution over `(service_ns, weight)` points. Weights are relative; they need not sum to 1.
    /// [`ServiceDistribution::check`](crate::ServiceDistribution::check) validates the points.
    #[must_use]
    pub fn new(points: Vec<(u64, f64)>) -> Self {
        Self { points, file: None }
    }

    /// The distribution of the given samples: equal samples become one point with their count as
    /// its weight, in rising order.
    #[must_use]
    pub fn from_samples(samples_ns: impl IntoIterator<Item = u64>) -> Self {
        let mut counts = BTreeMap::<u64, f64>::new();
        for sample_ns in samples_ns {
            *counts.entry(sample_ns).or_default() += 1.0;
        }
        Self::new(counts.into_iter().collect())
    }

    /// Reads a file of samples.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read, [`Error::Located`] when a line is no service
    /// time.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read_regular(path, TRACE_BYTES_MAX)
            .map_err(|source| unreadable("service times", path.to_owned(), source))?;
        Self::from_csv_str(&text, path)
    }

    /// Reads samples from a text; `path` is named in errors and by
    /// [`Workload::to_toml`](crate::Workload::to_toml).
    ///
    /// # Errors
    /// [`Error::Located`] when a line is no service time, or the text has none.
    pub fn from_csv_str(text: &str, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let document = Document { path, text };
        let mut points = Vec::new();
        for (index, row) in csv_reader(text, false).records().enumerate() {
            let row = row.map_err(|error| csv_error(document, &error))?;
            let is_header = matches!(row.get(0), Some("service" | "value"));
            if index == 0 && is_header {
                continue;
            }
            points.push(point(&row).map_err(|(key, problem)| at(document, &row, key, problem))?);
        }
        if points.is_empty() {
            let problem = Problem::Missing {
                remedy: "write one service time per line",
            };
            return Err(document.error(0, String::new(), problem));
        }
        Ok(Self {
            points,
            file: Some(path.to_owned()),
        })
    }

    /// The `(service_ns, weight)` points, in the file's order.
    #[must_use]
    pub fn points(&self) -> &[(u64, f64)] {
        &self.points
    }

    /// The file the points come from, as it was named.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Names the file differently, relative to a workload file.
    pub(crate) fn named(self, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..self
        }
    }

    /// The weighted mean of `service_ns` to the given power.
    pub(crate) fn moment(&self, power: i32) -> f64 {
        let sum: f64 = self
            .points
            .iter()
            .map(|(ns, weight)| weight * raised(*ns, power))
            .sum();
        sum / self.points.iter().map(|(_, weight)| weight).sum::<f64>()
    }
}

fn raised(ns: u64, power: i32) -> f64 {
    libm::pow(ns as f64, f64::from(power))
}

fn point(row: &csv::StringRecord) -> Result<(u64, f64), (&'static str, Problem)> {
    let service_ns =
        service_time(row.get(0).unwrap_or_default()).map_err(|problem| ("value", problem))?;
    Ok((
        service_ns,
        row.get(1)
            .map_or(Ok(1.0), weight)
            .map_err(|problem| ("weight", problem))?,
    ))
}

fn weight(text: &str) -> Result<f64, Problem> {
    match text.parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight > 0.0 => Ok(weight),
        _ => Err(Problem::Range {
            required: "a number above 0",
            given: format!("`{text}`"),
        }),
    }
}
