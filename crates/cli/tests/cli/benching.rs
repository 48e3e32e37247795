//! `headway bench` and `headway calibrate`: output and exit status.

use super::{headway, json, words};
use std::process::Command;

#[test]
fn bench_adds_the_network_and_judges_every_run() {
    let done = headway(&words(
        "bench --policy c-fcfs --workers 1 --layout inline --idle park --rounds 2 \
         --rate 2k --requests 100 --network 3s --slo overall.latency.p50<=1s --format \
         json",
    ));
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("SLO missed").count(), 2, "{said}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    for run in report["runs"].as_array().unwrap() {
        assert!(run["overall"]["latency_us"]["p50"].as_f64().unwrap() >= 3e6);
    }
}

#[test]
fn rounds_begin_at_any_seed() {
    let args = "bench --policy c-fcfs --workers 1 --layout inline --idle park --rounds 2 --rate 2k --requests 100 --seed 18446744073709551615 --format json";
    let report = json(&words(args));
    let seeds = report["runs"].as_array().unwrap().iter();
    let seeds: Vec<_> = seeds.map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [Some(u64::MAX), Some(0)]);
}

#[test]
fn a_server_without_memory_for_its_buffers_says_so() {
    let limited =
        "ulimit -v 200000; exec \"$0\" bench --policy c-fcfs --workers 1 --duration 100ms";
    let done = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_headway")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no memory for"), "{said}");
}

#[test]
fn workers_that_take_turns_as_the_dispatcher_are_compared_with_their_simulation() {
    let args = "bench --policy concord,q=5us --workers 1 --layout inline --look-every 10us --load 0.3 --requests 2k --rounds 1 --compare-sim --format json";
    let args: Vec<&str> = args.split(' ').collect();
    let done = headway(&args);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect(&said);
    assert_eq!(report["calibration"]["layout"], "inline");
    assert_eq!(report["calibration"]["costs"]["look_ns"], 10_000);
    let comparison = &report["comparisons"][0];
    assert!(comparison["simulated"]["overall"]["latency_us"]["p50"].is_number());
    assert!(comparison["verdict"].is_string(), "{comparison}");
}

/// Verdict, fields and exit status must agree, even on a machine too busy for a comparison.
#[test]
fn a_comparison_with_the_simulator_says_what_its_status_says() {
    let done = headway(&words(
        "bench --policy c-fcfs --workers 1 --load 0.3 --requests 4k --rounds 1 \
         --compare-sim --format json",
    ));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let comparison = &report["comparisons"][0];
    assert!(comparison["simulated"]["overall"]["latency_us"]["p50"].is_number());
    let untouched = &comparison["untouched"];
    let (requests, fraction) = (
        untouched["requests"].as_u64(),
        untouched["fraction"].as_f64(),
    );
    let enough = requests.unwrap() >= 1_000 && fraction.unwrap() >= 0.25;
    let within = |ratio: &str, tolerance: f64| {
        comparison[ratio]
            .as_f64()
            .is_some_and(|ratio| (ratio - 1.0).abs() <= tolerance)
    };
    let verdict = match (
        enough,
        within("p50_ratio", 0.15) && within("mean_ratio", 0.2),
    ) {
        (false, _) => ("too noisy", serde_json::Value::Null, 0),
        (true, true) => ("agrees", true.into(), 0),
        (true, false) => ("differs", false.into(), 1),
    };
    assert_eq!(comparison["verdict"], verdict.0, "{comparison}");
    assert_eq!(comparison["agrees"], verdict.1, "{comparison}");
    assert_eq!(done.status.code(), Some(verdict.2), "{comparison}");
}

/// With mechanisms but no policy, bench compares three policies: c-fcfs, which never interrupts; concord with each mechanism; and tiny-quanta, whose
/// workers interrupt themselves.
#[test]
fn bench_by_mechanism_runs_policies_that_interrupt() {
    let report = json(&words(
        "bench --preempt flag,tsc,signal --workers 1 --idle park --rounds 1 --rate 2k \
         --requests 100 --format json",
    ));
    let run_by: Vec<_> = report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            let name = run["policy"].as_str().unwrap();
            (name, run["params"]["preempt"].as_str())
        })
        .collect();
    let due = [
        ("c-fcfs", None),
        ("concord", Some("flag")),
        ("concord", Some("tsc")),
        ("concord", Some("signal")),
        ("tiny-quanta", Some("tsc")),
    ];
    assert_eq!(run_by, due);
}

