//! The machine-readable contract and the other outputs.

use super::{headway, json};

#[test]
fn sim_prints_one_object_with_the_fields_of_the_contract() {
    let run = json(&[
        "sim",
        "--policy",
        "darc,profile=known",
        "--workload",
        "extreme-bimodal",
        "--workers",
        "16",
        "--rate",
        "5.1M",
        "--requests",
        "200k",
        "--format",
        "json",
    ]);
    for field in [
        "policy",
        "params",
        "level",
        "workload",
        "workers",
        "seed",
        "requests",
        "offered_rps",
        "achieved_rps",
        "load",
        "utilization",
        "dropped",
        "preemptions",
        "overloaded",
        "overall",
        "classes",
        "reservation",
    ] {
        assert!(run.get(field).is_some(), "no {field} in {run}");
    }
    assert_eq!(run["policy"], "darc");
    assert_eq!(run["level"], "server");
    assert_eq!(run["requests"], 200_000);
    for measure in ["latency_us", "slowdown"] {
        for figure in ["mean", "p50", "p90", "p99", "p999", "max"] {
            assert!(run["overall"][measure][figure].is_number());
            assert!(run["classes"][0][measure][figure].is_number());
        }
    }
    assert_eq!(run["classes"][0]["name"], "short");
    assert_eq!(
        run["reservation"][0]["classes"],
        serde_json::json!(["short"])
    );
    assert_eq!(
        run["reservation"][0]["reserved"],
        serde_json::json!([0, 1, 2])
    );
}

#[test]
fn the_same_flags_give_the_same_bytes() {
    let args = [
        "sim",
        "--policy",
        "work-stealing",
        "--requests",
        "50k",
        "--format",
        "json",
        "--seed",
        "7",
    ];
    assert_eq!(headway(&args).stdout, headway(&args).stdout);
}

#[test]
fn a_sweep_does_not_depend_on_its_threads() {
    let sweep = |threads: &str| {
        headway(&[
            "sweep",
            "--loads",
            "0.3,0.6",
            "--requests",
            "20k",
            "--replications",
            "2",
            "--format",
            "json",
            "--threads",
            threads,
        ])
        .stdout
    };
    let one = sweep("1");
    assert!(!one.is_empty());
    assert_eq!(one, sweep("3"));
}

#[test]
fn a_run_can_be_repeated_from_its_output() {
    let first = json(&[
        "sim",
        "--policy",
        "darc,delta=3,window=2000",
        "--requests",
        "50k",
        "--format",
        "json",
    ]);
    let params = first["params"].as_object().unwrap();
    let spec: String = params
        .iter()
        .map(|(key, value)| {
            format!(
                ",{key}={}",
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            )
        })
        .collect();
    let policy = format!("{}{spec}", first["policy"].as_str().unwrap());
    let again = json(&[
        "sim",
        "--policy",
        &policy,
        "--requests",
        "50k",
        "--format",
        "json",
    ]);
    assert_eq!(first, again);
}

#[test]
fn capacity_prints_policy_load_and_rate() {
    let report = json(&[
        "capacity",
        "--policy",
        "c-fcfs",
        "--policy",
        "darc",
        "--requests",
        "50k",
        "--tolerance",
        "0.1",
        "--format",
        "json",
    ]);
    assert_eq!(report["slo"], "class.*.slowdown.p999<=10");
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(
            result["policy"].is_string() && result["load"].is_number() && result["rps"].is_number()
        );
    }
}

/// A queue of one sheds every waiting request, so the rest is fast. Such a run must not count as capacity.
#[test]
fn a_run_that_loses_requests_has_no_capacity() {
    let lossy = [
        "--policy",
        "c-fcfs",
        "--workload",
        "extreme-bimodal",
        "--workers",
        "16",
        "--queue-limit",
        "1",
        "--requests",
        "300k",
    ];
    let capacity = [
        &["capacity"][..],
        &lossy,
        &["--tolerance", "0.1", "--format", "json"],
    ]
    .concat();
    let report = json(&capacity);
    let load = report["results"][0]["load"].as_f64().unwrap();
    assert!(load < 0.6, "{load}");
    let sweep = [
        &["sweep"][..],
        &lossy,
        &["--loads", "0.9", "--slo", "class.*.slowdown.p99.9<=10"],
    ]
    .concat();
    assert_eq!(headway(&sweep).status.code(), Some(1));
    let sim = [
        &["sim"][..],
        &lossy,
        &["--load", "0.9", "--slo", "overall.slowdown.p50<=1000"],
    ]
    .concat();
    let done = headway(&sim);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("was lost, more than 0.1 %"), "{said}");
}

#[test]
fn a_search_that_finds_no_capacity_fails() {
    let done = headway(&[
        "capacity",
        "--policy",
        "c-fcfs",
        "--requests",
        "5k",
        "--slo",
        "overall.slowdown.max<=0.5",
    ]);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no policy meets it even at load 0.02"));
}

