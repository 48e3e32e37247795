//! A figure measured behind a switch as text, Markdown and HTML, with the same content.

use std::fmt::Write as _;

use headway_report::html::Page;
use headway_report::{Table, format};

use super::experiment::RackedExperiment;
use super::result::RackedReproduction;
use super::run::RackedTail;
use crate::measured::MeasuredRun;
use crate::measured::expectation::interval_words;
use crate::show::{list, rows};

/// The list of experiments.
#[must_use]
pub fn listing(experiments: &[RackedExperiment]) -> Table {
    list(experiments.iter().map(|experiment| {
        let names = [&experiment.name, &experiment.paper, &experiment.figure];
        (names, &experiment.title, experiment.claim.len())
    }))
}

/// The claims: the expectation, the measured and the simulated figure, the verdict.
#[must_use]
pub fn claims(result: &RackedReproduction) -> Table {
    let mut table = Table::new([
        "what",
        "of",
        "p99",
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
            claim.figure.tail.clone(),
            claim.expect.words(),
            interval_words(claim.live.as_ref()),
            interval_words(claim.simulated.as_ref()),
            claim.rounds.to_string(),
            claim.verdict.words().into(),
        ]);
    }
    table
}

/// Every system's tails: medians over the rounds that count, live beside simulated.
#[must_use]
pub fn points(result: &RackedReproduction) -> Table {
    let shown = result.points.iter().find(|point| !point.live.is_empty());
    let tails = shown.map_or(&[][..], |point| &point.live);
    let columns = tails.iter().map(|tail| {
        let (class, phase, during) = (&tail.class, tail.phase, tail.during.words());
        format!("{class}, {phase}, {during}")
    });
    let head = ["system", "rounds"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(columns));
    for point in &result.points {
        let row = [
            point.system.clone(),
            format!("{} of {}", point.rounds, result.rounds),
        ];
        let sides = point.live.iter().zip(&point.simulated);
        let cells = sides.map(|(live, simulated): (&RackedTail, &RackedTail)| {
            format!("{} ({})", number(live.p99_ms), number(simulated.p99_ms))
        });
        let mut cells: Vec<String> = cells.collect();
        cells.resize(tails.len(), "–".into());
        table.push(row.into_iter().chain(cells));
    }
    table
}

fn number(value: f64) -> String {
    if value.is_finite() {
        format::significant(value, 3)
    } else {
        "–".into()
    }
}

fn systems(result: &RackedReproduction) -> Table {
    let mut table = Table::new(["system", "policy"]);
    for (name, policy) in &result.systems {
        table.push([name.clone(), policy.clone()]);
    }
    table
}

const RULE: &str = "Intervals are of 95 % over rounds, paired by round: of ratios around their geometric mean, of single figures around their mean. \
                    An interval wholly where the paper is: reproduced; wholly elsewhere: not reproduced; on the paper's side of 1 without its \
                    figure: deviates; else undecided. Latencies are p99 in ms at the client, by class, phase and part of the phase; simulated ones in brackets.";

/// The notes, one sentence each.
fn notes(result: &RackedReproduction) -> Vec<String> {
    let reasons = result.claims.iter().filter_map(|claim| {
        let reason = claim.reason.as_ref()?;
        Some(format!("Why ({}): {reason}", claim.says))
    });
    let mut notes: Vec<String> = reasons.collect();
    let [servers, workers] = result.servers;
    let counted = result.runs.iter().filter(|run| run.counts()).count();
    let sum = |count: fn(&super::RackedRun) -> u64| result.runs.iter().map(count).sum::<u64>();
    notes.push(format!(
        "Machine: {}. {servers} servers of {workers} workers, load {}, {} rounds, seed {}. {counted} of {} runs count; of {} requests {} were lost and {} shed.",
        result.machine,
        result.load,
        result.rounds,
        result.seed,
        result.runs.len(),
        sum(|run| run.sent),
        sum(|run| run.lost),
        sum(|run| run.shed),
    ));
    if result.shortened {
        notes.push("A first impression: few rounds.".into());
    }
    notes.push(format!("The paper's: {}", result.testbed));
    notes
}

/// The result as text for a terminal.
#[must_use]
pub fn text(result: &RackedReproduction) -> String {
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
pub fn markdown(result: &RackedReproduction) -> String {
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
pub fn page(result: &RackedReproduction) -> Page {
    let title = format!("{}, {}: {}", result.paper, result.figure, result.title);
    let mut page = Page::new(title)
        .table("Claims", &claims(result))
        .paragraph(RULE)
        .table("All tails", &points(result))
        .table("Systems", &systems(result));
    for note in notes(result) {
        page = page.paragraph(&note);
    }
    page.code(&result.command)
}
