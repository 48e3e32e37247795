//! `headway sim` with applications that trade cores.

use super::{headway, json};

#[test]
fn a_host_prints_the_contract_of_a_run_and_its_applications() {
    let run = json(&[
        "sim",
        "--policy",
        "shenango",
        "--workers",
        "8",
        "--duration",
        "20ms",
        "--format",
        "json",
        "--app",
        "kv:workload=exponential-10us,load=0.3,cores=6",
        "--app",
        "web:workload=fixed-1us,rate=10k/10ms+400k,cores=1..4,policy=c-fcfs",
        "--app",
        "batch:batch",
    ]);
    assert_eq!(run["level"], "host");
    assert_eq!(run["policy"], "shenango");
    assert_eq!(run["params"]["interval"], "5us");
    assert_eq!(run["workers"], 8);
    assert_eq!(run["overloaded"], false);
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|entry: &serde_json::Value| entry["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&run["apps"]), ["kv", "web", "batch"]);
    assert!(
        names(&run["classes"])
            .iter()
            .all(|name| name.starts_with("kv.") || name.starts_with("web."))
    );
    let cores: f64 = run["apps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|app| app["allocated_cores"].as_f64().unwrap())
        .sum();
    let idle = run["host"]["idle_cores"].as_f64().unwrap();
    assert!((cores + idle - 8.0).abs() < 1e-6);
    assert!(run["overall"]["latency_us"]["p999"].is_number());
}

/// Without `--app`: the workload beside a batch application, under each allocator.
#[test]
fn every_allocator_runs_the_usual_flags() {
    for policy in [
        "static",
        "interval,period=1ms",
        "shenango,interval=10us",
        "arachne",
    ] {
        let run = json(&[
            "sim",
            "--policy",
            policy,
            "--workload",
            "high-bimodal",
            "--load",
            "0.4",
            "--workers",
            "6",
            "--requests",
            "20k",
            "--format",
            "json",
        ]);
        assert_eq!(run["level"], "host", "{policy}");
        assert_eq!(run["classes"][0]["name"], "short");
        assert_eq!(run["apps"][1]["batch"], true);
    }
}

#[test]
fn a_host_judges_slos_and_prints_tables() {
    let args = [
        "sim",
        "--policy",
        "shenango",
        "--workload",
        "exponential-10us",
        "--load",
        "0.5",
        "--requests",
        "20k",
    ];
    let judged = |slo| headway(&[args.as_slice(), &["--slo", slo]].concat());
    let met = judged("overall.latency.p99<=1ms");
    assert_eq!(met.status.code(), Some(0));
    let text = String::from_utf8(met.stdout).unwrap();
    assert!(
        text.contains("efficiency") && text.contains("reallocations/s"),
        "{text}"
    );
    assert_eq!(judged("overall.latency.p99<=1us").status.code(), Some(1));
}

#[test]
fn mistakes_are_named_with_their_flag() {
    let message = |args: &[&str]| {
        let output = headway(&[&["sim"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let app = "kv:workload=fixed-1us,load=0.5,cores=99";
    assert!(message(&["--policy", "shenango", "--app", app]).contains("--app: 'kv:"));
    let other = message(&["--policy", "darc", "--app", "b:batch"]);
    assert!(other.contains("static, interval, shenango"), "{other}");
    let interval = message(&["--policy", "shenango,interval=5"]);
    assert!(
        interval.contains("--policy:") && interval.contains("5us"),
        "{interval}"
    );
    let costs = message(&["--policy", "shenango", "--host-costs", "spinn=1us"]);
    assert!(
        costs.contains("--host-costs: no cost is called 'spinn'"),
        "{costs}"
    );
    let over = message(&[
        "--policy",
        "shenango",
        "--workers",
        "2",
        "--app",
        "a:workload=fixed-1us,load=0.1,cores=2",
        "--app",
        "b:workload=fixed-1us,load=0.1,cores=1",
    ]);
    assert!(over.contains("3 cores are guaranteed"), "{over}");
}
