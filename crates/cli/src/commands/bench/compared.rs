//! The output of `--compare-sim`: live runs beside their simulation.

use anyhow::Result;
use headway_bench::calibrate::Calibration;
use headway_bench::compare::{Agreement, Comparison, LOAD_MAX, MEAN_TOLERANCE, P50_TOLERANCE};
use headway_report::{BenchReport, Table, format};

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

pub(super) fn costs_line(calibration: &Calibration) -> String {
    let costs = calibration.costs;
    format!(
        "dispatch {} ns, handoff {} ns, completion {} ns, overhead {} ns:",
        costs.dispatch_ns, costs.handoff_ns, costs.completion_ns, costs.overhead_ns
    )
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
    calibration: Option<&Calibration>,
) -> Result<serde_json::Value> {
    let mut value = serde_json::to_value(report)?;
    if let (Some(object), Some(calibration)) = (value.as_object_mut(), calibration) {
        object.insert("calibration".into(), serde_json::to_value(calibration)?);
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
