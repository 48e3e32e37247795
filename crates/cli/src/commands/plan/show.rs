//! A plan for people.

use headway_report::stats::Interval;
use headway_report::{CoresNeeded, PlanEntry, PlanReport, PlanVerdict, Table, Trial, format};

/// All of it.
pub(super) fn text(report: &PlanReport) -> String {
    let mut lines = vec![
        format!(
            "{} · {} workers · load {} ({} rps) · {} · seed {}",
            report.workload,
            report.workers,
            format::significant(report.load, 3),
            format::metric(report.offered_rps),
            report.slo,
            report.seed,
        ),
        String::new(),
        ranking(report).to_string(),
        String::new(),
    ];
    lines.extend(comparison(report));
    lines.extend(verdict(report));
    lines.extend(report.cores.iter().map(cores));
    let changes = report.sensitivity.iter();
    lines.extend(changes.map(|one| trial(&one.change, &one.trial)));
    lines.extend(
        report
            .replay
            .iter()
            .map(|one| trial("on the trace itself", one)),
    );
    lines.extend(
        report
            .caveats
            .iter()
            .map(|caveat| format!("note: {caveat}")),
    );
    lines.join("\n")
}

/// The candidates of the last round.
pub(super) fn ranking(report: &PlanReport) -> Table {
    let columns = [
        "policy",
        "SLO used",
        "of the best",
        "met",
        "tightest bound",
        "live",
    ];
    let mut table = Table::new(columns);
    for (rank, entry) in report.ranking.iter().enumerate() {
        table.push([
            entry.policy.clone(),
            used(entry),
            match rank {
                0 => "1".into(),
                _ => of_best(entry),
            },
            format!("{}/{}", entry.met, entry.replications),
            entry.tightest.clone().unwrap_or_else(|| "–".into()),
            if entry.live { "yes" } else { "not yet" }.into(),
        ]);
    }
    table
}

fn used(entry: &PlanEntry) -> String {
    match (entry.overloaded, &entry.slo_use) {
        (true, _) => "overloaded".into(),
        (false, Some(interval)) => percents(interval),
        (false, None) => "–".into(),
    }
}

fn percents(interval: &Interval) -> String {
    let whole = |part: f64| format::significant(100.0 * part, 3);
    let Interval {
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

/// What the ratios to the best can be trusted for.
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
    match report.verdict {
        PlanVerdict::Met => lines.push(format!(
            "{} meets the SLO in every replication.",
            best.policy
        )),
        PlanVerdict::Missed => lines.push(
            "No candidate meets the SLO in every replication; that none could was not shown."
                .into(),
        ),
        PlanVerdict::Impossible => {
            lines.push("No policy can meet the SLO on so many workers:".into());
            let shown = report.impossible.iter();
            lines.extend(shown.map(|one| format!("  {}: {}", one.bound, one.why)));
        }
    }
    let tied = report.ranking.iter().skip(1).filter(|entry| entry.tied);
    let tied: Vec<&str> = tied.map(|entry| entry.policy.as_str()).collect();
    if !tied.is_empty() {
        lines.push(format!("Not told apart from it: {}.", tied.join("; ")));
    }
    let alike = report
        .ranking
        .iter()
        .filter(|entry| !entry.alike.is_empty());
    lines.extend(alike.map(|entry| {
        format!(
            "To every request the same as {}: {}.",
            entry.policy,
            entry.alike.join("; ")
        )
    }));
    match &report.live {
        Some(live) if *live != best.policy => {
            lines.push(format!(
                "The live server does not run it yet; the best that it runs is {live}."
            ));
        }
        None => lines.push("The live server runs none of these yet.".into()),
        Some(_) => {}
    }
    lines
}

fn cores(needed: &CoresNeeded) -> String {
    match (needed.workers, needed.load) {
        (Some(workers), Some(load)) => format!(
            "{} needs {workers} workers at this rate (load {}).",
            needed.policy,
            format::significant(load, 3)
        ),
        _ => format!(
            "{} does not meet the SLO with {} workers.",
            needed.policy, needed.searched_to
        ),
    }
}

fn trial(when: &str, trial: &Trial) -> String {
    let Trial {
        policy,
        met,
        replications,
        ..
    } = trial;
    let outcome = match (trial.overloaded, trial.slo_use) {
        (true, _) => "overloaded".into(),
        (false, Some(used)) => {
            format!("uses {} % of the SLO", format::significant(100.0 * used, 3))
        }
        (false, None) => "nothing was measured".into(),
    };
    let load = format::significant(trial.load, 3);
    format!("{when}: {policy} at load {load} {outcome}, met {met}/{replications}.")
}
