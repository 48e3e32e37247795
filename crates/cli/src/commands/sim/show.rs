//! The output of `headway sim` for any run.

use anyhow::Result;
use headway_report::{Run, Slo, Verdict, format};
use std::process::ExitCode;

/// Notes in the run how many of it and of the runs of other seeds meet the SLO.
pub(super) fn ask_seeds(slo: &Slo, run: &mut Run, others: &[Run]) -> Result<()> {
    if !others.is_empty() {
        let all = std::iter::once(&*run).chain(others);
        run.extras.slo_seeds = slo.by_seeds(all)?;
    }
    Ok(())
}

/// Says whether the run meets the SLO, which bounds it misses, and which rest on a handful of requests.
pub(crate) fn tell_verdict(slo: &Slo, run: &Run) -> Result<ExitCode> {
    if let Some(seeds) = run.extras.slo_seeds.filter(|seeds| !seeds.agree()) {
        eprintln!("note: the SLO is met by {seeds}: {LONGER}");
    }
    match slo.evaluate(run)? {
        Verdict::Met => {
            tell_few_samples(slo, std::iter::once(run));
            return Ok(ExitCode::SUCCESS);
        }
        Verdict::Unshown(few) => eprintln!("SLO not shown: {few}: {LONGER}"),
        Verdict::Overloaded => eprintln!("SLO missed: the run is overloaded"),
        Verdict::Lossy(loss) => eprintln!("SLO missed: {loss}"),
        Verdict::Missed(violations) => {
            for violation in violations {
                eprintln!("SLO missed: {violation}");
            }
        }
    }
    Ok(ExitCode::FAILURE)
}

/// The remedy for figures that rest on few requests.
pub(crate) const LONGER: &str = "ask for more --requests, or a longer --duration";

/// Warns where a bounded figure of one of the runs rests on a handful of requests.
pub(crate) fn tell_few_samples<'a>(slo: &Slo, runs: impl Iterator<Item = &'a Run>) {
    let few = runs.filter_map(|run| slo.few_samples(run));
    if let Some(few) = few.min_by(|a, b| a.requests.total_cmp(&b.requests)) {
        eprintln!("note: {few} a run: {LONGER}");
    }
}

/// The remark on a run that was interrupted.
pub(crate) fn cut_off(run: &Run) -> Option<String> {
    run.extras.cut_off.then(|| {
        format!(
            "CUT OFF: interrupted after {} requests, the warm-up's among them; the figures are those of the others until then",
            run.meta.requests
        )
    })
}

/// The setup of the run in one line.
pub(crate) fn headline(run: &Run) -> String {
    let meta = &run.meta;
    // Keys after `inner` are those of the servers' policy.
    let (own, inner): (Vec<_>, Vec<_>) = meta.params.iter().partition(|(key, _)| *key != "inner");
    let params: String = own
        .into_iter()
        .chain(inner)
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
        "{}{params} · {} · {racks}{}{}{} · load {} ({} rps) · {} requests · seed {}",
        meta.policy,
        meta.workload,
        servers,
        format::counted(meta.workers, "worker"),
        cores(run),
        format::significant(meta.load, 3),
        format::metric(meta.offered_rps),
        meta.requests,
        meta.seed,
    )
}

/// The cores of a system that has some beside its workers.
fn cores(run: &Run) -> String {
    let workers = run.meta.workers * run.extras.servers.unwrap_or(1);
    match run.extras.cores {
        Some(cores) if cores > workers && run.extras.serving_cores > Some(workers) => {
            format!(", {cores} cores, dispatchers serve too")
        }
        Some(cores) if cores > workers => format!(", {cores} cores"),
        _ => String::new(),
    }
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
