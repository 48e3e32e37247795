//! The output of `--compare-sim`: live runs beside their simulation.

use super::costs::BenchCosts;
use anyhow::Result;
use headway_bench::compare::{Agreement, Comparison, LOAD_MAX, MEAN_TOLERANCE, P50_TOLERANCE};
use headway_report::{BenchReport, Table, format};
use headway_sim::ThreadLayout;

pub(super) fn table(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new([
        "policy",
        "seed",
        "untouched",
        "p50 live",
        "simulated",
        "mean live",
        "simulated",
        "verdict",
    ]);
    for comparison in comparisons {
        let untouched = &comparison.untouched;
        let verdict = match comparison.agreement() {
            Agreement::Agrees => "agree".into(),
            Agreement::Differs => format!(
                "DIFFER by more than {} (p50) or {} (mean)",
                format::percent(P50_TOLERANCE),
                format::percent(MEAN_TOLERANCE)
            ),
            Agreement::TooNoisy(_) => format!(
                "cannot tell: {} of the time lost, longest gap {}",
                format::percent(comparison.disturbance.lost_fraction()),
                format::duration_us(comparison.disturbance.longest_ns as f64 / 1e3)
            ),
            Agreement::TooLoaded(_) => format!("no verdict above load {LOAD_MAX}"),
        };
        table.push([
            comparison.live.meta.policy.clone(),
            comparison.live.meta.seed.to_string(),
            format::percent(untouched.fraction),
            format::duration_us(untouched.live.p50_us),
            format::duration_us(untouched.simulated.p50_us),
            format::duration_us(untouched.live.mean_us),
            format::duration_us(untouched.simulated.mean_us),
            verdict,
        ]);
    }
    table
}

/// The costs of each layout that was measured, a line each.
pub(super) fn costs_lines(measured: &BenchCosts) -> String {
    let calibration = &measured.calibration;
    let lines = ThreadLayout::ALL.into_iter().filter_map(|layout| {
        let costs = calibration.layouts.measured(layout)?;
        let name = layout.name();
        Some(if layout.has_dispatcher() {
            format!(
                "{name}: dispatch {} ns, handoff {} ns, completion {} ns, next {} ns, overhead {} ns",
                costs.dispatch_ns,
                costs.handoff_ns,
                costs.completion_ns,
                costs.next_ns.unwrap_or(0),
                costs.overhead_ns
            )
        } else {
            format!(
                "{name}: an idle worker's look {} ns, overhead {} ns, interruption {} ns, renewal {} ns",
                costs.handoff_ns,
                costs.overhead_ns,
                costs.notif_ns.unwrap_or(0),
                costs.renew_ns
            )
        })
    });
    let loopback = measured.loopback.map(|path| {
        format!(
            "loopback: receiving {} ns, sending {} ns, the way there and back {} ns",
            path.calls.receive_ns, path.calls.send_ns, path.network_ns
        )
    });
    lines.chain(loopback).collect::<Vec<_>>().join("\n")
}

/// Slowdowns of the untouched requests, class by class.
pub(super) fn slowdowns(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new([
        "untouched of",
        "seed",
        "class",
        "requests",
        "slowdown p50",
        "p99",
        "p99.9 live",
        "simulated",
    ]);
    for comparison in comparisons {
        for (live, simulated) in &comparison.untouched.classes {
            table.push([
                comparison.live.meta.policy.clone(),
                comparison.live.meta.seed.to_string(),
                live.name.clone(),
                live.count.to_string(),
                format::metric(live.slowdown.p50),
                format::metric(live.slowdown.p99),
                format::metric(live.slowdown.p999),
                format::metric(simulated.slowdown.p999),
            ]);
        }
    }
    table
}

/// The report in its stable format, with the comparison beside it where the user asked for one.
pub(super) fn with_comparisons(
    report: &BenchReport,
    comparisons: &[Comparison],
    measured: Option<&BenchCosts>,
) -> Result<serde_json::Value> {
    let mut value = serde_json::to_value(report)?;
    if let (Some(object), Some(measured)) = (value.as_object_mut(), measured) {
        let mut calibration = serde_json::to_value(&measured.calibration)?;
        if let Some(path) = &measured.loopback {
            calibration["loopback"] = serde_json::json!({
                "receive_ns": path.calls.receive_ns, "send_ns": path.calls.send_ns, "network_ns": path.network_ns,
            });
        }
        object.insert("calibration".into(), calibration);
        object.insert(
            "comparisons".into(),
            comparisons.iter().map(comparison_json).collect(),
        );
    }
    Ok(value)
}

fn comparison_json(comparison: &Comparison) -> serde_json::Value {
    let untouched = &comparison.untouched;
    let (p50_ratio, mean_ratio) = untouched.ratios();
    let (agreement, agrees) = match comparison.agreement() {
        Agreement::Agrees => ("agrees", Some(true)),
        Agreement::Differs => ("differs", Some(false)),
        Agreement::TooNoisy(_) => ("too noisy", None),
        Agreement::TooLoaded(_) => ("too loaded", None),
    };
    serde_json::json!({
        "simulated": comparison.simulated, "p50_ratio": p50_ratio, "mean_ratio": mean_ratio,
        "untouched": {
            "requests": untouched.requests, "fraction": untouched.fraction,
            "classes": untouched.classes.iter().map(|(live, simulated)| serde_json::json!({
                "live": live, "simulated": simulated,
            })).collect::<Vec<_>>(),
        },
        "agrees": agrees, "verdict": agreement,
    })
}