#[test]
fn a_sweep_of_one_load_or_rate_has_one_point() {
    for given in [["--load", "0.5"], ["--rate", "1M"]] {
        let sweep = [
            "sweep",
            "--policy",
            "c-fcfs",
            "--requests",
            "2k",
            "--format",
            "json",
        ];
        let report = json(&[&sweep[..], &given].concat());
        assert_eq!(report["points"].as_array().unwrap().len(), 1, "{given:?}");
    }
}

fn simulated(more: &[&str]) -> serde_json::Value {
    let sim = [
        "sim",
        "--policy",
        "darc,profile=known",
        "--workers",
        "8",
        "--load",
        "0.7",
        "--requests",
        "50k",
        "--format",
        "json",
    ];
    json(&[&sim[..], more].concat())
}

#[test]
fn the_server_may_take_requests_for_others_or_not_know_them() {
    let short = |run: &serde_json::Value| run["classes"][0]["slowdown"]["p999"].as_f64().unwrap();
    let exact = simulated(&[]);
    for mistaken in [["--classifier", "random"], ["--unknown", "0.5"]] {
        let run = simulated(&mistaken);
        assert!(short(&run) > 1.5 * short(&exact), "{mistaken:?}: {run}");
        assert_eq!(run["classes"][0]["count"], exact["classes"][0]["count"]);
    }
    assert_eq!(simulated(&["--unknown", "0"]), exact);
}

#[test]
fn workers_come_and_go() {
    let base = [
        "sim",
        "--policy",
        "c-fcfs",
        "--rate",
        "1k",
        "--requests",
        "2k",
        "--format",
        "json",
    ];
    let latencies = |more: &[&str]| json(&[&base[..], more].concat())["classes"].clone();
    let one = latencies(&["--workers", "1"]);
    assert_eq!(
        latencies(&["--workers", "2", "--core-change", "0us:-1"]),
        one
    );
    let (gone, back) = ("0us:-1", "1ns:+1");
    let both = [
        "--workers",
        "2",
        "--core-change",
        back,
        "--core-change",
        gone,
    ];
    assert_ne!(latencies(&both), one);
}

#[test]
fn what_a_policy_wastes_is_in_its_result() {
    // Perséphone, § 5.2: 0.86 cores of High Bimodal on 14 workers, by Equation 2 and before stealing.
    let run = json(&[
        "sim",
        "--policy",
        "darc,profile=known",
        "--requests",
        "50k",
        "--format",
        "json",
    ]);
    let expected = run["expected_waste_cores"].as_f64().unwrap();
    assert!((expected - 0.86).abs() < 0.01, "{expected}");
    let wasted = run["wasted_cores"].as_f64().unwrap();
    assert!(wasted > 0.0 && wasted < expected, "{wasted}");
    let one_queue = json(&[
        "sim",
        "--policy",
        "c-fcfs",
        "--requests",
        "20k",
        "--format",
        "json",
    ]);
    assert_eq!(one_queue["wasted_cores"], 0.0);
    assert!(one_queue.get("expected_waste_cores").is_none());
}

/// The total and the classes' counts treat losses alike: neither includes those of the warm-up.
#[test]
fn the_total_of_what_was_dropped_is_that_of_the_classes() {
    for policy in ["c-fcfs", "d-fcfs", "racksched"] {
        let run = json(&[
            "sim",
            "--policy",
            policy,
            "--queue-limit",
            "1",
            "--load",
            "0.95",
            "--requests",
            "20k",
            "--format",
            "json",
        ]);
        let classes = run["classes"].as_array().unwrap();
        let dropped: u64 = classes
            .iter()
            .map(|class| class["dropped"].as_u64().unwrap())
            .sum();
        assert!(dropped > 0, "{policy}");
        assert_eq!(run["dropped"], dropped, "{policy}");
    }
}

#[test]
fn capacity_tells_apart_what_differs_in_parameters_only() {
    let specs = ["jbsq,k=1", "jbsq,k=8", "persephone"];
    let ask = |format| {
        let policies = specs.iter().flat_map(|spec| ["--policy", spec]);
        let search = ["capacity", "--requests", "20k", "--tolerance", "0.2"];
        let args = search
            .into_iter()
            .chain(policies)
            .chain(["--format", format]);
        headway(&args.collect::<Vec<_>>())
    };
    let table = String::from_utf8(ask("table").stdout).unwrap();
    assert!(specs.iter().all(|spec| table.contains(spec)), "{table}");
    let report: serde_json::Value = serde_json::from_slice(&ask("json").stdout).unwrap();
    let results = report["results"].as_array().unwrap();
    for (result, spec) in results.iter().zip(specs) {
        let name = spec
            .split(',')
            .next()
            .unwrap()
            .replace("persephone", "darc");
        assert_eq!(
            (&result["policy"], &result["spec"]),
            (&name.into(), &spec.into())
        );
    }
}

