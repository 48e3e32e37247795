//! How long a run may last in virtual time.

use crate::engine::agenda::LAST_NS;
use crate::error::SimError;
use crate::experiment::Experiment;

/// The longest virtual time of a run, ns: half of what an [agenda](crate::engine::agenda) holds, since arrivals may come later than
/// expected.
const LONGEST_NS: u64 = LAST_NS / 2;

/// Refuses a run that is expected to be longer than its clock can tell apart.
pub(crate) fn check_span(span_ns: f64) -> Result<(), SimError> {
    if span_ns > LONGEST_NS as f64 {
        return Err(too_long(span_ns));
    }
    Ok(())
}

/// The refusal of a run that takes `span_ns` or more.
fn too_long(span_ns: f64) -> SimError {
    let days = |ns: f64| headway_report::format::significant(ns / 86.4e12, 3);
    SimError::OutOfRange {
        what: "the virtual time of a run",
        expected: format!(
            "at most {} days, which the clock tells apart to the nanosecond",
            days(LONGEST_NS as f64)
        ),
        given: format!(
            "{}: ask for fewer requests, a shorter duration, a higher rate or shorter services",
            days(span_ns)
        ),
    }
}

/// Refuses a run whose last requests would end beyond what an agenda holds: they are still in flight when nothing more happens.
/// Where workers leave, requests may wait for ever.
pub(crate) fn check_end(experiment: &Experiment, in_flight: usize) -> Result<(), SimError> {
    if in_flight > 0 && experiment.core_changes.is_empty() {
        return Err(too_long(LAST_NS as f64));
    }
    Ok(())
}
