//! Headway beside its peers: its own bench, with workers that take turns as the dispatcher, so that no core is set aside.

use anyhow::{Context, Result};
use headway_bench::Trial;
use headway_policy::server::systems::ServerSpec;
use headway_report::Run;
use headway_runtime::Layout;
use headway_sim::Experiment;

/// The policies that are measured unless others are named; the first is what all ratios are to.
pub(crate) const POLICIES: [&str; 5] = ["c-fcfs", "srpt", "synergy", "tiny-quanta", "darc"];

/// Runs the experiment under a policy.
///
/// # Errors
/// When the policy does not run live in this layout.
pub(crate) fn run(policy: &ServerSpec, experiment: &Experiment) -> Result<Run> {
    let experiment = Experiment {
        policy: with_early_windows(policy.clone(), experiment)?.into(),
        ..experiment.clone()
    };
    let trial = Trial {
        layout: Layout::Inline,
        ..Trial::new(experiment)
    };
    let observed = trial
        .run()
        .with_context(|| format!("{policy} does not run"))?;
    Ok(observed.run)
}

/// Has DARC revise its plan from the warm-up on, as `headway bench` does: its default window may be as long as the run.
fn with_early_windows(policy: ServerSpec, experiment: &Experiment) -> Result<ServerSpec> {
    if policy.name() != "darc" || policy.gives("window") {
        return Ok(policy);
    }
    let warm_up = experiment.warm_up * experiment.expected_requests();
    let window = ((warm_up / 2.0) as u64).max(1);
    Ok(policy.with_param("window", window.to_string())?)
}
