//! The settings file of the server that a plan recommends.

use crate::error::usage;
use crate::output;
use anyhow::Result;
use headway_report::{PlanReport, PlanVerdict, format};
use std::path::Path;

/// Writes it; `workload` is the name or file that `serve` knows the workload by.
pub(super) fn write(path: &Path, report: &PlanReport, workload: &str) -> Result<()> {
    let Some(policy) = &report.live else {
        return Err(usage(
            "--config-out",
            "the live server runs none of the candidates that were ranked",
        ));
    };
    output::save("--config-out", path, &settings(report, policy, workload))
}

fn settings(report: &PlanReport, policy: &str, workload: &str) -> String {
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let verdict = match report.verdict {
        PlanVerdict::Met => "met by simulation",
        PlanVerdict::Missed => "MISSED by simulation",
        PlanVerdict::Impossible => "IMPOSSIBLE for any policy",
    };
    let best = &report.ranking[0].policy;
    let mut text = format!(
        "# headway plan: {} on {} workers at load {}: {verdict}.\n",
        report.slo,
        report.workers,
        format::significant(report.load, 3),
    );
    if best != policy {
        text += &format!("# The best was {best}, which the live server does not run yet.\n");
    }
    text += "# `spin` works as long as each request says: put your own service in its place.\n";
    text += &format!(
        "listen = \"udp://127.0.0.1:7000\"\napp = \"spin\"\npolicy = {}\nworkers = {}\nworkload = {}\n",
        quoted(policy),
        report.workers,
        quoted(workload),
    );
    text
}
