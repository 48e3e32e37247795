//! What a value may be: the parsers of flags and arguments.

use headway_policy::{MAX_WORKERS, Resume, WorkerId};
use headway_sim::{Classification, CoreChange, MAX_SERVERS};
use headway_workload::{duration, rate};
use std::ops::Range;

/// Parses a load above 0.
///
/// # Errors
/// The text is none.
pub fn load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if load > 0.0 && load <= 100.0 => Ok(load),
        _ => Err(format!(
            "'{text}' is not a load: a fraction above 0 and at most 100, such as 0.8"
        )),
    }
}

/// Parses a rate above 0.
///
/// # Errors
/// The text is none.
pub fn rate_rps(text: &str) -> Result<f64, String> {
    rate::parse(text).map_err(|error| error.to_string())
}

/// Parses a number with an optional k or M.
///
/// # Errors
/// The text is none.
pub fn count(text: &str) -> Result<u64, String> {
    match rate::parse(text) {
        Ok(number) if number.fract() == 0.0 && number < u64::MAX as f64 => Ok(number as u64),
        _ => Err(format!(
            "'{text}' is not a whole number above 0, such as 900, 260k or 5M"
        )),
    }
}

/// Parses a duration with its unit, in ns.
///
/// # Errors
/// The text is none.
pub fn time(text: &str) -> Result<u64, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

/// Parses the length of a run above 0 with its unit, in ns.
///
/// # Errors
/// The text is none.
pub fn run_length(text: &str) -> Result<u64, String> {
    match time(text)? {
        0 => Err(format!(
            "a run of '{text}' has no request: give it time, such as 20ms or 3s"
        )),
        ns => Ok(ns),
    }
}

/// The longest cost of the machinery: as long as a policy's parameters may be.
const COST_NS_MAX: u64 = 3_600_000_000_000;

/// Parses what a step of the machinery takes, with a unit.
///
/// # Errors
/// The text is none, or is more than an hour.
pub fn cost(text: &str) -> Result<u64, String> {
    within_an_hour(time(text)?)
}

/// The cost, where it is an hour at most.
pub(crate) fn within_an_hour(ns: u64) -> Result<u64, String> {
    if ns <= COST_NS_MAX {
        return Ok(ns);
    }
    Err(format!("{ns}ns is more than an hour"))
}

/// Parses a number of workers within a server's limit.
///
/// # Errors
/// The text is none.
pub fn workers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(workers) if (1..=MAX_WORKERS).contains(&workers) => Ok(workers),
        _ => Err(format!("a server has 1 to {MAX_WORKERS} workers")),
    }
}

/// Parses a number of servers within a rack's limit.
///
/// # Errors
/// The text is none.
pub fn servers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(servers) if (1..=MAX_SERVERS).contains(&servers) => Ok(servers),
        _ => Err(format!("a rack has 1 to {MAX_SERVERS} servers")),
    }
}

/// Parses a fraction from 0 to 1.
///
/// # Errors
/// The text is none.
pub fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err(format!(
            "'{text}' is not a fraction from 0 to 1, such as 0.05"
        )),
    }
}

/// Parses a change of workers: `20ms:-3`.
///
/// # Errors
/// The text is none.
pub fn core_change(text: &str) -> Result<CoreChange, String> {
    let wrong = || format!("'{text}' is not a core change, such as 20ms:-3 or 50ms:+3");
    let (at, worker) = text.split_once(':').ok_or_else(wrong)?;
    let present = worker.starts_with('+');
    let number = worker.strip_prefix(['+', '-']).ok_or_else(wrong)?;
    Ok(CoreChange {
        at_ns: time(at)?,
        worker: WorkerId(number.parse().map_err(|_| wrong())?),
        present,
    })
}

/// `2%`, or a fraction, 0.02: above 0 and below 1.
///
/// # Errors
/// The text is none.
pub fn percent(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number / scale < 1.0 => Ok(number / scale),
        _ => Err(format!(
            "'{text}' is not a part of the estimate above 0 and below 100 %, such as 2%"
        )),
    }
}

/// Parses the place where an interrupted request resumes: `anywhere` or `own-worker`.
///
/// # Errors
/// The text is neither.
pub fn resume(text: &str) -> Result<Resume, String> {
    match text {
        "anywhere" => Ok(Resume::Anywhere),
        "own-worker" => Ok(Resume::OwnWorker),
        _ => Err(format!("'{text}' is neither anywhere nor own-worker")),
    }
}

/// Parses a classifier: `exact` or `random`.
///
/// # Errors
/// The text is neither.
pub fn classifier(text: &str) -> Result<Classification, String> {
    match text {
        "exact" => Ok(Classification::Exact),
        "random" => Ok(Classification::Random),
        _ => Err(format!("'{text}' is neither exact nor random")),
    }
}

/// Parses a list of loads, `0.2,0.5` or `0.1..0.9:0.1`, both ends included.
///
/// # Errors
/// The text is none, or more than 10 000 loads.
pub fn loads(text: &str) -> Result<Vec<f64>, String> {
    const MOST: f64 = 10_000.0;
    let Some((from, rest)) = text.split_once("..") else {
        return text.split(',').map(|part| load(part.trim())).collect();
    };
    let Some((to, step)) = rest.split_once(':') else {
        return Err(format!("'{text}' has no step: write {text}:0.05"));
    };
    let (from, to, step) = (load(from.trim())?, load(to.trim())?, load(step.trim())?);
    let count = ((to - from) / step + 1.0 + 1e-9).floor().max(0.0);
    if count == 0.0 || count > MOST {
        return Err(format!(
            "'{text}' is {count} loads: 1 to {MOST} are possible"
        ));
    }
    // Rounded, so that 0.1 + 2 · 0.1 is 0.3 and a seed's run can be named by its load.
    Ok((0..count as usize)
        .map(|index| ((from + index as f64 * step) * 1e9).round() / 1e9)
        .collect())
}

/// Parses a part of a run, `20ms..21ms`, in ns.
///
/// # Errors
/// The text is none.
pub fn window(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("'{text}' is not a part of a run, such as 20ms..21ms");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to) = (time(from)?, time(to)?);
    if from < to {
        Ok(from..to)
    } else {
        Err(wrong())
    }
}
