//! The tables of all output formats.

use crate::figures::distinct;
use crate::text::quantity;
use crate::{ClaimVerdict, Datum, ExperimentFile, Figures, Judged, Reproduction};
use headway_report::slo::ENOUGH_SAMPLES;
use headway_report::{Table, format};

/// The list of experiments.
#[must_use]
pub fn listing(experiments: &[ExperimentFile]) -> Table {
    list(experiments.iter().map(|experiment| {
        let names = [&experiment.name, &experiment.paper, &experiment.figure];
        (names, &experiment.title, experiment.claim.len())
    }))
}

/// A row for each experiment: name, paper, figure, subject and number of claims.
pub(crate) fn list<'a>(
    experiments: impl Iterator<Item = ([&'a String; 3], &'a String, usize)>,
) -> Table {
    let mut table = Table::new(["name", "paper", "figure", "what", "claims"]);
    for ([name, paper, figure], title, claims) in experiments {
        table.push([name, paper, figure, title, &claims.to_string()].map(String::clone));
    }
    table
}

/// Each result's numbers of claims by verdict.
#[must_use]
pub fn overview(results: &[Reproduction]) -> Table {
    let mut table = Table::new([
        "name",
        "figure",
        "claims",
        "reproduced",
        "as expected",
        "deviates",
        "not reproduced",
    ]);
    let mut sum = [0; 4];
    for result in results {
        let tally = result.tally();
        sum = std::array::from_fn(|index| sum[index] + tally[index]);
        table.push(overview_row(
            &result.about.name,
            &format!("{} {}", result.about.paper, result.about.figure),
            tally,
        ));
    }
    if results.len() > 1 {
        table.push(overview_row("all", "", sum));
    }
    table
}

fn overview_row(name: &str, figure: &str, tally: [usize; 4]) -> Vec<String> {
    let mut row = vec![name.into(), figure.into()];
    row.push(tally.iter().sum::<usize>().to_string());
    row.extend(tally.iter().map(ToString::to_string));
    row
}

/// The claims: the paper's figure, the measured one, the deviation, the verdict.
#[must_use]
pub fn claims(result: &Reproduction) -> Table {
    let mut table = Table::new(["the paper says", "paper", "here", "deviation", "verdict"]);
    for claim in &result.claims {
        table.push([
            claim.says.clone(),
            claim.paper.clone(),
            claim.shown.clone(),
            claim
                .deviation
                .map_or("–".into(), |by| format!("{:+.1} %", 100.0 * by)),
            verdict(claim),
        ]);
    }
    table
}

/// The verdict, followed by the reason of an expected deviation.
fn verdict(claim: &Judged) -> String {
    match (&claim.because, claim.verdict) {
        (Some(because), ClaimVerdict::ExpectedDeviation) => {
            format!("{}: {because}", claim.verdict)
        }
        _ => claim.verdict.to_string(),
    }
}

/// The reasons of claims that are not reproduced, each with all of its claims, in the claims'
/// order.
#[must_use]
pub fn reasons(result: &Reproduction) -> Vec<(&str, Vec<&str>)> {
    let told = || {
        result
            .claims
            .iter()
            .filter_map(|claim| claim.reason.as_deref())
    };
    let of = |reason: &str| {
        let its = result.claims.iter();
        let its = its.filter(|claim| claim.reason.as_deref() == Some(reason));
        its.map(|claim| claim.says.as_str()).collect()
    };
    let reasons = distinct(told()).into_iter();
    reasons.map(|reason| (reason, of(reason))).collect()
}

/// The cores of each system.
#[must_use]
pub fn systems(result: &Reproduction) -> Table {
    let mut table = Table::new(["system", "policy", "cores"]);
    for system in &result.systems {
        let cores = format::cores(system.workers, system.cores, system.serving_cores);
        table.push([system.name.clone(), system.policy.clone(), cores]);
    }
    table
}

