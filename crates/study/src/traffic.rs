//! The load that is offered.

use crate::Mistake;
use headway_workload::{Arrivals, Offered, Workload};

/// The load offered to a number of workers; `default` where neither load nor rate is given.
///
/// # Errors
/// A load or a rate for a trace, or both.
pub fn offered(
    workload: &Workload,
    load: Option<f64>,
    rate_rps: Option<f64>,
    workers: usize,
    default: f64,
) -> Result<Offered, Mistake> {
    let is_trace = matches!(workload.arrivals, Arrivals::Trace(_));
    match (load, rate_rps) {
        (Some(_), _) | (_, Some(_)) if is_trace => Err(Mistake::at(
            "load/--rate",
            "a trace is replayed at the times it recorded",
        )),
        (Some(_), Some(_)) => Err(Mistake::at("load", "give a load or a rate, not both")),
        (_, Some(rate_rps)) => Ok(Offered::Rate(rate_rps)),
        (load, None) => Ok(Offered::Load {
            load: load.unwrap_or(default),
            workers,
        }),
    }
}

/// Refuses a workload that cannot be offered at several loads.
///
/// # Errors
/// The workload is a trace.
pub fn check_scalable(workload: &Workload) -> Result<(), Mistake> {
    match workload.arrivals {
        Arrivals::Trace(_) => Err(Mistake::at(
            "workload",
            "a trace is replayed at the times it recorded, whatever the load: 'headway fit TRACE --fit-out FILE' makes a workload of it",
        )),
        _ => Ok(()),
    }
}
