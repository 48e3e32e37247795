//! Warnings about a policy that learns by windows and reserves workers (`darc`), where it has learned nothing yet or has nothing to reserve.

use headway_machine::stderr;
use headway_policy::Order;
use headway_report::Run;
use headway_runtime::{Server, Stats};

/// The parameter that only such policies have: completions in a window.
const WINDOW: &str = "window";

/// Prints the warnings for these runs on standard error, once for each policy.
pub(crate) fn tell<'a>(runs: impl Iterator<Item = &'a Run>) {
    for remark in remarks(runs) {
        eprintln!("{remark}");
    }
}

fn remarks<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let mut policies: Vec<PolicyRuns<'_>> = Vec::new();
    for run in runs.filter(|run| reserves(run)) {
        let same = |run: &Run| {
            (
                run.meta.policy.clone(),
                run.meta.params.clone(),
                run.meta.workers,
            )
        };
        let known = policies
            .iter()
            .position(|known| same(known.first) == same(run));
        let at = known.unwrap_or_else(|| {
            policies.push(PolicyRuns::of(run));
            policies.len() - 1
        });
        policies[at].runs += 1;
        policies[at].unlearned += u64::from(is_unlearned(run));
    }
    policies.iter().filter_map(PolicyRuns::remark).collect()
}

/// The runs of one policy with the same parameters and workers.
struct PolicyRuns<'a> {
    first: &'a Run,
    runs: u64,
    /// Runs that ended before the policy reserved anything.
    unlearned: u64,
}

impl<'a> PolicyRuns<'a> {
    fn of(first: &'a Run) -> Self {
        Self {
            first,
            runs: 0,
            unlearned: 0,
        }
    }

    fn remark(&self) -> Option<String> {
        let meta = &self.first.meta;
        if meta.workers == 1 {
            return Some(one_worker(&meta.policy));
        }
        let window = meta.params.get(WINDOW)?;
        let which = match (self.unlearned, self.runs) {
            (0, _) => return None,
            (1, 1) => "it".to_owned(),
            (unlearned, runs) => format!("{unlearned} of its {runs} runs"),
        };
        Some(first_window(&meta.policy, &which, &window.to_string()))
    }
}

/// Whether the run's policy learns what to reserve; a rack's control plane has windows of another kind.
fn reserves(run: &Run) -> bool {
    run.meta.params.contains_key(WINDOW)
        && run.extras.reservation.is_some()
        && run.extras.servers.is_none()
}

fn is_unlearned(run: &Run) -> bool {
    run.extras.reservation.as_ref().is_some_and(Vec::is_empty)
}

/// A live server's policy.
pub(crate) struct Learner {
    policy: &'static str,
    /// Requests in one of its windows; none where it has no windows, or nothing to reserve.
    window: Option<String>,
}

impl Learner {
    /// That of a server that has begun. Says so where it has one worker, and so nothing to reserve.
    pub(crate) fn of(server: &Server, workers: usize) -> Self {
        let policy = server.policy();
        let window = server.params().iter().find(|(key, _)| *key == WINDOW);
        let mut window = window.map(|(_, value)| value.to_string());
        if workers == 1 && window.take().is_some() {
            stderr::write_line(&one_worker(policy));
        }
        Self { policy, window }
    }

    /// Says so where the server, which has ended, never left its first window.
    pub(crate) fn tell(&self, stats: &Stats) {
        let plan = stats.plan.as_ref();
        let learns = plan.is_some_and(|plan| plan.order == Order::Arrival);
        if let Some(window) = self.window.as_ref().filter(|_| learns) {
            stderr::write_line(&first_window(self.policy, "it", window));
        }
    }
}

fn one_worker(policy: &str) -> String {
    format!(
        "{policy} reserves nothing with one worker: its classes share it; choose at least 2 workers, or a policy that interrupts (concord)"
    )
}

fn first_window(policy: &str, which: &str, window: &str) -> String {
    format!(
        "{policy} learned nothing: {which} ended within the first window of {window} requests, in which it serves like c-fcfs; \
         send more requests, or choose a smaller window ({policy},window=1000)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::Experiment;
    use headway_workload::Workload;

    fn run(policy: &str, workers: usize, requests: u64) -> Run {
        let workload = Workload::resolve("high-bimodal").unwrap();
        let experiment = Experiment::new(workload, policy.parse().unwrap())
            .workers(workers)
            .load(0.5)
            .requests(requests);
        experiment.run().unwrap().run
    }

    #[test]
    fn who_learned_nothing_is_told_once_a_policy() {
        let runs = [
            run("darc-paper", 4, 3_000),
            run("darc-paper", 4, 3_000),
            run("darc", 4, 3_000),
            run("darc-paper,window=500", 4, 3_000),
            run("darc-stable", 4, 3_000),
            run("darc,profile=known", 4, 3_000),
            run("c-fcfs", 4, 3_000),
            run("darc,window=500", 1, 3_000),
            run("darc-static", 4, 3_000),
        ];
        let said = remarks(runs.iter());
        let parts = [
            "darc-paper learned nothing: 2 of its 2 runs ended within the first window of 50000",
            "darc-stable learned nothing: it ended",
            "darc reserves nothing with one worker",
        ];
        assert_eq!(said.len(), parts.len(), "{said:?}");
        for (said, part) in said.iter().zip(parts) {
            assert!(said.contains(part), "{said}");
        }
    }
}
