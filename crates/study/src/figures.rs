//! Figures and SLOs in words.

use crate::Mistake;
use headway_report::Slo;
use headway_sim::{Figure, Precision};

/// The limit of replications until an interval is tight, where none is given.
pub const MOST_REPLICATIONS: u64 = 100;

/// An SLO whose classes must exist.
///
/// # Errors
/// The text is no SLO, or names a class that is not there.
pub fn slo(text: &str, classes: &[&str]) -> Result<Slo, Mistake> {
    let wrong = |error| Mistake::at("slo", error);
    let slo: Slo = text.parse().map_err(wrong)?;
    slo.check_classes(classes.iter().copied()).map_err(wrong)?;
    Ok(slo)
}

/// A figure of a run, `class.GET.latency.p99`, whose class must exist.
///
/// # Errors
/// The text is no figure, or names a class that is not there. `place` is the flag.
pub fn figure(place: &str, text: &str, classes: &[&str]) -> Result<Figure, Mistake> {
    let wrong = |error| Mistake::at(place, error);
    // A figure has the grammar of an SLO's left side.
    let unit = if text.contains(".latency.") { "us" } else { "" };
    let slo: Slo = format!("{text}<=1{unit}").parse().map_err(wrong)?;
    slo.check_classes(classes.iter().copied()).map_err(wrong)?;
    match slo.bounds() {
        [bound] => Ok(Figure {
            scope: bound.scope.clone(),
            measure: bound.measure,
            statistic: bound.statistic,
        }),
        _ => Err(Mistake::at(place, "name one figure")),
    }
}

/// Replications until the figure's interval is within `relative` of its estimate, `most` at most.
///
/// # Errors
/// As [`figure`].
pub fn precision(
    relative: f64,
    of: &str,
    most: Option<u64>,
    classes: &[&str],
) -> Result<Precision, Mistake> {
    Ok(Precision {
        figure: figure("ci-of", of, classes)?,
        relative,
        most: most.unwrap_or(MOST_REPLICATIONS),
    })
}
