//! Plans, and workloads fitted to traces.

use super::surroundings::{StderrState, with_stderr};
use super::{headway, json, words};
use serde_json::Value;
use std::process::Output;

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

const PLAN: [&str; 9] = [
    "plan",
    "--workload",
    "high-bimodal",
    "--cores",
    "5",
    "--requests",
    "20k",
    "--replications",
    "3",
];

fn plan(more: &[&str]) -> Output {
    let base = if more.contains(&"--cores") {
        [&PLAN[..3], &PLAN[5..]].concat()
    } else {
        PLAN.to_vec()
    };
    headway(&[&base[..], more].concat())
}

#[test]
fn a_plan_ranks_counts_cores_and_does_not_depend_on_its_threads() {
    let asked = [
        "--load",
        "0.6",
        "--slo",
        "class.short.slowdown.p99<=20",
        "--format",
        "json",
    ];
    let one = plan(&[&asked[..], &["--threads", "1"]].concat());
    assert_eq!(one.status.code(), Some(0), "{}", said(&one));
    assert_eq!(
        one.stdout,
        plan(&[&asked[..], &["--threads", "3"]].concat()).stdout
    );
    let report: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(report["verdict"], "met");
    let ranking = report["ranking"].as_array().unwrap();
    // Those that tie with the best are in the order of what they bear.
    let uses: Vec<f64> = ranking
        .iter()
        .filter(|e| e["tied"] == false)
        .skip(1)
        .map(|e| e["slo_use"]["estimate"].as_f64().unwrap())
        .collect();
    assert!(uses.is_sorted(), "{uses:?}");
    assert!(ranking.iter().any(|entry| entry["policy"] == "c-fcfs"));
    let workers = |of: usize| report["cores"][of]["workers"].as_u64().unwrap();
    assert!(workers(0) <= 5);
    for entry in ranking {
        let has_thread = ["dedicated", "monitored"].contains(&entry["layout"].as_str().unwrap());
        let [workers, cores] = ["workers", "cores"].map(|key| entry[key].as_u64().unwrap());
        assert_eq!(cores, 5, "{entry}");
        assert_eq!(workers, cores - u64::from(has_thread), "{entry}");
    }
    assert_eq!(
        (&report["machine_cores"], &report["ideal"]),
        (&5.into(), &true.into())
    );
    let steered = ranking.iter().find(|entry| entry["policy"] == "d-fcfs");
    assert!(
        steered.is_none_or(|entry| entry["workers"] == 5),
        "{steered:?}"
    );
    // The baseline comes last, since it needs more workers.
    assert_eq!(report["cores"][1]["policy"], "c-fcfs");
    assert!(workers(1) > workers(0), "{}", report["cores"]);
    let stressed = report["sensitivity"].as_array().unwrap();
    // The load is that of four workers, and told of the best's.
    let load = 0.72 * 4.0 / ranking[0]["workers"].as_f64().unwrap();
    assert!((stressed[0]["load"].as_f64().unwrap() - load).abs() < 1e-9);
    assert!((stressed[1]["load"].as_f64().unwrap() - load).abs() < 1e-3);
}

#[test]
fn what_nobody_can_do_is_said_with_what_shows_it() {
    let done = plan(&["--load", "0.5", "--slo", "class.long.latency.p99<=90us"]);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("No policy can meet the SLO"), "{text}");
    assert!(
        text.contains("class.long.latency.p99<=90us: service time: 100.0 %"),
        "{text}"
    );
    // More load than all five cores, none of which d-fcfs reserves for a dispatcher.
    let done = plan(&["--load", "1.3", "--slo", "overall.slowdown.p50<=1000"]);
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(
        text.contains("utilization: the requests take 5.200 workers, and there are 5"),
        "{text}"
    );
}

