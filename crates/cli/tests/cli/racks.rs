//! Racks by flag: `--servers` in `sim`, `sweep` and `capacity`; and servers with several dispatchers.

use super::{headway, json};
use headway_report::{Run, RunLevel};
use serde_json::Value;

/// Parses the output as a run of a rack of two servers, and checks that no field is lost.
fn rack_run(printed: &Value) -> Run {
    let run: Run = serde_json::from_value(printed.clone()).expect("a run");
    assert_eq!(serde_json::to_value(&run).unwrap(), *printed);
    assert_eq!(run.meta.level, RunLevel::Rack);
    assert_eq!((run.extras.servers, run.meta.workers), (Some(2), 4));
    let rack = run.extras.rack.as_ref().expect("it is a rack");
    let measured: u64 = run.classes.iter().map(|class| class.count).sum();
    let by_server: u64 = rack.servers.iter().map(|server| server.requests).sum();
    assert_eq!((by_server, rack.servers.len()), (measured, 2));
    run
}

fn sim(policy: &str) -> [&str; 13] {
    [
        "sim",
        "--policy",
        policy,
        "--workload",
        "pallas-normal",
        "--servers",
        "2",
        "--workers",
        "4",
        "--requests",
        "20k",
        "--format",
        "json",
    ]
}

#[test]
fn a_rack_prints_the_run_of_the_contract() {
    for policy in headway_policy::rack::systems::NAMES {
        let run = rack_run(&json(&sim(policy)));
        assert_eq!(run.meta.policy, *policy);
        assert!((run.meta.load - 0.8).abs() < 1e-9, "over all workers");
        // Clones add work, and draconis's round trip for every request adds idle time.
        assert!((0.6..0.95).contains(&run.meta.utilization), "{policy}");
    }
}

#[test]
fn what_a_rack_did_is_told() {
    let cloned = rack_run(&json(&[&sim("netclone")[..], &["--load", "0.2"]].concat()));
    assert!(cloned.extras.rack.unwrap().cloned > 1_000);
    let shaped = rack_run(&json(&sim("pallas")));
    assert!(
        shaped
            .extras
            .reservation
            .is_some_and(|groups| groups.len() == 2)
    );
}

#[test]
fn the_same_rack_gives_the_same_bytes() {
    for policy in [
        "pallas",
        "racksched,choices=2,inner=darc",
        "netclone,inner=concord,dispatchers=2",
    ] {
        let first = headway(&sim(policy)).stdout;
        assert!(!first.is_empty(), "{policy}");
        assert_eq!(first, headway(&sim(policy)).stdout, "{policy}");
    }
}

#[test]
fn a_sweep_of_racks_does_not_depend_on_its_threads() {
    let sweep = |threads: &str| {
        let args = [
            "sweep",
            "--policy",
            "pallas",
            "--policy",
            "random",
            "--workload",
            "pallas-normal",
            "--servers",
            "2",
            "--workers",
            "4",
            "--loads",
            "0.3,0.6",
            "--requests",
            "20k",
            "--format",
            "json",
            "--threads",
            threads,
        ];
        headway(&args).stdout
    };
    let one = sweep("1");
    assert_eq!(one, sweep("3"));
    let printed: Value = serde_json::from_slice(&one).unwrap();
    let runs = printed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        rack_run(run);
    }
}

#[test]
fn the_capacity_of_a_rack_is_that_of_all_its_workers() {
    let printed = json(&[
        "capacity",
        "--policy",
        "racksched",
        "--workload",
        "pallas-normal",
        "--servers",
        "2",
        "--workers",
        "4",
        "--requests",
        "20k",
        "--tolerance",
        "0.1",
        "--slo",
        "overall.latency.p99<=1ms",
        "--format",
        "json",
    ]);
    let result = &printed["results"][0];
    assert_eq!(result["policy"], "racksched");
    let run = rack_run(&result["run"]);
    // 19 us on average: eight workers do 421 krps.
    let (load, rps) = (
        result["load"].as_f64().unwrap(),
        result["rps"].as_f64().unwrap(),
    );
    assert!(
        (rps / (load * 8.0 / 19e-6) - 1.0).abs() < 1e-6,
        "{rps} at {load}"
    );
    assert!(load > 0.5 && (run.meta.load - load).abs() < 1e-9);
}

#[test]
fn a_server_of_two_dispatchers_is_one_server() {
    let args = [
        "sim",
        "--policy",
        "concord,dispatchers=2",
        "--requests",
        "50k",
        "--format",
        "json",
    ];
    let run = json(&args);
    assert_eq!(
        (&run["level"], &run["workers"]),
        (&"server".into(), &14.into())
    );
    assert_eq!(run["params"]["dispatchers"], 2);
    assert!(run["preemptions"].as_u64().unwrap() > 0);
    assert_eq!(headway(&args).stdout, headway(&args).stdout);
}

#[test]
fn both_dispatchers_have_a_track() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    let path = trace.to_str().unwrap();
    let policy = "concord,dispatchers=2";
    let done = headway(&[
        "sim",
        "--policy",
        policy,
        "--load",
        "0.95",
        "--requests",
        "20k",
        "--trace-out",
        path,
    ]);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let events = std::fs::read_to_string(trace).unwrap();
    for dispatcher in ["dispatcher 0", "dispatcher 1"] {
        assert!(events.contains(dispatcher), "no {dispatcher}");
    }
}
