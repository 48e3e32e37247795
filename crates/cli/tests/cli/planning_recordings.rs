//! Plans made from recordings whose arrivals come in waves: no process that keeps gaps and service times alone shows what they need.

use super::{headway, json};
use std::path::Path;

const SLO: &str = "overall.latency.p99<=1ms";

/// A recording of 8 820 requests of 100 µs in 147 waves, a tenth of a second apart: in each, so many of 60 come within 0.8 ms, and the others in what is left.
fn waves(dir: &Path, together: usize) -> String {
    let mut state = 7_u64;
    let mut below = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % limit
    };
    let mut arrivals = Vec::new();
    for wave in 0..147 {
        arrivals.extend((0..60).map(|number| {
            let within_us = if number < together {
                below(800)
            } else {
                800 + below(99_200)
            };
            wave * 100_000 + within_us
        }));
    }
    arrivals.sort_unstable();
    let rows: String = arrivals
        .iter()
        .map(|at_us| format!("{at_us},req,100\n"))
        .collect();
    let path = dir.join("waves.csv").display().to_string();
    std::fs::write(&path, format!("time,class,service\n{rows}")).unwrap();
    path
}

/// What a plan for a machine of so many cores exits with, and says.
fn planned(trace: &str, cores: &str) -> (Option<i32>, serde_json::Value) {
    let done = headway(&[
        "plan",
        "--trace",
        trace,
        "--slo",
        SLO,
        "--policy",
        "c-fcfs",
        "--cores",
        cores,
        "--replications",
        "2",
        "--requests",
        "20k",
        "--format",
        "json",
    ]);
    let report = serde_json::from_slice(&done.stdout);
    (done.status.code(), report.unwrap())
}

/// Whether the recording itself meets the SLO on so many workers.
fn holds(trace: &str, workers: u64) -> bool {
    let workers = workers.to_string();
    let done = headway(&[
        "sim",
        "--workload",
        trace,
        "--workers",
        &workers,
        "--policy",
        "c-fcfs",
        "--slo",
        SLO,
    ]);
    done.status.success()
}

#[test]
fn a_plan_holds_on_the_recording_that_it_was_made_from() {
    let dir = tempfile::tempdir().unwrap();
    for together in [40, 55] {
        let trace = waves(dir.path(), together);
        let fitted = json(&["fit", &trace, "--format", "json"]);
        assert!(fitted["arrivals"].is_object(), "{fitted}");
        let (exit, report) = planned(&trace, "9");
        assert_eq!((exit, &report["verdict"]), (Some(0), &"met".into()));
        assert_eq!(report["replay"]["met"], 1, "{report}");
        let needed = report["cores"][0]["workers"].as_u64().unwrap();
        assert!(needed > 1, "one worker has a load of 0.06: {report}");
        assert!(holds(&trace, needed), "{needed} workers, {report}");
        assert!(!holds(&trace, needed - 1), "{needed} workers, {report}");
        // One core too few: the fitted process meets the SLO there, and does not count.
        let (exit, report) = planned(&trace, &(needed - 1).to_string());
        assert_eq!(exit, Some(1), "{report}");
        assert_eq!(report["ranking"][0]["met"], 2, "{report}");
        assert_eq!(report["replay"]["met"], 0, "{report}");
        assert!(report["doubt"].as_str().unwrap().contains("burstier"));
    }
}