#[test]
fn parameters_that_are_given_are_fixed_and_the_others_searched() {
    let done = plan(&[
        "--cores",
        "7",
        "--load",
        "0.5",
        "--slo",
        "class.short.slowdown.p99<=50",
        "--format",
        "json",
        "--policy",
        "concord,dispatchers=2",
        "--policy",
        "shinjuku-sq,q=5us",
        "--policy",
        "c-fcfs",
    ]);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}", said(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let ranking = report["ranking"].as_array().unwrap();
    let of = |policy: &str| {
        ranking
            .iter()
            .filter(|entry: &&Value| {
                let name = entry["policy"].as_str().unwrap();
                name.split(',').next() == Some(policy)
            })
            .collect::<Vec<_>>()
    };
    // Several dispatchers have threads of their own; the others are also tried without.
    assert_eq!(report["rounds"][0]["candidates"], 3 + 2 + 2);
    assert!(
        of("concord")
            .iter()
            .all(|one| one["params"]["dispatchers"] == 2)
    );
    assert_eq!(of("shinjuku-sq")[0]["params"]["q"], "5us");
    for (policy, parts) in [
        (
            "concord,dispatchers=7",
            ["dispatchers=7", "1 to the number of workers"],
        ),
        (
            "concord,dispatcherz=2",
            ["'dispatcherz'", "did you mean 'dispatcher"],
        ),
        ("shinjuku-sq,q=5", ["q=5", "a time above 0 such as 5us"]),
        ("shinjuku-sq,q", ["'q'", "key=value"]),
    ] {
        let done = plan(&["--cores", "7", "--policy", policy]);
        assert_eq!(done.status.code(), Some(2), "{policy}: {}", said(&done));
        for part in [&["--policy"][..], &parts[..]].concat() {
            assert!(said(&done).contains(part), "{policy}: {}", said(&done));
        }
    }
}

#[test]
fn the_settings_written_say_where_interrupted_requests_go_on_as_planned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("serve.toml").display().to_string();
    let asked = [
        "--load",
        "0.5",
        "--slo",
        "class.short.slowdown.p99<=1000",
        "--ideal",
        "--queue-limit",
        "900",
        "--config-out",
        &path,
    ];
    for (policy, resume, is_written) in [
        ("concord", "own-worker", true),
        ("concord", "anywhere", true),
        ("synergy", "anywhere", true),
        ("c-fcfs", "anywhere", false),
    ] {
        let done = plan(&[&asked[..], &["--policy", policy, "--resume", resume]].concat());
        assert!(
            matches!(done.status.code(), Some(0 | 1)),
            "{policy}: {}",
            said(&done)
        );
        let text = std::fs::read_to_string(&path).unwrap();
        let line = format!("resume = \"{resume}\"");
        assert_eq!(text.contains(&line), is_written, "{policy}: {text}");
        let checked = headway(&["serve", "-c", &path, "--check"]);
        assert_eq!(
            checked.status.code(),
            Some(0),
            "{policy}: {}",
            said(&checked)
        );
    }
}

