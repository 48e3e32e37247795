//! The settings file of the server that a plan recommends.

use crate::error::usage;
use crate::output;
use anyhow::Result;
use headway_plan::Question;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Facts, Preemption, ServerSpec};
use headway_policy::spec::SpecError;
use headway_report::{PlanEntry, PlanReport, PlanVerdict, format};
use std::path::Path;

/// Writes the file; `workload` is the name or file of the workload for `serve`.
pub(super) fn write(
    path: &Path,
    report: &PlanReport,
    workload: &str,
    question: &Question,
) -> Result<()> {
    let live = report.live.as_ref();
    let Some(entry) = live.and_then(|live| report.ranking.iter().find(|one| one.policy == *live))
    else {
        return Err(usage(
            "--config-out",
            "the live server runs none of the candidates that were ranked",
        ));
    };
    let facts = facts(&entry.policy)?;
    let text = settings(report, entry, workload) + &how_it_runs(entry, facts, question);
    output::save("--config-out", path, &text)
}

/// The facts about how a policy works.
fn facts(policy: &str) -> Result<Facts, SpecError> {
    Ok(policy.parse::<ServerSpec>()?.facts())
}

fn settings(report: &PlanReport, entry: &PlanEntry, workload: &str) -> String {
    let policy = &entry.policy;
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let verdict = match report.verdict {
        PlanVerdict::Met => "met by simulation",
        PlanVerdict::Missed => "MISSED by simulation",
        PlanVerdict::Undecided => "CUT OFF before the last round",
        PlanVerdict::Impossible => "IMPOSSIBLE for any policy",
    };
    let best = &report.ranking[0].policy;
    let machine = if report.ideal {
        ", on an ideal machine whose machinery costs nothing"
    } else {
        ""
    };
    let mut text = format!(
        "# headway plan: {} at {} requests/s: {verdict}{machine}.\n",
        report.slo,
        format::metric(report.offered_rps),
    );
    if best != policy {
        text += &format!("# The best was {best}, which the live server does not run yet.\n");
    }
    text += "# `spin` works as long as each request says: put your own service in its place.\n";
    text += &format!(
        "listen = \"udp://127.0.0.1:7000\"\napp = \"spin\"\npolicy = {}\nworkers = {}\nworkload = {}\n",
        quoted(policy),
        entry.workers,
        quoted(workload),
    );
    text
}

/// The settings under which the server behaves as simulated, without those that its policy ignores.
fn how_it_runs(entry: &PlanEntry, facts: Facts, question: &Question) -> String {
    let mut text = String::new();
    let has_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
    if facts.owner == Owner::Dispatcher || has_monitor {
        let has_thread = entry.cores > entry.workers;
        text += if has_thread {
            "layout = \"dedicated\"\n"
        } else {
            "layout = \"inline\"\n"
        };
    }
    if facts.owner != Owner::Steering && question.queue_limit != usize::MAX {
        text += &format!("queue-limit = {}\n", question.queue_limit);
    }
    if facts.preemption != Preemption::None {
        text += &format!("resume = \"{}\"\n", entry.resume);
    }
    text
}
