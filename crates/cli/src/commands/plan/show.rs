//! A plan for people.

use crate::output;
use headway_report::stats::ConfidenceInterval;
use headway_report::{
    CoresNeeded, LOST_FRACTION_MAX, PlanEntry, PlanReport, PlanVerdict, Table, TrialResult,
    Validation, format,
};
use std::path::Path;

/// The whole plan as text.
pub(super) fn text(report: &PlanReport, path: Option<&Path>) -> String {
    let mut lines = vec![
        format!(
            "{} · {}{} · load {} ({} rps) · {} · seed {}",
            report.workload,
            report.machine_cores.map_or(String::new(), |cores| format!(
                "{}, ",
                format::counted(cores, "core")
            )),
            format::counted(report.workers, "worker"),
            format::significant(report.load, 3),
            format::metric(report.offered_rps),
            report.slo,
            report.seed,
        ),
        String::new(),
        output::shown(&ranking(report), path),
        String::new(),
    ];
    lines.extend(comparison(report));
    if report.cut_off {
        lines.push("CUT OFF: interrupted; the table is that of the last complete round, and what is missing below was not reached.".into());
    }
    lines.extend(verdict(report));
    lines.extend(
        report
            .cores
            .iter()
            .map(|needed| cores(needed, report.ideal)),
    );
    lines.extend(
        report
            .validation
            .iter()
            .flat_map(|one| validation(one, path)),
    );
    let changes = report.sensitivity.iter();
    lines.extend(changes.map(|one| trial(&one.change, &one.trial)));
    lines.extend(
        report
            .replay
            .iter()
            .map(|one| trial("on the trace itself", one)),
    );
    if report.doubt.is_some() && !differs(report) {
        let doubt = report.doubt.iter();
        lines.extend(doubt.map(|doubt| format!("note: the fit of the arrivals: {doubt}")));
    }
    lines.extend(
        report
            .caveats
            .iter()
            .map(|caveat| format!("note: {caveat}")),
    );
    lines.join("\n")
}

/// The candidates of the last round.
fn ranking(report: &PlanReport) -> Table {
    let recorded = report.replay.is_some();
    let mut columns = vec![
        "policy",
        "layout",
        "workers",
        "cores",
        "SLO used",
        "of the best",
        "met",
        "tightest bound",
        "live",
    ];
    if recorded {
        columns.push("on the trace");
    }
    let mut table = Table::new(columns);
    for (rank, entry) in report.ranking.iter().enumerate() {
        let mut row = vec![
            entry.policy.clone(),
            entry.layout.clone(),
            entry.workers.to_string(),
            entry.cores.to_string(),
            used(entry),
            match rank {
                0 => "1".into(),
                _ => of_best(entry),
            },
            format!("{}/{}", entry.met, entry.replications),
            entry.tightest.clone().unwrap_or_else(|| "–".into()),
            if entry.live { "yes" } else { "not yet" }.into(),
        ];
        row.extend(entry.replay.as_ref().map(|replay| {
            let met = if replay.met == replay.replications {
                "met"
            } else {
                "missed"
            };
            format!("{met}, {}", outcome(replay))
        }));
        table.push(row);
    }
    table
}

fn used(entry: &PlanEntry) -> String {
    match (entry.overloaded, &entry.slo_use) {
        (true, _) => "overloaded".into(),
        (false, Some(interval)) => percents(interval),
        (false, None) if entry.lost_fraction > LOST_FRACTION_MAX => sheds(entry.lost_fraction),
        (false, None) => "–".into(),
    }
}

fn sheds(fraction: f64) -> String {
    format!("sheds {}", format::percent(fraction))
}

fn percents(interval: &ConfidenceInterval) -> String {
    let whole = |part: f64| format::significant(100.0 * part, 3);
    let ConfidenceInterval {
        estimate, lo, hi, ..
    } = *interval;
    format!("{} % [{}, {}]", whole(estimate), whole(lo), whole(hi))
}

fn of_best(entry: &PlanEntry) -> String {
    match &entry.of_best {
        Some(ratio) if entry.tied => format!("{} (tied)", format::interval(ratio)),
        Some(ratio) => format::interval(ratio),
        None => "–".into(),
    }
}

/// The precision of the ratios to the best.
fn comparison(report: &PlanReport) -> Option<String> {
    let comparison = &report.comparison;
    let percent = format::significant(100.0 * comparison.confidence, 3);
    (report.ranking.len() > 1).then(|| {
        format!(
            "All ratios to the best hold at once with {percent} %: Bonferroni over {} pairs, since the same runs choose the best.",
            comparison.pairs
        )
    })
}

