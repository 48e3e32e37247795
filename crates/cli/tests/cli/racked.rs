//! `reproduce` of a figure that is measured behind a switch, with real but small servers, agents, switch and client.

use super::{headway, json};
use serde_json::Value;

/// A rack of two servers with one worker each.
pub(super) const TINY: &str = r#"
title = "a tiny rack"
paper = "none"
figure = "none"
testbed = "none"

[rack]
servers = 2
workers = 1
load = 0.2
change = "300ms"

[rack.workload]
name = "tiny"

[[rack.workload.phase]]
duration = "700ms"

[[rack.workload.phase.class]]
name = "short"
share = 0.9
service = { dist = "constant", mean = "1ms" }

[[rack.workload.phase.class]]
name = "long"
share = 0.1
service = { dist = "constant", mean = "5ms" }

[full]
rounds = 2

[fast]
rounds = 2

[[system]]
name = "Pallas"
policy = "pallas,interval=100ms,window=2ms"

[[system]]
name = "JSQ"
policy = "racksched"
servers = "c-fcfs"

[[claim]]
says = "longs take longer than a millisecond"
of = "Pallas"
class = "long"
phase = 1
during = "settled"
expect = { at_least = 1.0 }
"#;

#[test]
fn a_figure_behind_a_switch_is_measured_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.toml");
    std::fs::write(&file, TINY).unwrap();
    let file = file.to_str().unwrap();
    let page = folder.path().join("page.html");
    let html = ["--html", page.to_str().unwrap()];
    let told = json(&[&["reproduce", file, "--format", "json"], &html[..]].concat());
    let told = &told["results"][0];
    let runs = told["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4, "{told}");
    for run in runs {
        assert!(run["sent"].as_u64().unwrap() > 50, "{run}");
        assert_eq!(
            (&run["lost"], &run["shed"]),
            (&0.into(), &0.into()),
            "{run}"
        );
        for side in ["live", "simulated"] {
            let tails = run[side].as_array().unwrap();
            assert_eq!(tails.len(), 4, "two classes in two parts: {run}");
            let longs = tails.iter().filter(|tail| tail["class"] == "long");
            for tail in longs.filter(|tail| !tail["p99_ms"].is_null()) {
                assert!(tail["p99_ms"].as_f64() >= Some(4.9), "{side} {tail}");
            }
        }
    }
    let claim: &Value = &told["claims"][0];
    // A stop of the machine may leave a round without a long in the settled part: then one round is left, of which nothing is claimed.
    if claim["rounds"] == 2 {
        let estimate = claim["simulated"]["estimate"].as_f64();
        assert!(estimate > Some(1.0), "{claim}");
    } else {
        assert_eq!(claim["verdict"], "undecided", "{claim}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("All tails") && page.contains("a tiny rack"));
}

#[test]
fn what_a_racked_figure_cannot_be_given_is_refused() {
    let output = headway(&["reproduce", "pallas-fig10-live", "--workers", "2"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("its file says what runs"), "{said}");
}
