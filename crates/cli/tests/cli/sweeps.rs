//! Sweeps that run until their intervals are narrow enough.

use super::{headway, json};

#[test]
fn a_wide_interval_is_replicated_and_a_tight_one_left_alone() {
    let report = json(&[
        "sweep",
        "--policy",
        "c-fcfs",
        "--workload",
        "exponential-1us",
        "--loads",
        "0.1,0.95",
        "--requests",
        "20k",
        "--until-ci",
        "4%",
        "--ci-of",
        "overall.latency.mean",
        "--replications",
        "40",
        "--format",
        "json",
    ]);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points[0]["replications"], 5, "{points:?}");
    assert!(
        points[1]["replications"].as_u64().unwrap() > 5,
        "{points:?}"
    );
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs[5]["seed"], 1);
}

#[test]
fn every_table_names_the_cores_and_the_same_cores_can_be_given_to_all() {
    let both = [
        "--workload",
        "high-bimodal",
        "--policy",
        "concord",
        "--policy",
        "concord,dispatcher=dedicated",
        "--policy",
        "d-fcfs",
        "--requests",
        "20k",
    ];
    let text = |args: &[&str]| String::from_utf8(headway(args).stdout).unwrap();
    // Two workers each, and a third core that dispatches: under one policy it serves as well.
    let capacity = [
        &["capacity", "--slo", "class.short.slowdown.p99<=20"][..],
        &both,
    ]
    .concat();
    let shown = text(&[&capacity[..], &["--workers", "2"]].concat());
    let cores = |policy: &str| {
        let line = shown
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{policy} ")));
        line.unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .take(4)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(cores("concord").starts_with("2 + 1 serving"), "{shown}");
    let dedicated = cores("concord,dispatcher=dedicated");
    assert!(
        dedicated.starts_with("2 + 1") && !dedicated.contains("serving"),
        "{shown}"
    );
    let report = json(
        &[
            &[
                "sweep",
                "--loads",
                "0.1",
                "--cores",
                "3",
                "--replications",
                "2",
                "--format",
                "json",
            ][..],
            &both,
        ]
        .concat(),
    );
    let runs = report["runs"].as_array().unwrap();
    let of = |key: &str| runs.iter().map(|run| run[key].clone()).collect::<Vec<_>>();
    assert!(
        of("cores").iter().all(|cores| *cores == 3),
        "{:?}",
        of("cores")
    );
    assert_eq!(of("workers"), [2, 2, 2, 2, 3, 3]);
    assert_eq!(of("serving_cores"), [3, 3, 2, 2, 3, 3]);
    // One load is one rate, and prints as it was asked for.
    assert!(
        of("offered_rps")
            .iter()
            .all(|rate| *rate == runs[0]["offered_rps"])
    );
    assert!(
        of("load").iter().all(|load| *load == 0.1),
        "{:?}",
        of("load")
    );
    assert_eq!(of("label")[2], "concord,dispatcher=dedicated");
    let point = &report["points"][1];
    assert_eq!(
        (&point["policy"], point["load"].to_string()),
        (&"concord,dispatcher=dedicated".into(), "0.1".into())
    );
    let interval = &point["intervals"]["class.short.slowdown.p999"];
    assert!(interval["lo"].as_f64().unwrap() >= 1.0, "{point}");
    let refused = headway(&["sim", "--policy", "c-fcfs", "--cores", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr)
            .contains("--cores: 'c-fcfs' takes 1 beside its workers")
    );
}