#[test]
fn the_exit_status_tells_whether_the_slo_was_met() {
    let sim = |slo: &str| {
        headway(&[
            "sim",
            "--policy",
            "c-fcfs",
            "--load",
            "0.8",
            "--requests",
            "100k",
            "--slo",
            slo,
        ])
    };
    assert_eq!(sim("overall.slowdown.p999<=100000").status.code(), Some(0));
    let missed = sim("class.short.slowdown.p999<=1.01");
    assert_eq!(missed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missed.stderr).contains("SLO missed"));
}

#[test]
fn a_sweep_fails_only_when_no_point_meets_the_slo() {
    let sweep = |slo: &str| {
        let done = headway(&[
            "sweep",
            "--policy",
            "c-fcfs",
            "--loads",
            "0.1,0.9",
            "--requests",
            "50k",
            "--slo",
            slo,
        ]);
        let table = String::from_utf8(done.stdout).unwrap();
        assert!(table.contains("meets SLO"), "{table}");
        (done.status.code(), table)
    };
    let (status, table) = sweep("class.short.slowdown.p99<=10");
    assert_eq!(status, Some(0), "{table}");
    assert!(table.contains(" yes") && table.contains(" no"), "{table}");
    let (status, table) = sweep("overall.latency.mean<=1ns");
    assert_eq!(status, Some(1), "{table}");
    assert!(!table.contains(" yes"), "{table}");
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let completions = String::from_utf8(headway(&["completions", "bash"]).stdout).unwrap();
    let dir = tempfile::tempdir().unwrap();
    assert!(
        headway(&["man", "--dir", dir.path().to_str().unwrap()])
            .status
            .success()
    );
    for command in [
        "demo",
        "serve",
        "load",
        "bench",
        "sim",
        "sweep",
        "capacity",
        "plan",
        "fit",
        "calibrate",
        "doctor",
    ] {
        assert!(completions.contains(command), "{command} is not completed");
        assert!(
            dir.path().join(format!("headway-{command}.1")).exists(),
            "{command} has no page"
        );
    }
}

#[test]
fn a_sweep_draws_its_curves_into_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("curves.html");
    let done = headway(&[
        "sweep",
        "--loads",
        "0.3,0.6",
        "--requests",
        "20k",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert!(done.status.success());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg") && html.contains("darc"));
    assert!(
        !html.contains("http://")
            || html.matches("http://").count() == html.matches("http://www.w3.org").count()
    );
}

#[test]
fn the_interval_of_a_histogram_log_is_the_measured_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sim.hlog").display().to_string();
    // Overloaded: what is served takes longer than what arrives.
    let run = json(&[
        "sim",
        "--policy",
        "c-fcfs",
        "--workload",
        "fixed-1us",
        "--workers",
        "1",
        "--load",
        "2",
        "--requests",
        "20k",
        "--hlog",
        &path,
        "--format",
        "json",
    ]);
    let log = std::fs::read_to_string(&path).unwrap();
    let line = log.lines().find(|line| line.starts_with("Tag=")).unwrap();
    let length_s: f64 = line.split(',').nth(2).unwrap().parse().unwrap();
    let measured_s = 18_000.0 / run["achieved_rps"].as_f64().unwrap();
    // The log has milliseconds.
    assert!(
        (length_s - measured_s).abs() <= 0.001,
        "{length_s} {measured_s}"
    );
}

#[test]
fn what_an_slo_rests_on_is_said_by_every_command_that_judges_one() {
    let of = |args: &[&str]| {
        let done = headway(args);
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let slo = ["--slo", "overall.slowdown.p999<=1000", "--policy", "c-fcfs"];
    let (code, said) = of(&[&["sim", "--requests", "2"][..], &slo].concat());
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("SLO not shown: p999 of overall rests on 0.0020 requests"),
        "{said}"
    );
    let (code, said) = of(&["capacity", "--requests", "500"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("SLO not shown: c-fcfs: p999 of class."),
        "{said}"
    );
    // Thirty requests lie beyond p99; they are late together.
    let correlated = "capacity --workload fixed-1us --workers 4 --policy c-fcfs --requests 3k --slo overall.slowdown.p99<=10 --format json";
    let done = headway(&super::words(correlated));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        said.contains("note: c-fcfs: runs of other seeds carry 0.") && said.contains("--requests"),
        "{said}"
    );
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let found = &report["results"][0];
    assert!(
        found["other_seeds"]["lowest"].as_f64() < found["load"].as_f64(),
        "{found}"
    );
    for command in [&["sim"][..], &["capacity"], &["sweep", "--loads", "0.5"]] {
        let (code, said) = of(&[command, &["--requests", "5k"], &slo].concat());
        assert_eq!(code, Some(0), "{command:?}: {said}");
        assert!(
            said.contains("note: p999 of overall rests on 4.5 requests a run"),
            "{command:?}: {said}"
        );
    }
}