#[test]
fn bench_runs_every_policy_in_every_round() {
    let report = json(&words(
        "bench --policy c-fcfs --policy darc --policy work-stealing --workers 2 \
         --layout inline --idle park --rounds 2 --rate 2k --requests 400 --format json",
    ));
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    for run in runs {
        assert_eq!(run["level"], "live");
        let counted: u64 = run["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["count"].as_u64().unwrap())
            .sum();
        assert_eq!(counted + run["dropped"].as_u64().unwrap(), 360);
    }
    assert!(report["noise"]["lost_fraction"].is_number());
    assert!(report["noise"]["gaps_over_10us"].is_number());
}

/// A dispatcher that takes 9 µs for a request of 1 µs carries less on a core of its own than the worker does in its place.
#[test]
fn the_layout_is_chosen_by_measured_costs() {
    let dir = tempfile::tempdir().unwrap();
    let slow = dir.path().join("costs.json");
    let costs =
        r#"{"dispatch_ns": 9000, "handoff_ns": 300, "completion_ns": 300, "overhead_ns": 3000}"#;
    let costs = format!(
        r#"{{"costs": {costs}, "layout": "dedicated", "layouts": {{"dedicated": {costs}}}}}"#
    );
    std::fs::write(&slow, costs).unwrap();
    let bench = words(
        "bench --workload fixed-1us --policy c-fcfs --workers 1 --idle park --rounds 1 --rate 2k --requests 400 --format json",
    );
    let layout = |more: &[&str]| {
        let report = json(&[&bench[..], more].concat());
        report["runs"][0]["machine"]["layout"].clone()
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    let built_in = if cores > 1 {
        "dedicated dispatcher"
    } else {
        "inline dispatcher"
    };
    assert_eq!(layout(&[]), built_in);
    assert_eq!(
        layout(&["--costs", slow.to_str().unwrap()]),
        "inline dispatcher"
    );
}

#[test]
fn bench_draws_requests_from_few_flows_and_simulates_the_same() {
    let done = headway(&words(
        "bench --policy d-fcfs --flows 3,zipf:1 --workers 2 --rounds 1 --load 0.1 --requests 2k \
         --compare-sim --format json",
    ));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let run = &report["runs"][0];
    assert_eq!(run["params"]["flows"], "3,zipf:1");
    assert_eq!(run["classes"][0]["count"].as_u64().unwrap(), {
        let simulated = &report["comparisons"][0]["simulated"];
        simulated["classes"][0]["count"].as_u64().unwrap()
    });
}

#[test]
fn bench_that_sheds_is_not_sustained() {
    let done = headway(&words(
        "bench --policy c-fcfs --workers 1 --layout inline --rounds 1 --load 5 --requests 40k",
    ));
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("not sustained: c-fcfs, seed 1, shed "),
        "{said}"
    );
}

/// With the default window of 50 000 requests darc would be c-fcfs for the whole run.
#[test]
fn bench_by_default_runs_a_darc_that_plans() {
    let report = json(&words(
        "bench --idle park --rounds 1 --rate 2k --requests 1k --format json",
    ));
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs[0]["policy"], "c-fcfs");
    assert_eq!(runs[1]["policy"], "darc");
    assert_eq!(runs[1]["params"]["window"], 50);
    assert!(runs[1]["workers"].as_u64() >= Some(2));
    let reservation = &runs[1]["reservation"];
    assert!(
        reservation
            .as_array()
            .is_some_and(|groups| !groups.is_empty()),
        "{}",
        runs[1]
    );
}

/// On any machine, the command writes a file if and only if the costs are reliable.
#[test]
fn calibrate_writes_no_costs_that_it_doubts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("costs.json");
    std::fs::write(&path, "old").unwrap();
    let done = headway(&["calibrate", "-o", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&done.stderr);
    let written = std::fs::read_to_string(&path).unwrap();
    if said.contains("not valid") {
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert_eq!(written, "old");
    } else {
        assert_eq!(done.status.code(), Some(0), "{said}");
        let costs: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert!(
            costs["costs"]["handoff_ns"].as_u64() < Some(100_000),
            "{costs}"
        );
        assert!(costs["lost_fraction"].as_f64() <= Some(0.05), "{costs}");
    }
}
