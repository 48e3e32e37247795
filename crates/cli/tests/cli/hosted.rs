//! `reproduce` of a figure that is measured on applications that share cores, with real but small daemon, server, batch program and client.

use super::headway;

/// Two systems at two loads.
const TINY: &str = r#"
title = "a tiny host"
paper = "none"
figure = "none"
testbed = "none"
papers = "shenango-fig5"

[host]
cores = 2

[host.workload]
name = "tiny"

[[host.workload.class]]
name = "request"
share = 1.0
service = { dist = "constant", mean = "50us" }

[full]
rounds = 2

[fast]
rounds = 2

[[place]]
name = "steps"
steps = [{ rate = 300, lasts = "200ms" }, { rate = 1500, lasts = "200ms" }]

[[system]]
name = "Shenango"
policy = "shenango"
guaranteed = 1
batch = true

[[system]]
name = "alone"
policy = "static"
guaranteed = 2
batch = false

[[claim]]
says = "nothing is left by who holds all cores"
of = "alone"
figure = "batch_cores"
at = "steps"
expect = { at_most = 0.0 }

[[claim]]
says = "requests take their time"
of = "Shenango"
figure = "p999_us"
at = "steps"
expect = { at_least = 50.0 }
"#;

/// Whether the batch program did work in a live run.
fn batch_worked(told: &serde_json::Value) -> bool {
    let mut runs = told["results"][0]["runs"].as_array().unwrap().iter();
    runs.any(|run| run["live"]["batch_cores"].as_f64() > Some(0.0))
}

/// A figure whose batch program did work; none where the machine was never idle, since that program has only the time that others leave.
fn with_batch_work(args: &[&str]) -> Option<serde_json::Value> {
    for _ in 0..5 {
        let before = idle_ticks();
        let output = headway(args);
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("counted no work") {
            let idle = idle_ticks() - before;
            assert!(idle < TICKS_PER_S, "idle for {idle} ticks: {said}");
            return None;
        }
        let told = serde_json::from_slice(&output.stdout);
        let told = told.unwrap_or_else(|error| panic!("{error}: {said}"));
        if batch_worked(&told) {
            return Some(told);
        }
    }
    panic!("in none of five figures did the batch program work");
}

/// The unit of proc(5)'s times.
const TICKS_PER_S: u64 = 100;

/// The time that all cores together were idle.
fn idle_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all = stat.lines().next().unwrap();
    all.split_whitespace().nth(4).unwrap().parse().unwrap()
}

#[test]
fn a_figure_of_a_host_is_measured_and_simulated() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        eprintln!("SKIPPED a_figure_of_a_host_is_measured_and_simulated: it needs two cores");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.toml");
    std::fs::write(&file, TINY).unwrap();
    let page = folder.path().join("page.html");
    let args = [
        "reproduce",
        file.to_str().unwrap(),
        "--fast",
        "--format",
        "json",
        "--html",
    ];
    let args = [&args[..], &[page.to_str().unwrap()]].concat();
    let Some(told) = with_batch_work(&args) else {
        eprintln!(
            "SKIPPED a_figure_of_a_host_is_measured_and_simulated: other programs leave no time"
        );
        return;
    };
    let told = &told["results"][0];
    let runs = told["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4, "{told}");
    for run in runs {
        assert!(run["sent"].as_u64() > Some(200), "{run}");
        assert_eq!(
            (&run["lost"], &run["shed"]),
            (&0.into(), &0.into()),
            "{run}"
        );
        let has_batch = run["system"] == "Shenango";
        for side in ["live", "simulated"] {
            let figure = |name: &str| run[side][name].as_f64();
            assert!(figure("p999_us") >= Some(49.0), "{side} {run}");
            assert!(figure("worst_p999_us") >= figure("p999_us"), "{side} {run}");
            // It may also do nothing in one live run.
            let is_busy = side == "live" && has_batch;
            let does_batch_work = figure("batch_cores") > Some(0.0);
            assert!(is_busy || does_batch_work == has_batch, "{side} {run}");
            assert!(figure("efficiency") > Some(0.0), "{side} {run}");
        }
    }
    // Two rounds make a verdict. One that began late, beside other work, is no round.
    let late = |run: &serde_json::Value| run["lag"]["late_fraction"].as_f64() > Some(0.0);
    let mut alone = runs.iter().filter(|run| run["system"] == "alone");
    if alone.any(late) {
        eprintln!("the verdict is not looked at: a request was sent late");
    } else {
        assert_eq!(told["claims"][0]["verdict"], "reproduced", "{told}");
    }
    assert_eq!(told["papers"]["name"], "shenango-fig5");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("a tiny host") && page.contains("The simulation of the paper"));
}

#[test]
fn what_a_hosted_figure_cannot_be_given_is_refused() {
    let refused = |args: &[&str], part: &str| {
        let output = headway(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    };
    refused(
        &["reproduce", "shenango-fig4-live", "--workers", "2"],
        "its file says what runs",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.toml");
    std::fs::write(&file, TINY.replace("cores = 2", "cores = 4000")).unwrap();
    refused(
        &["reproduce", file.to_str().unwrap()],
        "4000 cores are to be dealt out",
    );
}
