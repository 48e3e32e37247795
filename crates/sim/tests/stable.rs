//! darc-stable over random workloads: it never leaves a class overloaded, since at loads below 1
//! some plan always would not (fixed priority is one), and it plans as darc where darc is stable.

use headway_policy::Rng;
use headway_sim::{Experiment, Outcome, available_threads, in_parallel};
use headway_workload::{Class, ServiceDistribution, Workload};

const CASES: u64 = 100;
const REQUESTS: u64 = 800_000;

/// Two to six classes of service times over up to five decades, 2 to 64 workers, load 0.5 to
/// 0.9. Deterministic in `case`.
fn random_experiment(case: u64, policy: &str) -> Experiment {
    let mut rng = Rng::new(case);
    let mut unit = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let workers = 2 + (unit() * 63.0) as usize;
    let load = 0.5 + 0.4 * unit();
    let classes = 2 + (unit() * 5.0) as usize;
    let raw: Vec<(f64, f64)> = (0..classes)
        .map(|_| (libm::pow(10.0, 3.0 + 2.5 * unit()), unit() + 0.01))
        .collect();
    // CPU demand, not count, is uniform: otherwise the longest class is all the load.
    let total: f64 = raw.iter().map(|(mean_ns, weight)| weight / mean_ns).sum();
    let workload = Workload::new(
        format!("random-{case}"),
        raw.iter()
            .enumerate()
            .map(|(index, &(mean_ns, weight)): (usize, &(f64, f64))| {
                let service = ServiceDistribution::Exponential {
                    mean_ns: mean_ns as u64,
                };
                Class::new(format!("class{index}"), weight / mean_ns / total, service)
            })
            .collect(),
    );
    Experiment::new(workload, policy.parse().unwrap())
        .workers(workers)
        .load(load)
        .requests(REQUESTS)
        .seed(case)
}

fn run_all(policy: &str) -> Vec<Outcome> {
    let cases: Vec<u64> = (0..CASES).collect();
    in_parallel(
        &cases,
        available_threads(),
        |case: &u64| random_experiment(*case, policy).run().unwrap(),
        |_, _| {},
    )
}

/// No class waits longer on average than it runs: far from any overload.
fn clearly_stable(outcome: &Outcome) -> bool {
    outcome
        .run
        .classes
        .iter()
        .all(|class| class.latency_us.mean <= 2.0 * class.service_us)
}

#[test]
fn never_overloaded_and_equal_to_darc_where_that_is_stable() {
    let (published, stable) = (
        run_all("darc-paper,window=50000"),
        run_all("darc-stable,window=50000,window_time=1000s"),
    );
    let overloaded: Vec<&str> = stable
        .iter()
        .filter(|o| o.run.meta.overloaded)
        .map(|o| o.run.meta.workload.as_str())
        .collect();
    let mut repaired = 0;
    let mut differ = Vec::new();
    for (darc, ours) in published.iter().zip(&stable) {
        if darc.run.meta.overloaded {
            repaired += 1;
        } else if clearly_stable(darc) && darc.run.extras.reservation != ours.run.extras.reservation
        {
            differ.push(darc.run.meta.workload.as_str());
        }
    }
    assert!(
        overloaded.is_empty(),
        "darc-stable overloaded {overloaded:?}"
    );
    assert!(
        repaired > 0,
        "darc overloads none of these: the test shows nothing"
    );
    assert!(
        differ.is_empty(),
        "darc is stable, darc-stable differs: {differ:?}"
    );
}
