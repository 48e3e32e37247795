//! The requests and their send times, drawn before the run, so that sending only reads.

use headway_report::format::duration_us;
use headway_workload::{Arrival, Generator};

use crate::error::LoadError;
use crate::load::{Extent, Load, ServiceTime};

/// Requests that the wire header's index can tell apart.
const MAX_REQUESTS: u64 = 1 << 32;

/// The longest service time that the wire header's field holds, ns.
const MAX_ASKED_NS: u64 = u32::MAX as u64;

/// A request to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planned {
    /// Its intended send time, from the start of the run.
    pub(crate) at_ns: u64,
    /// Its service time by the workload.
    pub(crate) service_ns: u64,
    /// Its class, an index into the workload's classes.
    pub(crate) class: u8,
    /// Its type in the wire header.
    pub(crate) wire_type: u8,
}

/// All requests of a run, in order of their times.
#[derive(Debug)]
pub(crate) struct SendPlan {
    pub(crate) requests: Box<[Planned]>,
}

impl SendPlan {
    pub(crate) fn draw(load: &Load) -> Result<Self, LoadError> {
        let name = || load.workload.name.clone();
        let found = load.workload.class_names().len();
        if found > usize::from(u8::MAX) {
            let workload = name();
            return Err(LoadError::TooManyClasses { workload, found });
        }
        if !load.types.is_empty() && load.types.len() != found {
            let (workload, types) = (name(), load.types.len());
            return Err(LoadError::Types {
                workload,
                found,
                types,
            });
        }
        let arrivals =
            Generator::new(&load.workload, load.offered, load.seed).map(|arrival: Arrival| {
                let class = u8::try_from(arrival.class).expect("checked: at most 255 classes");
                Planned {
                    at_ns: arrival.at_ns,
                    service_ns: arrival.service_ns,
                    class,
                    wire_type: load.types.get(usize::from(class)).copied().unwrap_or(class),
                }
            });
        let requests = take(arrivals, load.extent)?;
        if requests.is_empty() {
            return Err(LoadError::Empty { workload: name() });
        }
        let plan = Self { requests };
        let longest_ns = plan.longest_service_ns();
        // A service that serves other than for the time that is asked is divided by what it reports.
        if longest_ns > MAX_ASKED_NS && load.service_time == ServiceTime::Nominal {
            let [asked, most] = [longest_ns, MAX_ASKED_NS].map(|ns| duration_us(ns as f64 / 1e3));
            let workload = name();
            return Err(LoadError::ServiceTooLong {
                workload,
                asked,
                most,
            });
        }
        Ok(plan)
    }

    /// Requests per second, over the time from the start to the last one.
    pub(crate) fn rate_rps(&self) -> f64 {
        self.requests.len() as f64 / (self.last_ns().max(1) as f64 / 1e9)
    }

    /// The last request's intended send time.
    pub(crate) fn last_ns(&self) -> u64 {
        self.requests.last().map_or(0, |last| last.at_ns)
    }

    /// The longest service time.
    pub(crate) fn longest_service_ns(&self) -> u64 {
        let services = self.requests.iter().map(|request| request.service_ns);
        services.max().unwrap_or(0)
    }
}

fn take(
    arrivals: impl Iterator<Item = Planned>,
    extent: Extent,
) -> Result<Box<[Planned]>, LoadError> {
    let (count, end_ns) = match extent {
        Extent::Requests { count } => (count, u64::MAX),
        Extent::Duration { ns } => (MAX_REQUESTS + 1, ns),
    };
    if matches!(extent, Extent::Requests { count } if count > MAX_REQUESTS) {
        return Err(LoadError::TooMany { max: MAX_REQUESTS });
    }
    let within = arrivals.take_while(|request| request.at_ns < end_ns);
    let requests: Box<[Planned]> = within.take(count as usize).collect();
    if requests.len() as u64 > MAX_REQUESTS {
        return Err(LoadError::TooMany { max: MAX_REQUESTS });
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::{Class, Offered, ServiceDistribution, Workload};

    #[test]
    fn a_service_that_the_header_cannot_ask_for_is_refused_before_the_start() {
        let load = |mean_ns, service_time| {
            let service = ServiceDistribution::Constant { mean_ns };
            let workload = Workload::new("batch", vec![Class::new("c", 1.0, service)]);
            let target = "127.0.0.1:9".parse().unwrap();
            let extent = Extent::Requests { count: 1 };
            let mut load = Load::new(target, workload, Offered::Rate(1e3), extent);
            load.service_time = service_time;
            SendPlan::draw(&load)
        };
        let refused = load(1 << 32, ServiceTime::Nominal).unwrap_err().to_string();
        assert!(refused.contains("at most 4.29 s"), "{refused}");
        assert!(load((1 << 32) - 1, ServiceTime::Nominal).is_ok());
        // A real service takes its own time.
        assert!(load(1 << 32, ServiceTime::Reported).is_ok());
    }
}