fn verdict(report: &PlanReport) -> Vec<String> {
    let best = &report.ranking[0];
    let mut lines = Vec::new();
    let decided = match report.replay {
        Some(_) => "on the trace itself",
        None => "in every replication",
    };
    match report.verdict {
        PlanVerdict::Met => lines.push(format!(
            "{} ({}) meets the SLO {decided}{}.",
            best.policy,
            best.layout,
            machine(report.ideal)
        )),
        PlanVerdict::Missed => lines.push(format!(
            "No candidate meets the SLO {decided}{}; that none could was not shown.",
            machine(report.ideal)
        )),
        PlanVerdict::Undecided => {}
        PlanVerdict::Impossible => {
            lines.push(format!(
                "No policy can meet the SLO on so many workers{}:",
                machine(report.ideal)
            ));
            let shown = report.impossible.iter();
            lines.extend(shown.map(|one| format!("  {}: {}", one.bound, one.why)));
        }
    }
    if differs(report) {
        let doubt = report.doubt.as_deref();
        let doubt = doubt.unwrap_or("it knows gaps and service times, not what follows what");
        let (met, of) = (best.met, best.replications);
        lines.push(format!(
            "The process fitted to the trace says otherwise, met {met}/{of}, and does not count: {doubt}."
        ));
    }
    let tied = report.ranking.iter().skip(1).filter(|entry| entry.tied);
    let tied: Vec<String> = tied
        .map(|entry| format!("{} ({})", entry.policy, entry.layout))
        .collect();
    if !tied.is_empty() {
        lines.push(format!("Not told apart from it: {}.", tied.join("; ")));
        if !report.sensitivity.is_empty() {
            lines.push("Of these it bears more load and longer service times best.".into());
        }
    }
    let alike = report
        .ranking
        .iter()
        .filter(|entry| !entry.alike.is_empty());
    lines.extend(alike.map(|entry| {
        format!(
            "To every request the same as {} ({}): {}.",
            entry.policy,
            entry.layout,
            entry.alike.join("; ")
        )
    }));
    lines.extend(not_live(report));
    lines
}

/// What the live server does not run of these.
fn not_live(report: &PlanReport) -> Option<String> {
    match &report.live {
        Some(live) if *live != report.ranking[0].policy => Some(format!(
            "The live server does not run it yet; the best that it runs is {live}."
        )),
        None if report.ranking.iter().all(|entry| !entry.live) => {
            Some("The live server runs none of these yet.".into())
        }
        // None that it runs could be ranked.
        None | Some(_) => None,
    }
}

/// Whether the best candidate meets the SLO on the trace and misses it on the fitted process, or the reverse.
fn differs(report: &PlanReport) -> bool {
    let best = &report.ranking[0];
    let replay = best.replay.as_ref();
    replay.is_some_and(|replay| {
        (replay.met == replay.replications) != (best.met == best.replications)
    })
}

/// A note that the verdict concerns an ideal machine.
fn machine(ideal: bool) -> &'static str {
    if ideal { " on an ideal machine" } else { "" }
}

fn cores(needed: &CoresNeeded, ideal: bool) -> String {
    let on = machine(ideal);
    let Some((workers, load)) = needed.workers.zip(needed.load) else {
        let most = format::counted(needed.searched_to, "worker");
        return format!(
            "{} ({}) does not meet the SLO with {most}{on}.",
            needed.policy, needed.layout
        );
    };
    let workers_and_cores = match needed.cores {
        Some(cores) => format!(
            "{}, {},",
            format::counted(workers, "worker"),
            if cores > workers {
                format!(
                    "{} with what dispatches or interrupts",
                    format::counted(cores, "core")
                )
            } else {
                format!("{} in all", format::counted(cores, "core"))
            }
        ),
        None => format::counted(workers, "worker"),
    };
    let load = format::significant(load, 3);
    format!(
        "{} ({}) needs {workers_and_cores} at this rate (load {load}){on}.",
        needed.policy, needed.layout
    )
}

/// The answer, simulated and live.
fn validation(validation: &Validation, path: Option<&Path>) -> Vec<String> {
    let Validation {
        policy,
        met,
        simulated,
        live,
    } = validation;
    let mut table = Table::new(["class", "simulated p50", "live", "simulated p99.9", "live"]);
    for (one, other) in simulated.classes.iter().zip(&live.classes) {
        let (one, other) = (&one.latency_us, &other.latency_us);
        let figures = [one.p50, other.p50, one.p999, other.p999].map(format::duration_us);
        table.push(
            [
                &[live.classes[table.rows().len()].name.clone()],
                &figures[..],
            ]
            .concat(),
        );
    }
    let verdict = if *met { "meets" } else { "MISSES" };
    let lost = format::percent(live.lost_fraction());
    vec![
        String::new(),
        format!(
            "{policy} live, over loopback UDP without the network's time, {verdict} the SLO and loses {lost}; beside a simulation of the same:"
        ),
        output::shown(&table, path),
        String::new(),
    ]
}

/// What came of a trial, in a few words.
fn outcome(trial: &TrialResult) -> String {
    match (trial.overloaded, trial.slo_use) {
        (true, _) => "overloaded".into(),
        (false, Some(used)) => format!("{} % used", format::significant(100.0 * used, 3)),
        (false, None) if trial.lost_fraction > LOST_FRACTION_MAX => sheds(trial.lost_fraction),
        (false, None) => "nothing was measured".into(),
    }
}

fn trial(when: &str, trial: &TrialResult) -> String {
    let TrialResult {
        policy,
        met,
        replications,
        ..
    } = trial;
    let outcome = match (trial.overloaded, trial.slo_use) {
        (false, Some(used)) => {
            format!("uses {} % of the SLO", format::significant(100.0 * used, 3))
        }
        _ => outcome(trial),
    };
    let load = format::significant(trial.load, 3);
    format!("{when}: {policy} at load {load} {outcome}, met {met}/{replications}.")
}