#[test]
fn the_settings_written_are_settings_that_serve_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("serve.toml").display().to_string();
    let asked = [
        "--load",
        "0.5",
        "--slo",
        "class.short.slowdown.p99<=50",
        "--policy",
        "darc",
        "--config-out",
        &path,
    ];
    // The command writes no settings from an ideal machine's costs unless the user asks for them.
    let refused = plan(&asked);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("--config-out: "),
        "{}",
        said(&refused)
    );
    assert!(!std::path::Path::new(&path).exists());
    let done = plan(&[&asked[..], &["--ideal"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let shown = String::from_utf8_lossy(&done.stdout);
    let verdict = "meets the SLO in every replication on an ideal machine";
    assert!(shown.contains(verdict), "{shown}");
    let checked = headway(&["serve", "-c", &path, "--check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    // The library's server accepts the same file.
    use ::headway::config::FromConfig;
    let builder = ::headway::runtime::Builder::from_config(&path).unwrap();
    let built = format!("{builder:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    let inline = text.contains("workers = 5");
    let (workers, layout) = if inline {
        (5, "inline")
    } else {
        (4, "dedicated")
    };
    assert!(
        built.contains(&format!("workers: {workers}")) && built.contains("name: \"short\""),
        "{built}"
    );
    assert!(
        text.contains(&format!("workers = {workers}")) && !text.contains("profile"),
        "{text}"
    );
    let line = format!("layout = \"{layout}\"");
    assert!(
        text.contains(&line) && text.contains("on an ideal machine"),
        "{text}"
    );
}

/// A lookup of a microsecond beside a search of a millisecond, and the costs of a machine with sockets.
fn lookups(dir: &std::path::Path) -> (String, String) {
    let class = |name: &str, share: f64, mean: &str| {
        format!(
            "[[class]]\nname = \"{name}\"\nshare = {share}\nservice = {{ dist = \"constant\", mean = \"{mean}\" }}\n"
        )
    };
    let write = |name: &str, text: String| {
        let path = dir.join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let text = class("lookup", 0.999, "1us") + &class("search", 0.001, "1ms");
    let costs =
        r#"{"dispatch_ns": 9000, "handoff_ns": 300, "completion_ns": 300, "overhead_ns": 3000}"#;
    (
        write("lookups.toml", text),
        write("costs.json", costs.into()),
    )
}

#[test]
fn what_an_ideal_machine_sustains_a_real_one_need_not() {
    let dir = tempfile::tempdir().unwrap();
    let (workload, costs) = lookups(dir.path());
    let asked = [
        "plan",
        "--workload",
        &workload,
        "--cores",
        "2",
        "--load",
        "0.3",
        "--network",
        "20us",
        "--slo",
        "class.lookup.latency.p99<=2ms",
        "--policy",
        "c-fcfs",
        "--requests",
        "20k",
        "--replications",
        "2",
        "--format",
        "json",
    ];
    let ideal = json(&asked);
    assert_eq!(ideal["verdict"], "met");
    assert_eq!(ideal["ideal"], true);
    let ranking = ideal["ranking"].as_array().unwrap();
    let mut dedicated = ranking.iter().filter(|one| one["layout"] == "dedicated");
    let has_one = dedicated.next().is_some_and(|one| one["workers"] == 1);
    assert!(has_one, "the dispatcher has the other core: {ideal}");
    // 150 000 requests a second, each of which takes 9 µs of the dispatcher.
    let real = headway(&[&asked[..], &["--costs", &costs]].concat());
    assert_eq!(real.status.code(), Some(1), "{}", said(&real));
    let real: Value = serde_json::from_slice(&real.stdout).unwrap();
    assert_eq!(
        (&real["verdict"], &real["ideal"]),
        (&"missed".into(), &false.into())
    );
    assert_eq!(real["ranking"][0]["overloaded"], true);
    let bounded = headway(&[&asked[..], &["--costs", &costs, "--queue-limit", "10"]].concat());
    assert_eq!(bounded.status.code(), Some(1), "{}", said(&bounded));
    let bounded: Value = serde_json::from_slice(&bounded.stdout).unwrap();
    assert_eq!(bounded["verdict"], "missed");
    let lost = bounded["ranking"][0]["lost_fraction"].as_f64().unwrap();
    assert!(lost > 0.01, "{bounded}");
}

/// The test accepts any costs, and a machine too busy to measure them. Nobody reads the progress: a calibration takes half a minute, so this is the one that has no
/// standard error.
#[test]
fn costs_measured_here_know_the_sockets() {
    let args = "plan --workload shenango-bimodal --cores 2 --rate 1k --costs here --policy c-fcfs --requests 5k --replications 2 --format json";
    let mut command = with_stderr(StderrState::Gone, &words(args));
    let done = command.output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}", done.status);
    // Costs of a busy machine may leave no answer.
    let Ok(report) = serde_json::from_slice::<Value>(&done.stdout) else {
        return;
    };
    assert_eq!(report["ideal"], false);
    let caveats = report["caveats"].as_array().unwrap();
    let says = |note: &Value| note.as_str().unwrap().contains("UDP sockets included");
    assert!(caveats.iter().any(says), "{caveats:?}");
}

#[test]
fn the_answer_runs_live_beside_its_simulation() {
    let dir = tempfile::tempdir().unwrap();
    let (_, costs) = lookups(dir.path());
    let ask = |format| {
        headway(&[
            "plan",
            "--workload",
            "shenango-bimodal",
            "--cores",
            "2",
            "--rate",
            "1k",
            "--costs",
            &costs,
            "--slo",
            "overall.slowdown.p50<=100000",
            "--policy",
            "c-fcfs",
            "--requests",
            "5k",
            "--replications",
            "2",
            "--validate",
            "500ms",
            "--format",
            format,
        ])
    };
    let done = ask("json");
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let validation = &report["validation"];
    assert_eq!(validation["policy"], "c-fcfs", "{report}");
    assert_eq!(validation["simulated"]["level"], "server");
    assert_eq!(validation["live"]["level"], "live");
    assert!(
        validation["live"]["requests"].as_u64().unwrap() > 300,
        "{validation}"
    );
    // The exit status is 1 if and only if the SLO is missed.
    let met = validation["met"].as_bool().unwrap();
    assert_eq!(
        done.status.code(),
        Some(if met { 0 } else { 1 }),
        "{}",
        said(&done)
    );
    let shown = String::from_utf8(ask("table").stdout).unwrap();
    assert!(shown.contains("c-fcfs live, over loopback UDP"), "{shown}");
    assert!(shown.contains("simulated p99.9"), "{shown}");
}

/// Writes a trace of Poisson GETs and rare exponential SCANs.
fn trace(dir: &std::path::Path) -> String {
    use headway_workload::{Class, Generator, Offered, ServiceDistribution, Workload};
    let get = Class::new(
        "GET",
        0.95,
        ServiceDistribution::Constant { mean_ns: 2_000 },
    );
    let scan = Class::new(
        "SCAN",
        0.05,
        ServiceDistribution::Exponential { mean_ns: 80_000 },
    );
    let workload = Workload::new("kv", vec![get, scan]);
    let drawn = Generator::new(&workload, Offered::Rate(300_000.0), 4).take(20_000);
    let rows: String = drawn
        .map(|a: headway_workload::Arrival| {
            let class = ["GET", "SCAN"][usize::from(a.class)];
            format!("{}ns,{class},{}ns\n", a.at_ns, a.service_ns)
        })
        .collect();
    let path = dir.join("kv.csv").display().to_string();
    std::fs::write(&path, format!("time,class,service\n{rows}")).unwrap();
    path
}

#[test]
fn a_trace_is_fitted_planned_for_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let fitted = dir.path().join("fitted.toml").display().to_string();
    let report = json(&[
        "plan",
        "--trace",
        &trace,
        "--fit-out",
        &fitted,
        "--slo",
        "class.GET.slowdown.p99<=10",
        "--requests",
        "20k",
        "--replications",
        "2",
        "--format",
        "json",
    ]);
    // 300k rps of 5.9 µs are 1.77 workers: three at a load of at most 0.7.
    assert_eq!(report["workers"], 3);
    assert!(report["replay"]["slo_use"].is_number(), "{report}");
    let text = std::fs::read_to_string(&fitted).unwrap();
    assert!(
        text.contains("# GET") && text.contains("dist = \"exponential\""),
        "{text}"
    );
    let run = json(&[
        "sim",
        "--workload",
        &fitted,
        "--requests",
        "5k",
        "--format",
        "json",
    ]);
    assert_eq!(run["classes"][1]["name"], "SCAN");
    let fit = json(&["fit", &trace, "--format", "json"]);
    assert_eq!(fit["arrivals"]["process"], "poisson");
    assert_eq!(fit["classes"][0]["chosen"]["distribution"], "constant");
}

#[test]
fn logs_of_caches_are_fitted_and_their_mistakes_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("monitor.log").display().to_string();
    std::fs::write(
        &path,
        "OK\n1.5 [0 lua] \"get\" \"x\"\n1.7 [0 lua] \"set\" \"x\" \"y\"\n",
    )
    .unwrap();
    let fit = json(&[
        "fit",
        &path,
        "--service",
        "get=1us,*=3us",
        "--format",
        "json",
    ]);
    assert_eq!(fit["classes"][1]["service_us"], 3.0);
    let doubt = fit["arrivals"]["doubt"].as_str().unwrap();
    assert!(doubt.contains("too few"), "{doubt}");
    for (args, parts) in [
        (&["fit", &path][..], &["monitor.log:2", "get=2us"][..]),
        (
            &["fit", &path, "--trace-format", "redis"],
            &["--trace-format", "redis-monitor"],
        ),
        (
            &["fit", &path, "--service", "get"],
            &["--service", "get=1.2us"],
        ),
        (&["fit", "/nowhere.csv"], &["/nowhere.csv"]),
        (
            &["plan", "--policy", "drac"],
            &["--policy", "did you mean 'darc'"],
        ),
        (
            &["plan", "--slo", "class.shrt.latency.p99<=1us"],
            &["--slo", "short"],
        ),
        (
            &["plan", "--trace", &path, "--config-out", "x"],
            &["--config-out", "--fit-out"],
        ),
    ] {
        let done = headway(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", said(&done));
        for part in parts {
            assert!(said(&done).contains(part), "{args:?}: {}", said(&done));
        }
    }
}

#[test]
fn files_as_other_programs_write_them_are_read_by_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let monitor = write(
        "monitor.log",
        "+OK\n1.0 [0 10.0.0.5:1] \"GET\" \"k\"\n1.1 (db 0) \"get\" \"k\"\n",
    );
    let epoch = write(
        "epoch.csv",
        "#time,class,service\n1700000000000000,a,1\n1700000000000010,a,1.5e+00\n1700000000000020,a,0.000\n",
    );
    for command in ["sim", "fit"] {
        let of = |path: &str, more: &[&str]| {
            let named = match command {
                "sim" => vec!["sim", "--policy", "c-fcfs", "--workload", path],
                _ => vec!["fit", path],
            };
            headway(&[&named[..], more, &["--format", "json"]].concat())
        };
        let read = of(&monitor, &["--service", "get=1us"]);
        let report: Value = serde_json::from_slice(&read.stdout).unwrap();
        let classes = report["classes"].as_array().unwrap();
        assert_eq!(
            (classes.len(), &classes[0]["name"]),
            (1, &"get".into()),
            "{report}"
        );
        let refused = of(&monitor, &[]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(said(&refused).contains("get=2us"), "{}", said(&refused));
        let zero = of(&epoch, &[]);
        assert!(said(&zero).contains("--skip-zero"), "{}", said(&zero));
        let skipped = of(&epoch, &["--skip-zero"]);
        assert_eq!(skipped.status.code(), Some(0), "{}", said(&skipped));
        assert!(
            said(&skipped).contains("1 of 3 rows left out"),
            "{}",
            said(&skipped)
        );
        let report: Value = serde_json::from_slice(&skipped.stdout).unwrap();
        assert_eq!(report["classes"][0]["count"], 2, "{report}");
    }
    let ycsb = write("workloada", "recordcount=1000\nreadproportion=0.5\n");
    for (args, parts) in [
        (&["sim", "--workload", &ycsb][..], ["--workload", "YCSB"]),
        (&["sim", "--service", "*=1us"], ["--service", "no trace"]),
        (&["sweep", "--skip-zero"], ["--skip-zero", "no trace"]),
    ] {
        let done = headway(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", said(&done));
        for part in parts {
            assert!(said(&done).contains(part), "{args:?}: {}", said(&done));
        }
    }
}
