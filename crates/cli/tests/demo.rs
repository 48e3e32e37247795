//! `headway demo` from end to end: its output, its files, and the agreement of its counts. No latency is judged.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn demo(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headway"))
        .arg("demo")
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn count(run: &Value, key: &str) -> u64 {
    run[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {run}"))
}

/// Every request has exactly one outcome, and every class has requests.
fn check_run(run: &Value) {
    assert_eq!(run["level"], "live");
    assert!(count(run, "sent") > 0);
    assert_eq!(
        count(run, "sent"),
        count(run, "answered") + count(run, "lost")
    );
    assert_eq!(count(run, "requests"), count(run, "sent"));
    let classes = run["classes"].as_array().unwrap();
    let names: Vec<&Value> = classes.iter().map(|class| &class["name"]).collect();
    assert_eq!(names, ["GET", "SCAN"]);
    let measured: u64 = classes.iter().map(|class| count(class, "count")).sum();
    assert!(measured > 0 && measured <= count(run, "answered"));
}

/// Every policy has a result even on a busy machine, and undisturbed requests are a part of all requests.
fn check_untouched(report: &Value) {
    let untouched = report["untouched"].as_array().unwrap();
    let policies: Vec<&Value> = untouched.iter().map(|of| &of["policy"]).collect();
    assert_eq!(policies, ["c-fcfs", "darc"]);
    for of in untouched {
        if let Some(fraction) = of["fraction"].as_f64() {
            assert!((0.0..=1.0).contains(&fraction), "{of}");
        }
        let quiet = count(of, "rounds");
        assert!(quiet <= count(report, "rounds"));
        assert_eq!(of["run"].is_null(), quiet == 0, "{of}");
    }
}

#[test]
fn a_quick_demo_accounts_for_every_run_and_request() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(
        folder.path(),
        &[
            "--quick", "--format", "json", "--policy", "c-fcfs", "--policy", "darc",
        ],
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "", "no progress in a pipe");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    runs.iter().for_each(check_run);
    let rounds = count(&report, "rounds");
    assert!((3..=4).contains(&rounds), "{rounds}");
    // The output says so if all rounds of a policy are left out.
    let excluded = report["excluded"].as_array().unwrap();
    let absent = 2 - runs.len();
    assert!(excluded.len() as u64 >= rounds * absent as u64, "{report}");
    check_untouched(&report);
    let foreseen = report["simulated"]["here"].as_array().unwrap();
    assert_eq!(foreseen.len(), 2);
    assert_eq!(output.status.code(), Some(i32::from(runs.is_empty())));
    let load = report["load"].as_f64().unwrap();
    assert!((0.1..=0.8).contains(&load), "{load}");
    assert!(count(&report, "scan_entries") > 0);
    for ratio in report["ratios"].as_array().unwrap() {
        assert_eq!(
            (&ratio["policy"], &ratio["base"]),
            (&"darc".into(), &"c-fcfs".into())
        );
    }
    for step in report["ranking"].as_array().unwrap() {
        let (lo, hi) = (step["ratio"]["lo"].as_f64(), step["ratio"]["hi"].as_f64());
        let excludes_1 = lo.is_some_and(|lo| lo > 1.0) || hi.is_some_and(|hi| hi < 1.0);
        assert_eq!(step["ranked"], excludes_1, "{step}");
    }
    let page = std::fs::read_to_string(folder.path().join("headway-report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "nothing is fetched"
    );
    assert_eq!(page.matches("<figure").count(), 8);
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    for (args, named) in [
        (["--policy", "dark"], "did you mean 'darc'"),
        (["--load", "7"], "--load"),
        (["--seconds", "0"], "--seconds"),
        (["--rounds", "1"], "--rounds"),
    ] {
        let output = demo(folder.path(), &args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(named), "{errors}");
        assert_eq!(output.stdout, b"");
    }
}
