//! The figures of a simulated run, by name.

use headway_report::Run;
use headway_report::Slo;
use headway_report::slo::{Bound, Scope};
use headway_sim::Outcome;
use std::fmt;
use std::str::FromStr;

/// One figure of a run: `overall.slowdown.p999`, `class.short.latency.p99`, `utilization` …
#[derive(Clone, Debug, PartialEq)]
pub enum Observable {
    /// A statistic of latency (µs) or slowdown: an SLO's grammar without the bound. `class.*` is
    /// that of the worst class. Not a number if the backlog of one of its classes grew without
    /// bound: such a tail only measures the run's length.
    Tail(Bound),
    /// 1 if the backlog of a class grew without bound, otherwise 0.
    Overloaded,
    /// 1 if the backlog of this class grew without bound, otherwise 0: `starved.LONG`.
    Starved(String),
    /// Fraction of the workers' time that they were busy.
    Utilization,
    /// Average number of cores that idle while a request waits.
    WastedCores,
    /// Preemptions over requests.
    Preemptions,
    /// Workers reserved for the group of one class at the end: `reserved.CLASS`.
    Reserved(String),
    /// Groups into which the plan divides the classes, at the end.
    Groups,
    /// Clones over requests, in a rack.
    Cloned,
    /// Completion rate, requests per second.
    Achieved,
    /// Fraction of the workers' time not spent in service: 1 − completion rate × mean service time
    /// ÷ workers. At a load above a system's capacity, this is the part that its overheads take.
    Unserved,
    /// Offered rate, requests per second.
    Offered,
}

impl Observable {
    /// The figure of this run.
    #[must_use]
    pub fn of(&self, outcome: &Outcome) -> f64 {
        let run = &outcome.run;
        match self {
            Self::Tail(bound) => tail(bound, run),
            Self::Overloaded => f64::from(u8::from(run.meta.overloaded)),
            Self::Starved(class) => f64::from(u8::from(run.extras.starved.contains(class))),
            Self::Utilization => run.meta.utilization,
            Self::WastedCores => outcome.wasted_cores,
            Self::Preemptions => run.meta.preemptions as f64 / run.meta.requests as f64,
            Self::Reserved(class) => reserved(run, class),
            Self::Groups => groups(run),
            Self::Cloned => cloned(outcome),
            Self::Achieved => run.meta.achieved_rps,
            Self::Unserved => 1.0 - run.meta.achieved_rps / run.meta.offered_rps * run.meta.load,
            Self::Offered => run.meta.offered_rps,
        }
    }

    /// The number of the run's requests that the figure rests on, where it is a tail.
    #[must_use]
    pub fn rests_on(&self, run: &Run) -> Option<f64> {
        let Self::Tail(bound) = self else {
            return None;
        };
        let rests = bound.samples(run).into_iter().map(|few| few.requests);
        rests.min_by(f64::total_cmp)
    }

    /// The class of the figure; none for a figure of all classes.
    #[must_use]
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Tail(bound) => match &bound.scope {
                Scope::Class(class) => Some(class),
                Scope::Overall | Scope::EveryClass => None,
            },
            Self::Starved(class) | Self::Reserved(class) => Some(class),
            _ => None,
        }
    }
}

fn tail(bound: &Bound, run: &Run) -> f64 {
    let starved = &run.extras.starved;
    let is_void = match &bound.scope {
        Scope::Class(class) => starved.contains(class),
        Scope::Overall | Scope::EveryClass => run.meta.overloaded,
    };
    if is_void {
        return f64::NAN;
    }
    let values = bound.values(run);
    values
        .iter()
        .map(|(_, value)| *value)
        .fold(f64::NAN, f64::max)
}

fn reserved(run: &Run, class: &String) -> f64 {
    let groups = run.extras.reservation.iter().flatten();
    let mut own = groups.filter(|group| group.classes.contains(class));
    own.next()
        .map_or(f64::NAN, |group| group.reserved.len() as f64)
}

fn groups(run: &Run) -> f64 {
    let plan = run.extras.reservation.as_ref();
    plan.map_or(f64::NAN, |groups| groups.len() as f64)
}

fn cloned(outcome: &Outcome) -> f64 {
    let rack = outcome.run.extras.rack.as_ref();
    rack.map_or(f64::NAN, |rack| {
        rack.cloned as f64 / outcome.run.meta.requests as f64
    })
}

impl FromStr for Observable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(class) = text.strip_prefix("starved.") {
            return Ok(Self::Starved(class.into()));
        }
        if let Some(class) = text.strip_prefix("reserved.") {
            return Ok(Self::Reserved(class.into()));
        }
        Ok(match text {
            "overloaded" => Self::Overloaded,
            "utilization" => Self::Utilization,
            "wasted_cores" => Self::WastedCores,
            "preemptions" => Self::Preemptions,
            "groups" => Self::Groups,
            "cloned" => Self::Cloned,
            "achieved" => Self::Achieved,
            "unserved" => Self::Unserved,
            "offered" => Self::Offered,
            _ => Self::Tail(tail_of(text)?),
        })
    }
}

/// Parses the name as an SLO with an arbitrary limit, and returns its bound.
fn tail_of(text: &str) -> Result<Bound, String> {
    let limit = if text.contains(".latency.") {
        "1us"
    } else {
        "1"
    };
    let parsed: Result<Slo, _> = format!("{text}<={limit}").parse();
    match parsed {
        Ok(slo) => Ok(slo.bounds()[0].clone()),
        Err(error) => Err(format!("`{text}` is no figure of a run: {error}")),
    }
}

impl fmt::Display for Observable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tail(bound) => {
                write!(f, "{}.{}.{}", bound.scope, bound.measure, bound.statistic)
            }
            Self::Overloaded => f.write_str("overloaded"),
            Self::Starved(class) => write!(f, "starved.{class}"),
            Self::Utilization => f.write_str("utilization"),
            Self::WastedCores => f.write_str("wasted_cores"),
            Self::Preemptions => f.write_str("preemptions"),
            Self::Reserved(class) => write!(f, "reserved.{class}"),
            Self::Groups => f.write_str("groups"),
            Self::Cloned => f.write_str("cloned"),
            Self::Achieved => f.write_str("achieved"),
            Self::Unserved => f.write_str("unserved"),
            Self::Offered => f.write_str("offered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for name in [
            "overall.slowdown.p999",
            "class.*.slowdown.p999",
            "class.short.latency.p99",
            "overloaded",
            "starved.long",
            "reserved.short",
            "wasted_cores",
            "preemptions",
            "groups",
            "cloned",
        ] {
            assert_eq!(name.parse::<Observable>().unwrap().to_string(), name);
        }
        let error = "overall.slowness.p999".parse::<Observable>().unwrap_err();
        assert!(error.contains("slowness"), "{error}");
    }
}
