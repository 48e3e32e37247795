//! A figure measured on replayed arrivals as text, Markdown and HTML, with the same content.

use std::fmt::Write as _;

use headway_report::html::Page;
use headway_report::{Table, format};

use super::experiment::ReplayedExperiment;
use super::figure::RunFigure;
use super::result::ReplayedReproduction;
use crate::measured::expectation::interval_words;
use crate::show::{list, rows};

/// The list of experiments.
#[must_use]
pub fn listing(experiments: &[ReplayedExperiment]) -> Table {
    list(experiments.iter().map(|experiment| {
        let names = [&experiment.name, &experiment.paper, &experiment.figure];
        (names, &experiment.title, experiment.claim.len())
    }))
}

/// The claims: the expectation, the measured and the simulated figure, the verdict.
#[must_use]
pub fn claims(result: &ReplayedReproduction) -> Table {
    let mut table = Table::new([
        "what",
        "of",
        "figure",
        "load",
        "expected",
        "live",
        "simulated",
        "rounds",
        "verdict",
    ]);
    for claim in &result.claims {
        table.push([
            claim.says.clone(),
            claim.of.clone(),
            claim.figure.figure.words().into(),
            format::significant(claim.figure.load, 2),
            claim.expect.words(),
            interval_words(claim.live.as_ref()),
            interval_words(claim.simulated.as_ref()),
            claim.rounds.to_string(),
            claim.verdict.words().into(),
        ]);
    }
    table
}

/// Every system at every load: medians over the rounds that count, live beside simulated.
#[must_use]
pub fn points(result: &ReplayedReproduction) -> Table {
    let columns = RunFigure::SHOWN.map(|seen| seen.words().to_owned());
    let head = ["load", "system", "rounds", "left alone"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(columns));
    let mut points: Vec<_> = result.points.iter().collect();
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    for point in points {
        let number = |value: f64| match value {
            value if value.is_finite() => format::significant(value, 3),
            _ => "–".into(),
        };
        let row = [
            format::significant(point.load, 2),
            point.system.clone(),
            format!("{} of {}", point.rounds, result.rounds),
            format::percent(point.untouched_fraction),
        ];
        table.push(row.into_iter().chain(point.figures.iter().map(
            |(seen, live, simulated): &(RunFigure, f64, f64)| match seen {
                RunFigure::Avoided => number(*live),
                _ => format!("{} ({})", number(*live), number(*simulated)),
            },
        )));
    }
    table
}

fn systems(result: &ReplayedReproduction) -> Table {
    let mut table = Table::new(["system", "policy"]);
    for (name, policy) in &result.systems {
        table.push([name.clone(), policy.clone()]);
    }
    table
}

const RULE: &str = "Intervals are of 95 % over rounds, paired by round: of ratios around their geometric mean, of single figures around their mean. \
                    An interval wholly where the paper is: reproduced; wholly elsewhere: not reproduced; on the paper's side of 1 without its \
                    figure: deviates; else undecided. Figures are of the requests that the machine left alone, simulated ones, in brackets, of the same.";

/// The notes, one sentence each.
fn notes(result: &ReplayedReproduction) -> Vec<String> {
    let mut notes: Vec<String> = result
        .claims
        .iter()
        .filter_map(|claim| {
            let reason = claim.reason.as_ref()?;
            Some(format!("Why ({}): {reason}", claim.says))
        })
        .collect();
    let counted = result.runs.iter().filter(|run| run.counts).count();
    let lost = result.runs.iter().map(|run| run.lost_fraction);
    notes.push(format!(
        "Machine: {}. Workload {}, {} workers, {} rounds of {} ms, seed {}. {counted} of {} runs count; the machine took up to {} of the time of a run.",
        result.machine,
        result.workload,
        result.workers,
        result.rounds,
        result.run_ms,
        result.seed,
        result.runs.len(),
        format::percent(lost.fold(0.0, f64::max)),
    ));
    if result.shortened {
        notes.push("A first impression: few loads, short runs.".into());
    }
    notes.push(format!("The paper's: {}", result.testbed));
    notes
}

/// The result as text for a terminal.
#[must_use]
pub fn text(result: &ReplayedReproduction) -> String {
    let mut text = format!(
        "{} · {} {}\n{}\n\n{}\n{RULE}\n\n{}\n\n{}\n",
        result.name,
        result.paper,
        result.figure,
        result.title,
        claims(result),
        points(result),
        systems(result),
    );
    for note in notes(result) {
        let _ = write!(text, "\n{note}");
    }
    let _ = write!(text, "\nAgain: {}\n", result.command);
    text
}

/// The result as a section in Markdown.
#[must_use]
pub fn markdown(result: &ReplayedReproduction) -> String {
    let mut text = format!(
        "## {}, {}: {}\n\n`{}`\n\n{}\n{RULE}\n\n{}\n{}\n",
        result.paper,
        result.figure,
        result.title,
        result.command,
        rows(&claims(result)),
        rows(&points(result)),
        rows(&systems(result)),
    );
    for note in notes(result) {
        let _ = writeln!(text, "- {note}");
    }
    text
}

/// The result as an HTML page.
#[must_use]
pub fn page(result: &ReplayedReproduction) -> Page {
    let title = format!("{}, {}: {}", result.paper, result.figure, result.title);
    let mut page = Page::new(title)
        .table("Claims", &claims(result))
        .paragraph(RULE)
        .table("All points", &points(result))
        .table("Systems", &systems(result));
    for note in notes(result) {
        page = page.paragraph(&note);
    }
    page.code(&result.command)
}
