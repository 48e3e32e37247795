//! The findings on a terminal and for programs.

use crate::commands::demo::findings::Findings;
use crate::commands::demo::rounds::Lane;
use crate::commands::demo::verdict::CONFIDENCE;
use crate::output;
use anyhow::Result;
use headway_report::{ClassResult, Run, Table, format};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// A row for each class and policy.
pub(crate) fn table(findings: &Findings) -> Table {
    let against = format!("p99 ÷ {}", findings.base);
    let mut table = Table::new([
        "class",
        "policy",
        "p50",
        "p99",
        "p99.9",
        "slowdown p50",
        "p99",
        "p99.9",
        "rps",
        "shed",
        &against,
    ]);
    let classes = findings.stage.workload.class_names();
    for class in classes {
        for lane in &findings.lanes {
            if let Some(run) = findings.run_of(&lane.name) {
                table.push(row(findings, lane, run, class));
            }
        }
    }
    table
}

fn row(findings: &Findings, lane: &Lane, run: &Run, class: &str) -> Vec<String> {
    let Some(result) = run.class(class) else {
        unreachable!("every run has every class of the workload");
    };
    let starved = lane.starved.iter().any(|name| name == class);
    let mut row = vec![class.to_owned()];
    match starved {
        true => {
            row.push(format!("{}: starved", lane.name));
            row.extend(["–"; 6].map(str::to_owned));
        }
        false => {
            row.push(lane.name.clone());
            row.extend(tails(result));
        }
    }
    row.push(format::metric(rate_rps(run, result)));
    row.push(result.dropped.to_string());
    row.push(
        match findings.ratio_of(&lane.name, class).map(|ratio| ratio.p99) {
            Some(Some(ratio)) => format::interval(&ratio),
            _ if lane.name == findings.base && !starved => "1".to_owned(),
            _ => "–".to_owned(),
        },
    );
    row
}

fn tails(class: &ClassResult) -> [String; 6] {
    let (latency, slowdown) = (&class.latency_us, &class.slowdown);
    let time = format::duration_us;
    let ratio = |value| format::significant(value, 3);
    [
        time(latency.p50),
        time(latency.p99),
        time(latency.p999),
        ratio(slowdown.p50),
        ratio(slowdown.p99),
        ratio(slowdown.p999),
    ]
}

/// The class's part of what was achieved.
fn rate_rps(run: &Run, class: &ClassResult) -> f64 {
    let all: u64 = run.classes.iter().map(|class| class.count).sum();
    run.meta.achieved_rps * class.count as f64 / all.max(1) as f64
}

/// For people.
pub(crate) fn text(findings: &Findings, html: &Path, mut writer: impl Write) -> Result<()> {
    for line in findings.setting() {
        writeln!(writer, "{line}")?;
    }
    writeln!(writer, "\n{}\n", table(findings))?;
    for line in findings.conclusions() {
        writeln!(writer, "{line}")?;
    }
    writeln!(
        writer,
        "\nCurves, rounds and 14 simulated workers: {}",
        html.display()
    )?;
    Ok(writer.flush()?)
}

/// For programs.
pub(crate) fn json(findings: &Findings, html: &Path, writer: impl Write) -> Result<()> {
    let runs: Vec<&Run> = findings.runs.iter().map(|(_, run)| run).collect();
    let excluded: Vec<_> = findings.lanes.iter().flat_map(Lane::excluded).collect();
    let noise = &findings.stage.noise;
    output::json(
        &json!({
            "machine": findings.stage.machine,
            "noise": { "lost_fraction": noise.lost_fraction, "gaps_over_10us": noise.gaps_over_10us },
            "load": findings.load,
            "rate_rps": findings.offer.rate_rps,
            "scan_entries": findings.stage.scan_entries,
            "rounds": findings.lanes[0].rounds.len(),
            "round_s": findings.offer.duration.as_secs_f64(),
            "warm_up": findings.offer.warm_up,
            "confidence": CONFIDENCE,
            "runs": runs,
            "ratios": findings.ratios,
            "ranking": findings.ranking,
            "starved": starved(findings),
            "excluded": excluded,
            "repeated": findings.repeated,
            "html": html,
        }),
        writer,
    )
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
