//! The findings on a terminal and for programs.

use crate::commands::demo::findings::Findings;
use crate::commands::demo::lane::{ALL, Basis, Lane, Sample};
use crate::commands::demo::setup::Setup;
use crate::commands::demo::verdict::CONFIDENCE;
use crate::output;
use anyhow::Result;
use headway_report::{Run, Table, format};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// A row for each class and policy, from the requests that count.
pub(crate) fn table(findings: &Findings) -> Table {
    let against = format!("p99 ÷ {}", findings.base);
    let mut table = Table::new([
        "class",
        "policy",
        "cores",
        "untouched",
        "p50",
        "p99",
        "p99.9",
        "slowdown p99",
        "all: p50",
        "p99",
        "p99.9",
        "rps",
        &against,
    ]);
    for class in findings.setup.stage.workload.class_names() {
        for lane in &findings.lanes {
            table.push(row(findings, lane, class));
        }
    }
    table
}

fn row(findings: &Findings, lane: &Lane, class: &str) -> Vec<String> {
    let starved = lane.starved.iter().any(|name| name == class);
    let index = findings.index(class);
    let all = lane.run(&findings.setup.stage, ALL);
    let untouched = lane.run(&findings.setup.stage, Sample::untouched(index));
    let state = match (&all, starved) {
        (None, _) => ": nothing counts",
        (_, true) => ": starved",
        _ => "",
    };
    let mut row = vec![class.to_owned(), format!("{}{state}", lane.name)];
    row.push(all.as_ref().map_or_else(none, Run::cores_shown));
    let fraction = lane.untouched_fraction(index);
    row.push(fraction.map_or_else(none, format::percent));
    let (shown, shown_all) = if starved {
        (None, None)
    } else {
        (untouched.as_ref(), all.as_ref())
    };
    row.extend(figures(shown, class, true));
    row.extend(figures(shown_all, class, false));
    row.push(all.map_or_else(none, |run| format::metric(rate_rps(&run, class))));
    row.push(against(findings, lane, class));
    row
}

/// p50, p99 and p99.9 of latency, and p99 of slowdown on request.
fn figures(run: Option<&Run>, class: &str, slowdown: bool) -> Vec<String> {
    let Some((latency, ratio)) = run.and_then(|run| {
        let class = run.class(class)?;
        Some((&class.latency_us, class.slowdown.p99))
    }) else {
        return vec![none(); 3 + usize::from(slowdown)];
    };
    let times = [latency.p50, latency.p99, latency.p999].map(format::duration_us);
    let ratio = slowdown.then(|| format::significant(ratio, 3));
    times.into_iter().chain(ratio).collect()
}

fn against(findings: &Findings, lane: &Lane, class: &str) -> String {
    if lane.name == findings.base {
        return "1".to_owned();
    }
    let Some(ratio) = findings.ratio_of(&lane.name, class) else {
        return none();
    };
    match (&ratio.p99, ratio.compared.of) {
        (None, _) => none(),
        (Some(interval), Basis::Untouched) => format::interval(interval),
        (Some(interval), Basis::All) => format!("{} of all", format::interval(interval)),
    }
}

fn none() -> String {
    "–".to_owned()
}

/// The class's share of the achieved rate.
fn rate_rps(run: &Run, class: &str) -> f64 {
    let all: u64 = run.classes.iter().map(|class| class.count).sum();
    let count = run.class(class).map_or(0, |class| class.count);
    run.meta.achieved_rps * count as f64 / all.max(1) as f64
}

/// The text before the rounds.
pub(crate) fn preface(setup: &Setup, path: Option<&Path>, mut writer: impl Write) -> Result<()> {
    for line in setup.lines() {
        writeln!(writer, "{line}")?;
    }
    writeln!(
        writer,
        "\nSimulated, without any noise: p99 latency by class, workers and load.\n\n{}\n",
        output::shown(&setup.simulated(), path)
    )?;
    Ok(())
}

/// The text after the rounds.
pub(crate) fn text(
    findings: &Findings,
    html: &Path,
    path: Option<&Path>,
    mut writer: impl Write,
) -> Result<()> {
    for line in findings.conduct() {
        writeln!(writer, "{line}")?;
    }
    writeln!(writer, "\n{}\n", output::shown(&table(findings), path))?;
    for line in findings
        .few_samples()
        .into_iter()
        .chain(findings.conclusions())
    {
        writeln!(writer, "{line}")?;
    }
    writeln!(
        writer,
        "\nCurves, rounds and simulations: {}",
        html.display()
    )?;
    Ok(writer.flush()?)
}

/// The result as JSON.
pub(crate) fn json(findings: &Findings, html: &Path, writer: impl Write) -> Result<()> {
    let runs: Vec<&Run> = findings.runs.iter().map(|(_, run)| run).collect();
    let excluded: Vec<_> = findings.lanes.iter().flat_map(Lane::excluded).collect();
    let (setup, theory) = (&findings.setup, &findings.setup.theory);
    let noise = &setup.stage.noise;
    output::json(
        &json!({
            "machine": setup.stage.machine,
            "noise": { "lost_fraction": noise.lost_fraction, "gaps_over_10us": noise.gaps_over_10us },
            "load": setup.load,
            "rate_rps": setup.offer.rate_rps,
            "lowered": findings.lowered,
            "scan_entries": setup.stage.scan_entries,
            "rounds": findings.rounds(),
            "rounds_most": findings.rounds_most,
            "cut_off": findings.cut_off,
            "round_s": setup.offer.duration.as_secs_f64(),
            "warm_up": setup.offer.warm_up,
            "confidence": CONFIDENCE,
            "simulated": { "here": theory.live, "busy": theory.busy() },
            "runs": runs,
            "untouched": findings.lanes.iter().map(|lane| untouched(findings, lane)).collect::<Vec<_>>(),
            "ratios": findings.ratios,
            "ranking": findings.ranking,
            "starved": starved(findings),
            "excluded": excluded,
            "html": html,
        }),
        writer,
    )
}

/// The untouched fraction of a policy's requests.
fn untouched(findings: &Findings, lane: &Lane) -> Value {
    json!({
        "policy": lane.name,
        "fraction": lane.untouched_fraction(None),
        "rounds": lane.valid(Sample::untouched(None)).count(),
        "run": lane.run(&findings.setup.stage, Sample::untouched(None)),
    })
}

fn starved(findings: &Findings) -> Vec<Value> {
    let starving = findings
        .lanes
        .iter()
        .filter(|lane| !lane.starved.is_empty());
    starving
        .map(|lane| json!({ "policy": lane.name, "classes": lane.starved }))
        .collect()
}