/// A note on the percentile that rests on the fewest requests of a run, where they are a handful.
#[must_use]
pub fn few_samples(figures: &Figures) -> Option<String> {
    let resting = figures.iter().filter(|datum| datum.value.is_finite());
    let resting = resting.filter_map(|datum| Some((datum, datum.rests_on?)));
    let (datum, requests) = resting.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (requests < ENOUGH_SAMPLES).then(|| {
        format!(
            "{} of {} rests on {} requests a run, and fewer than {ENOUGH_SAMPLES} show little.",
            datum.what,
            datum.system,
            format::significant(requests, 2)
        )
    })
}

/// Single figures: a table for each measurement, a row for each system.
#[must_use]
pub fn singles(result: &Reproduction) -> Vec<Table> {
    let measurement = |datum: &Datum| {
        datum
            .system
            .split_once('/')
            .map_or(String::new(), |(id, _)| id.into())
    };
    let ids: Vec<String> = result.figures.singles().map(measurement).collect();
    let of_id = |id| {
        result
            .figures
            .singles()
            .filter(move |datum| measurement(datum) == id)
    };
    let ids = distinct(ids.iter().map(String::as_str));
    ids.into_iter()
        .map(|id| single(&of_id(id).collect::<Vec<_>>()))
        .collect()
}

fn single(figures: &[&Datum]) -> Table {
    let names = distinct(figures.iter().map(|datum| datum.what.as_str()));
    let mut table = Table::new(std::iter::once("system").chain(names.iter().copied()));
    for system in distinct(figures.iter().map(|datum| datum.system.as_str())) {
        table.push(
            std::iter::once(system.to_owned()).chain(names.iter().map(|what: &&str| {
                let mut its = figures
                    .iter()
                    .filter(|datum| datum.system == system && datum.what == **what);
                its.next()
                    .map_or(String::new(), |datum| quantity(what, datum.value))
            })),
        );
    }
    table
}

/// A table for each family of curves: a row for each place on the axis, a column for each system.
#[must_use]
pub fn curves(result: &Reproduction) -> Vec<(String, Table)> {
    let families = result.figures.families();
    families
        .iter()
        .map(|family| (family[0].what.clone(), curve(family)))
        .collect()
}

fn curve(family: &[&Datum]) -> Table {
    let systems = distinct(family.iter().map(|datum| datum.system.as_str()));
    let mut places: Vec<f64> = family.iter().filter_map(|datum| datum.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let axis = family[0].axis.as_str();
    let mut table = Table::new(std::iter::once(axis).chain(systems.iter().copied()));
    for place in places {
        let x = if place.abs() >= 1e4 {
            format::metric(place)
        } else {
            format!("{}", (place * 1e6).round() / 1e6)
        };
        table.push(
            std::iter::once(x).chain(systems.iter().map(|system: &&str| {
                let mut here = family
                    .iter()
                    .filter(|datum| datum.system == *system && datum.x == Some(place));
                here.next()
                    .map_or(String::new(), |datum| quantity(&datum.what, datum.value))
            })),
        );
    }
    table
}

/// Curves with more points are left out.
const ROWS_MAX: usize = 24;

/// A whole result for a terminal.
#[must_use]
pub fn text(result: &Reproduction) -> String {
    let mut text = format!(
        "{} · {} {}\n{}\n\n{}\n",
        result.about.name,
        result.about.paper,
        result.about.figure,
        result.about.title,
        claims(result)
    );
    for (reason, of) in reasons(result) {
        text += &format!("\nWhy ({}): {reason}\n", of.join("; "));
    }
    if !result.systems.is_empty() {
        text += &format!("\n{}\n", systems(result));
    }
    if let Some(few) = few_samples(&result.figures) {
        text += &format!("\n{few}\n");
    }
    for table in singles(result) {
        text += &format!("\n{table}\n");
    }
    for (what, table) in curves(result) {
        match table.rows().len() {
            ..=ROWS_MAX => text += &format!("\n{what}\n{table}\n"),
            points => text += &format!("\n{what}: {points} points, see --html or --format json\n"),
        }
    }
    text += &format!("\nNot in the model: {}\n", result.about.testbed);
    if result.shortened {
        text += "Shortened runs: their tails are rough, and so are these verdicts.\n";
    }
    text += &format!("Again: {}\n", result.command);
    text
}
