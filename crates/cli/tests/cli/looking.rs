//! Visualised runs: traces for Perfetto, and drawings.

use super::headway;

#[test]
fn a_run_can_be_looked_at_without_changing_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (trace, page) = (path("run.trace.json"), path("run.html"));
    let run = [
        "sim",
        "--policy",
        "shinjuku-sq",
        "--load",
        "0.7",
        "--requests",
        "20k",
        "--format",
        "json",
    ];
    let look = ["--trace-out", &trace, "--html", &page];
    let seen = headway(&[&run[..], &look].concat());
    let said = String::from_utf8_lossy(&seen.stderr);
    assert!(seen.status.success(), "{said}");
    assert_eq!(seen.stdout, headway(&run).stdout);

    let text = std::fs::read_to_string(&trace).unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = written["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert!(of("X") > 100, "{} slices", of("X"));
    assert_eq!(of("b"), of("e"));
    let interrupted = |event: &&serde_json::Value| event["args"]["end"] == "interrupted";
    assert!(events.iter().any(|event| interrupted(&event)));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("class=\"cut\"") && html.contains("worker 13"));
}

#[test]
fn a_window_that_shows_nothing_is_refused() {
    for (args, parts) in [
        (
            &["sim", "--trace-window", "5ms"][..],
            &["--trace-window", "20ms..21ms"][..],
        ),
        (&["sim", "--trace-window", "5ms..4ms"], &["--trace-window"]),
        (&["sim", "--trace-window", "4ms..5ms"], &["--trace-out"]),
        (
            &[
                "sim",
                "--requests",
                "1k",
                "--trace-out",
                "/dev/null",
                "--trace-window",
                "50s..51s",
            ],
            &["--trace-window", "nothing ran"],
        ),
    ] {
        let done = headway(args);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: {said}");
        }
    }
}
