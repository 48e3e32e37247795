//! A figure measured on a host of applications as text, Markdown and HTML, with the same content.

use std::fmt::Write as _;

use headway_report::html::Page;
use headway_report::{Table, format};

use super::experiment::HostedExperiment;
use super::result::HostedReproduction;
use super::run::HostedFigure;
use crate::measured::MeasuredRun;
use crate::measured::expectation::interval_words;
use crate::show::{self, list, rows};

/// The list of experiments.
#[must_use]
pub fn listing(experiments: &[HostedExperiment]) -> Table {
    list(experiments.iter().map(|experiment| {
        let names = [&experiment.name, &experiment.paper, &experiment.figure];
        (names, &experiment.title, experiment.claim.len())
    }))
}

/// The claims: the expectation, the measured and the simulated figure, the verdict.
#[must_use]
pub fn claims(result: &HostedReproduction) -> Table {
    let mut table = Table::new([
        "what",
        "of",
        "figure",
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
            claim.expect.words(),
            interval_words(claim.live.as_ref()),
            interval_words(claim.simulated.as_ref()),
            claim.rounds.to_string(),
            claim.verdict.words().into(),
        ]);
    }
    table
}

/// Every system's figures at every place: medians over the rounds that count, live beside simulated.
#[must_use]
pub fn points(result: &HostedReproduction) -> Table {
    let columns = HostedFigure::ALL.map(|figure| figure.words().to_owned());
    let head = ["load", "system", "rounds"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(columns));
    for point in &result.points {
        let row = [
            point.place.clone(),
            point.system.clone(),
            format!("{} of {}", point.rounds, result.rounds),
        ];
        let cells = HostedFigure::ALL.map(|figure| {
            let (live, simulated) = (point.live.get(figure), point.simulated.get(figure));
            format!("{} ({})", number(live), number(simulated))
        });
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

fn systems(result: &HostedReproduction) -> Table {
    let mut table = Table::new(["system", "allocator"]);
    for (name, policy) in &result.systems {
        table.push([name.clone(), policy.clone()]);
    }
    table
}

const RULE: &str = "Intervals are of 95 % over rounds, paired by round: of ratios around their geometric mean, of single figures around their mean. \
                    An interval wholly where the paper is: reproduced; wholly elsewhere: not reproduced; on the paper's side of 1 without its \
                    figure: deviates; else undecided. Latencies are those of the client, from the intended send; simulated figures in brackets.";

/// The notes, one sentence each.
fn notes(result: &HostedReproduction) -> Vec<String> {
    let reasons = result.claims.iter().filter_map(|claim| {
        let reason = claim.reason.as_ref()?;
        Some(format!("Why ({}): {reason}", claim.says))
    });
    let mut notes: Vec<String> = reasons.collect();
    let counted = result.runs.iter().filter(|run| run.counts()).count();
    let sum = |count: fn(&super::HostedRun) -> u64| result.runs.iter().map(count).sum::<u64>();
    notes.push(format!(
        "Machine: {}. {} cores are dealt out, {} rounds, seed {}. {counted} of {} runs count; of {} requests {} were lost and {} shed.",
        result.machine,
        result.cores,
        result.rounds,
        result.seed,
        result.runs.len(),
        sum(|run| run.sent),
        sum(|run| run.lost),
        sum(|run| run.shed),
    ));
    // Two more processors: one for the daemon, one for the client and the server's receiving thread.
    let needed = result.cores + 2;
    if result.processors < needed {
        notes.push(format!(
            "The figure needs {needed} processors, and this machine has {}: the daemon, the client and the thread at the server's receive queue run on the cores \
             that are dealt out. They take time from both applications, and tails are upper bounds.",
            result.processors
        ));
    }
    if result.shortened {
        notes.push("A first impression: few rounds.".into());
    }
    notes.push(format!("The paper's: {}", result.testbed));
    notes
}

/// The result as text for a terminal.
#[must_use]
pub fn text(result: &HostedReproduction) -> String {
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
    if let Some(papers) = &result.papers {
        let _ = write!(
            text,
            "\n{} (the paper's host)\n{}\n",
            papers.name,
            show::claims(papers)
        );
    }
    for note in notes(result) {
        let _ = write!(text, "\n{note}");
    }
    let _ = write!(text, "\nAgain: {}\n", result.command);
    text
}

/// The result as a section in Markdown.
#[must_use]
pub fn markdown(result: &HostedReproduction) -> String {
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
    if let Some(papers) = &result.papers {
        let claims = rows(&show::claims(papers));
        let _ = write!(
            text,
            "`{}`, the paper's host:\n\n{claims}\n",
            papers.command
        );
    }
    for note in notes(result) {
        let _ = writeln!(text, "- {note}");
    }
    text
}

/// The result as an HTML page.
#[must_use]
pub fn page(result: &HostedReproduction) -> Page {
    let title = format!("{}, {}: {}", result.paper, result.figure, result.title);
    let mut page = Page::new(title)
        .table("Claims", &claims(result))
        .paragraph(RULE)
        .table("All figures", &points(result))
        .table("Systems", &systems(result));
    if let Some(papers) = &result.papers {
        page = page.table("The simulation of the paper's host", &show::claims(papers));
    }
    for note in notes(result) {
        page = page.paragraph(&note);
    }
    page.code(&result.command)
}
