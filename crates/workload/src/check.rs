//! The rules every workload obeys, in one place for files and for workloads built in code.

use std::collections::HashSet;

use crate::class_name::not_reserved;
use crate::error::{Error, Problem};
use crate::service::check_number;
use crate::workload::{Arrivals, Class, Workload};

/// Published shares are rounded; their sum may miss 1 by this much.
const SHARE_TOLERANCE: f64 = 0.002;

/// A broken rule about a list of classes.
pub(crate) struct BrokenRule {
    /// The class's index in the list; none for the list itself.
    pub(crate) class: Option<usize>,
    /// The key, dotted, within the class.
    pub(crate) key: String,
    pub(crate) problem: Box<Problem>,
}

impl Workload {
    /// Checks the workload: shares sum to 1 ± 0.002 in every mix, parameters are in range, names are
    /// unique. Named workloads and workloads read from files always pass.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first field that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check(self)
    }
}

fn check(workload: &Workload) -> Result<(), Error> {
    let invalid = |key: String, problem: Problem| Error::Invalid {
        workload: workload.name.clone(),
        key,
        problem: Box::new(problem),
    };
    arrivals(&workload.arrivals).map_err(|(key, p)| invalid(format!("arrivals.{key}"), p))?;
    let in_class = |prefix: &str, v: BrokenRule| {
        let index = v.class.map_or(String::new(), |index| format!("[{index}]"));
        invalid(format!("{prefix}{index}.{}", v.key), *v.problem)
    };
    if workload.phases.is_empty() || !workload.classes.is_empty() {
        mix(&workload.classes).map_err(|violation| in_class("class", violation))?;
    }
    for (index, phase) in workload.phases.iter().enumerate() {
        let prefix = format!("phase[{index}]");
        duration(phase.duration_ns).map_err(|p| invalid(format!("{prefix}.duration"), p))?;
        mix(&phase.classes).map_err(|v| in_class(&format!("{prefix}.class"), v))?;
    }
    across(workload).map_err(|(key, problem)| invalid(key.to_owned(), problem))
}

/// Rules between parts.
pub(crate) fn across(workload: &Workload) -> Result<(), (&'static str, Problem)> {
    fit_for_terminals(&workload.name).map_err(|problem| ("name", problem))?;
    let names = workload.class_names();
    if names.len() > usize::from(u16::MAX) {
        let required = "at most 65535 classes";
        return Err((
            "class",
            Problem::Range {
                required,
                given: names.len().to_string(),
            },
        ));
    }
    let Arrivals::Trace(trace) = &workload.arrivals else {
        return Ok(());
    };
    if !workload.phases.is_empty() {
        return Err((
            "phase",
            Problem::Conflict("a trace fixes the mix; remove the phases"),
        ));
    }
    let declared = |name: &String| names.contains(&name.as_str());
    if trace.classes().iter().all(declared) {
        return Ok(());
    }
    Err((
        "arrivals",
        Problem::Conflict("the trace has a class that is not declared"),
    ))
}

pub(crate) fn arrivals(arrivals: &Arrivals) -> Result<(), (&'static str, Problem)> {
    match arrivals {
        // Gaps of a smaller cv are as regular as a clock, and their shape 1 ÷ cv² grows too large to draw with.
        Arrivals::Gamma { cv } => check_number("cv", *cv, 0.001..=100.0, "from 0.001 to 100"),
        Arrivals::Poisson | Arrivals::Deterministic | Arrivals::Trace(_) => Ok(()),
    }
}

pub(crate) fn duration(duration_ns: u64) -> Result<(), Problem> {
    if duration_ns > 0 {
        return Ok(());
    }
    Err(Problem::Range {
        required: "at least 1ns",
        given: "0".to_owned(),
    })
}

/// Names stand in tables and errors.
fn fit_for_terminals(name: &str) -> Result<(), Problem> {
    let shown = headway_words::escaped(name);
    if shown == name {
        return Ok(());
    }
    Err(Problem::Range {
        required: "a name without control characters",
        given: shown,
    })
}

pub(crate) fn mix(classes: &[Class]) -> Result<(), BrokenRule> {
    let mut names = HashSet::new();
    for (index, class) in classes.iter().enumerate() {
        let at = |key: &str, problem: Problem| BrokenRule {
            class: Some(index),
            key: key.to_owned(),
            problem: Box::new(problem),
        };
        if class.name.is_empty() {
            return Err(at(
                "name",
                Problem::Missing {
                    remedy: "a class needs a name",
                },
            ));
        }
        fit_for_terminals(&class.name)
            .and_then(|()| not_reserved(&class.name))
            .map_err(|problem| at("name", problem))?;
        if !names.insert(&class.name) {
            return Err(at(
                "name",
                Problem::DuplicateClass {
                    name: class.name.clone(),
                },
            ));
        }
        if !(0.0..=1.0).contains(&class.share) {
            let given = class.share.to_string();
            return Err(at(
                "share",
                Problem::Range {
                    required: "from 0 to 1",
                    given,
                },
            ));
        }
        class
            .service
            .check()
            .map_err(|(key, problem)| at(&format!("service.{key}"), problem))?;
    }
    shares(classes)
}

fn shares(classes: &[Class]) -> Result<(), BrokenRule> {
    let whole = |key: &str, problem: Problem| {
        Err(BrokenRule {
            class: None,
            key: key.to_owned(),
            problem: Box::new(problem),
        })
    };
    if classes.is_empty() {
        return whole(
            "class",
            Problem::Missing {
                remedy: "a workload needs at least one [[class]]",
            },
        );
    }
    let sum: f64 = classes.iter().map(|class| class.share).sum();
    // `1e-12` covers the binary rounding of decimal shares.
    if (sum - 1.0).abs() > SHARE_TOLERANCE + 1e-12 {
        return whole("share", Problem::Shares { sum });
    }
    Ok(())
}
