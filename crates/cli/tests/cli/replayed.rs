//! `headway reproduce` of figures that are measured on replayed arrivals.

use super::{headway, json};

const TINY: &str = r#"
title = "a figure of one's own"
paper = "none"
figure = "Figure 0"
testbed = "nothing"
[replay]
workload = "high-bimodal"
workers = 1
[full]
loads = [0.3]
rounds = 2
run_ms = 100
[fast]
loads = [0.3]
rounds = 2
run_ms = 100
[[system]]
name = "synergy"
policy = "synergy"
flows = "8"
[[system]]
name = "c-fcfs"
policy = "c-fcfs"
[[claim]]
says = "it has a lower slowdown"
of = "synergy"
over = "c-fcfs"
figure = "slowdown.p99"
load = 0.3
expect = "less"
"#;

#[test]
fn a_file_is_run_live_and_simulated_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.toml");
    std::fs::write(&path, TINY).unwrap();
    let path = path.to_str().unwrap();
    let answer = json(&["reproduce", path, "--format", "json", "--seed", "4"]);
    let result = &answer["results"][0];
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let simulated = &run["simulated"]["overall"]["slowdown"]["p50"];
        assert!(simulated.as_f64().is_none_or(|p50| p50 >= 1.0), "{run}");
        let fraction = run["untouched_fraction"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&fraction), "{run}");
    }
    // c-fcfs never interrupts, so a count of 0 shows that each system has its own figures.
    let interrupted = |system: &str| -> u64 {
        let of_system = runs.iter().filter(|run| run["system"] == system);
        of_system
            .map(|run| run["renewals"].as_u64().unwrap() + run["preemptions"].as_u64().unwrap())
            .sum()
    };
    assert!(interrupted("c-fcfs") == 0 && interrupted("synergy") > 0);
    let claim = &result["claims"][0];
    let counted = runs.iter().filter(|run| run["counts"] == true).count() as u64;
    assert!(claim["rounds"].as_u64().unwrap() * 2 <= counted, "{claim}");
    if claim["live"].is_null() {
        assert_eq!(claim["verdict"], "undecided");
    }
    let costs = folder.path().join("costs.json");
    let of_layouts = r#"{"costs": {}, "layouts": {"inline": {"overhead_ns": 400}, "steered": {}}}"#;
    std::fs::write(&costs, of_layouts).unwrap();
    let costs = costs.to_str().unwrap();
    for format in ["table", "markdown"] {
        let asked = ["reproduce", path, "--fast", "--costs", costs];
        let output = headway(&[&asked[..], &["--format", format]].concat());
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        for words in ["it has a lower slowdown", "synergy ÷ c-fcfs", "8 flows"] {
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}

#[test]
fn costs_are_of_every_layout_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let [figure, costs] = ["tiny.toml", "costs.json"].map(|name| folder.path().join(name));
    std::fs::write(&figure, TINY).unwrap();
    std::fs::write(&costs, r#"{"costs": {}, "layouts": {"inline": {}}}"#).unwrap();
    let (figure, costs) = (figure.to_str().unwrap(), costs.to_str().unwrap());
    let refused = [
        (figure, costs, "'headway calibrate -o FILE' measures"),
        (figure, "/nowhere", "/nowhere"),
        ("synergy-fig6-5", costs, "simulations have none of them"),
        ("shenango-fig1-live", costs, "synergy-fig6-5-live"),
        ("pallas-fig10-live", costs, "without a network"),
        ("concord-fig9-live", costs, "without a network"),
    ];
    for (experiment, file, says) in refused {
        let output = headway(&["reproduce", experiment, "--costs", file]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let named = stderr.contains("--costs") && stderr.contains(says);
        assert!(named, "{experiment} {file}: {stderr}");
    }
}

#[test]
fn what_a_file_decides_is_no_flag() {
    for flag in [["--workers", "1"], ["--server", "/nowhere"]] {
        let output = headway(&[&["reproduce", "synergy-fig6-5-live"], &flag[..]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("its file says what runs"), "{stderr}");
    }
    let output = headway(&["reproduce", "synergy-fig6-5", "synergy-fig6-5-live"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("'synergy-fig6-5-live' is measured live"),
        "{stderr}"
    );
    let listed = headway(&["reproduce", "--list"]).stdout;
    assert!(String::from_utf8_lossy(&listed).contains("synergy-zippydb-live"));
}
