//! Headway beside its peers: its own bench, with workers that take turns as the dispatcher, so that no core is set aside.

use anyhow::{Context, Result};
use headway_bench::{Trial, has_dispatcher};
use headway_policy::spec::Spec;
use headway_report::Run;
use headway_runtime::Layout;
use headway_sim::Experiment;

/// The policies that are measured unless others are named; the first is what all ratios are to.
pub(crate) const POLICIES: [&str; 5] = ["c-fcfs", "srpt", "synergy", "tiny-quanta", "darc"];

/// Refuses what is no policy of a server, before anything runs.
///
/// # Errors
/// When there is no such policy or parameter.
pub(crate) fn check(policy: &Spec) -> Result<()> {
    has_dispatcher(policy).with_context(|| format!("--policy {policy}"))?;
    Ok(())
}

/// Runs the experiment under a policy.
///
/// # Errors
/// When the policy does not run live in this layout.
pub(crate) fn run(policy: &Spec, experiment: &Experiment) -> Result<Run> {
    let mut experiment = experiment.clone();
    experiment.policy = policy.clone();
    close_windows_early(&mut experiment);
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
fn close_windows_early(experiment: &mut Experiment) {
    let chooses = |(name, _): &(String, String)| name == "window";
    let policy = &experiment.policy;
    if policy.name != "darc" || policy.params.iter().any(chooses) {
        return;
    }
    let warm_up = experiment.warm_up * experiment.expected_requests();
    let window = ((warm_up / 2.0) as u64).max(1);
    let param = ("window".into(), window.to_string());
    experiment.policy.params.push(param);
}
