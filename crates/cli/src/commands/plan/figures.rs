//! A plan's ranking for programs: unrounded, in the names of the JSON.

use headway_report::csv::figure;
use headway_report::stats::ConfidenceInterval;
use headway_report::{PlanEntry, PlanReport, Table, TrialResult};

const COLUMNS: [&str; 19] = [
    "policy",
    "layout",
    "resume",
    "workers",
    "cores",
    "live",
    "lost_fraction",
    "met",
    "replications",
    "overloaded",
    "slo_use",
    "slo_use_lo",
    "slo_use_hi",
    "of_best",
    "of_best_lo",
    "of_best_hi",
    "tied",
    "tightest",
    "alike",
];
/// Beside them where the plan is for a recording.
const RECORDED_COLUMNS: [&str; 5] = [
    "replay_met",
    "replay_replications",
    "replay_overloaded",
    "replay_lost_fraction",
    "replay_slo_use",
];

/// The candidates of the last round, a row each.
pub(super) fn ranking(report: &PlanReport) -> Table {
    let mut columns = COLUMNS.to_vec();
    if report.replay.is_some() {
        columns.extend(RECORDED_COLUMNS);
    }
    let mut table = Table::new(columns);
    for entry in &report.ranking {
        let mut row = row(entry);
        row.extend(entry.replay.iter().flat_map(recorded));
        table.push(row);
    }
    table
}

fn row(entry: &PlanEntry) -> Vec<String> {
    let mut row = vec![
        entry.policy.clone(),
        entry.layout.clone(),
        entry.resume.clone(),
        entry.workers.to_string(),
        entry.cores.to_string(),
        entry.live.to_string(),
        figure(entry.lost_fraction),
        entry.met.to_string(),
        entry.replications.to_string(),
        entry.overloaded.to_string(),
    ];
    row.extend(interval(entry.slo_use.as_ref()));
    row.extend(interval(entry.of_best.as_ref()));
    row.extend([
        entry.tied.to_string(),
        entry.tightest.clone().unwrap_or_default(),
        entry.alike.join("; "),
    ]);
    row
}

/// An estimate and the ends of its interval.
fn interval(interval: Option<&ConfidenceInterval>) -> [String; 3] {
    interval.map_or_else(Default::default, |one| {
        [one.estimate, one.lo, one.hi].map(figure)
    })
}

fn recorded(replay: &TrialResult) -> [String; 5] {
    [
        replay.met.to_string(),
        replay.replications.to_string(),
        replay.overloaded.to_string(),
        figure(replay.lost_fraction),
        replay.slo_use.map_or_else(String::new, figure),
    ]
}
