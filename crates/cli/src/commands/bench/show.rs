//! The tables that `bench` prints about its runs.

use headway_bench::Trial;
use headway_report::stats::ratio_interval;
use headway_report::{LOST_FRACTION_MAX, Run, Table, format};

const CONFIDENCE: f64 = 0.95;

/// Prints the setup: workload, machine and costs.
pub(super) fn describe(run: &Run, rounds: u64, cores: Option<usize>) -> String {
    let machine = run.extras.machine.as_ref();
    let of = |key: &str| {
        machine
            .and_then(|m| m.get(key))
            .and_then(|v| v.as_str())
            .unwrap_or("")
    };
    format!(
        "{} · {}, {} · load {} ({} rps) · {} requests × {rounds} rounds\n{}",
        run.meta.workload,
        match cores {
            Some(cores) => format::counted(cores, "core"),
            None => format::counted(run.meta.workers, "worker"),
        },
        of("layout"),
        format::significant(run.meta.load, 3),
        format::metric(run.meta.offered_rps),
        run.meta.requests,
        of("description"),
    )
}

/// The name of each trial: its policy as the user wrote it, and its mechanism. `runs` begins with one run of each trial.
pub(super) fn labels(trials: &[Trial], runs: &[Run]) -> Vec<String> {
    trials
        .iter()
        .zip(runs)
        .map(|(trial, run): (&Trial, &Run)| {
            let policy = &trial.experiment.policy;
            match run.meta.params.get("preempt").and_then(|by| by.as_str()) {
                Some(mechanism) => format!("{policy} by {mechanism}"),
                None => policy.to_string(),
            }
        })
        .collect()
}

/// Prints medians over rounds, and the ratio of the tail to the first policy's, paired by round.
pub(super) fn summary(runs: &[Run], labels: &[String]) -> Table {
    let mut table = Table::new([
        "policy",
        "cores",
        "class",
        "p50",
        "p99",
        "p99.9",
        "slowdown p99.9",
        "shed",
        "p99.9 vs first",
    ]);
    for (policy, label) in labels.iter().enumerate() {
        let of = |policy: usize| runs.iter().skip(policy).step_by(labels.len());
        let first: Vec<&Run> = of(0).collect();
        let mine: Vec<&Run> = of(policy).collect();
        for (index, class) in mine[0].classes.iter().enumerate() {
            let median =
                |measure: &dyn Fn(&Run) -> f64| median_of(mine.iter().map(|run| measure(run)));
            let pairs: Vec<(f64, f64)> = mine
                .iter()
                .zip(&first)
                .map(|(a, b)| {
                    (
                        a.classes[index].latency_us.p999,
                        b.classes[index].latency_us.p999,
                    )
                })
                .collect();
            let ratio = match policy {
                0 => String::new(),
                _ => ratio_interval(&pairs, CONFIDENCE)
                    .map_or("–".into(), |interval| format::interval(&interval)),
            };
            table.push([
                label.clone(),
                mine[0].cores_shown(),
                class.name.clone(),
                format::duration_us(median(&|run| run.classes[index].latency_us.p50)),
                format::duration_us(median(&|run| run.classes[index].latency_us.p99)),
                format::duration_us(median(&|run| run.classes[index].latency_us.p999)),
                format::significant(median(&|run| run.classes[index].slowdown.p999), 3),
                mine.iter()
                    .map(|run| run.classes[index].dropped)
                    .sum::<u64>()
                    .to_string(),
                ratio,
            ]);
        }
    }
    table
}

fn median_of(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether every run answered its offered requests; prints the runs that did not. A run that sheds more than 0.1 % reports latencies
/// of the remaining requests only.
pub(super) fn all_sustained(labels: &[String], runs: &[Run]) -> bool {
    let mut all = true;
    for (run, label) in runs.iter().zip(labels.iter().cycle()) {
        let meta = &run.meta;
        let fraction = meta.dropped as f64 / meta.requests.max(1) as f64;
        if !run.sustained() {
            eprintln!(
                "not sustained: {label}, seed {}, shed {:.2} % of its requests (at most {} % may be): the latencies are those of the others; lower the load, or stop what else runs",
                meta.seed,
                100.0 * fraction,
                100.0 * LOST_FRACTION_MAX
            );
            all = false;
        }
    }
    all
}
