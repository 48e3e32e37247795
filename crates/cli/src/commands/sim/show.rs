//! The output of `headway sim` for any run.

use headway_report::{Run, Verdict, format};
use std::process::ExitCode;

/// Says whether the run meets the SLO, and which bounds it misses.
pub(crate) fn tell_verdict(verdict: &Verdict) -> ExitCode {
    match verdict {
        Verdict::Met => return ExitCode::SUCCESS,
        Verdict::Overloaded => eprintln!("SLO missed: the run is overloaded"),
        Verdict::Lossy(loss) => eprintln!("SLO missed: {loss}"),
        Verdict::Missed(violations) => {
            for violation in violations {
                eprintln!("SLO missed: {violation}");
            }
        }
    }
    ExitCode::FAILURE
}

/// The setup of the run in one line.
pub(crate) fn headline(run: &Run) -> String {
    let meta = &run.meta;
    let params: String = meta
        .params
        .iter()
        .map(|(key, value)| format!(",{key}={}", bare(value)))
        .collect();
    let racks = run.extras.racks.unwrap_or(1);
    let servers = run.extras.servers.map_or(String::new(), |servers| {
        format!("{} × ", format::counted(servers / racks, "server"))
    });
    let racks = match racks {
        1 => String::new(),
        racks => format!("{} × ", format::counted(racks, "rack")),
    };
    format!(
        "{}{params} · {} · {racks}{}{} · load {} ({} rps) · {} requests · seed {}",
        meta.policy,
        meta.workload,
        servers,
        format::counted(meta.workers, "worker"),
        format::significant(meta.load, 3),
        format::metric(meta.offered_rps),
        meta.requests,
        meta.seed,
    )
}

/// A JSON value as it is written after `key=`.
fn bare(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// 0–1, 3: ascending numbers, runs of them joined.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    if parts.is_empty() {
        return "none".into();
    }
    parts
        .iter()
        .map(|&(first, last): &(usize, usize)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}–{last}")
            }
        })
        .collect::<Vec<_>>()
        .join(", ")
}
