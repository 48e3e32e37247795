//! `headway reproduce` of a figure that is measured live: a server in a separate process, for each system at each load.

use super::{headway, json};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The key-value service with the interface of live figures' servers: arguments folder, policy, workers, address, mechanism and idling; it runs
/// until its input ends. If this script is killed, the service ends by itself.
const SERVER: &str = r#"#!/bin/sh
said=$(mktemp)
exec 3<&0
timeout 120 HEADWAY serve --app kv --keys 1000 --policy "$2" --workers "$3" --listen "$4" --idle "$6" 2>"$said" </dev/null &
server=$!
(cat <&3; kill -TERM $server) >/dev/null 2>&1 &
wait $server
code=$?
cat "$said" >&2
sed -n 's/^received .* (served \([0-9]*\),.*/answered \1, preemptions 0/p' "$said"
rm "$said"
exit $code
"#;

/// The service's classes in the order of its types; bodies are those of apps/kv.
const OWN: &str = r#"
title = "a store, half GET, half SCAN"
paper = "none"
figure = "Figure 0"
testbed = "nothing"
slowdown = 50.0
tails = ["p999", "p90"]
[server]
probes = "nowhere"
plain = "nowhere-plain"
build = "make it"
[[class]]
name = "GET"
share = 0.5
key = { prefix = "\u0000\u0000\u0010key:", digits = 12, below = 1000 }
[[class]]
name = "SCAN"
share = 0.5
key = { prefix = "\u0001\u0000\u0000\u0000\u0000\u0002\u0000", digits = 0, below = 1 }
[full]
loads = [0.1, 0.4]
rounds = 2
run_ms = 200
[fast]
loads = [0.2]
rounds = 2
run_ms = 100
[[system]]
name = "c-FCFS"
policy = "c-fcfs"
program = "plain"
[[system]]
name = "Concord"
policy = "concord,q=20us"
program = "probes"
[[system]]
name = "not live"
policy = "darc,profile=known"
program = "probes"
[[claim]]
says = "Concord carries more"
of = "Concord"
over = "c-FCFS"
[[claim]]
says = "what is not run carries more"
of = "not live"
over = "c-FCFS"
tail = "p90"
"#;

/// The output of a measurement. A busy machine may carry too little for a single request at the lowest load: then it is measured again.
fn measured(args: &[&str]) -> Output {
    let begun = Instant::now();
    loop {
        let output = headway(args);
        if output.status.success() {
            return output;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let carries_nothing = said.contains("has no request within the extent");
        let gives_up = begun.elapsed() > Duration::from_secs(120);
        assert!(carries_nothing && !gives_up, "{output:?}");
    }
}

#[test]
fn each_system_is_measured_at_each_load_and_who_cannot_run_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (file, server) = (written(&folder, "own.toml", OWN), service(&folder));
    let page = folder.path().join("page.html");
    let output = measured(&[
        "reproduce",
        &file,
        "--server",
        &server,
        "--workers",
        "1",
        "--seed",
        "7",
        "--html",
        page.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let result = &answer["results"][0];
    let runs = check_runs(result, 8);
    for system in ["c-FCFS", "Concord"] {
        assert_eq!(runs.iter().filter(|run| run["system"] == system).count(), 4);
    }
    let skipped = result["systems"][2]["skipped"].as_str().unwrap();
    assert!(skipped.contains("profile=known"), "{skipped}");
    assert_eq!(result["claims"][1]["verdict"], "undecided");
    for class in result["at_rest"].as_array().unwrap() {
        let time = |key: &str| class[key].as_u64().unwrap();
        let (service_ns, round_trip_ns) = (time("service_ns"), time("round_trip_ns"));
        assert!(100 < service_ns && service_ns < round_trip_ns, "{class}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("SKIPPED not live") && page.contains("c-FCFS"));
}

#[test]
fn text_and_markdown_tell_the_same_claims() {
    let folder = tempfile::tempdir().unwrap();
    let (file, server) = (written(&folder, "own.toml", OWN), service(&folder));
    for format in ["table", "markdown"] {
        let args = [
            "reproduce",
            &file,
            "--server",
            &server,
            "--fast",
            "--format",
            format,
        ];
        let output = measured(&args);
        let told = String::from_utf8_lossy(&output.stdout);
        for words in [
            "Concord carries more",
            "SKIPPED not live",
            "--seed 1",
            "--fast",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_told_with_the_remedy() {
    let output = headway(&[
        "reproduce",
        "concord-fig9-live",
        "--server",
        "/nowhere/server",
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("/nowhere/server") && stderr.contains("make leveldb"),
        "{stderr}"
    );
}

#[test]
fn what_is_measured_live_is_measured_alone_and_listed_apart() {
    let output = headway(&["reproduce", "concord-fig9", "concord-fig9-live"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("'concord-fig9-live' is measured live"),
        "{stderr}"
    );
    let output = headway(&["reproduce", "concord-fig9", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let listed = headway(&["reproduce", "--list"]).stdout;
    let listed = String::from_utf8_lossy(&listed);
    let (simulated, live) = listed.split_once("no part of all").expect("two lists");
    assert!(
        !simulated.contains("-live") && live.contains("concord-fig9-live"),
        "{listed}"
    );
}

/// A short measurement of LevelDB itself, if `make leveldb` has built it.
#[test]
fn leveldb_is_measured_where_it_is_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let server = root.join("target/leveldb/leveldb-server");
    if !server.exists() || !server.with_file_name("leveldb-server-plain").exists() {
        eprintln!("SKIPPED: there is no {} (make leveldb)", server.display());
        return;
    }
    let text = std::fs::read_to_string(root.join("experiments/live/concord-fig9-live.toml"));
    let short = text.unwrap().replace("run_ms = 900", "run_ms = 100");
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder, "short.toml", &short);
    let server = server.to_str().unwrap();
    let args = [
        "reproduce",
        &file,
        "--server",
        server,
        "--fast",
        "--format",
        "json",
    ];
    let answer = json(&args);
    let systems = answer["results"][0]["systems"].as_array().unwrap();
    assert!(
        systems.iter().all(|system| system["skipped"].is_null()),
        "{systems:?}"
    );
    check_runs(&answer["results"][0], 45);
}

/// The runs without a repetition. Their number must be `count`, and each one's requests must add up.
fn check_runs(result: &Value, count: usize) -> Vec<&Value> {
    let runs = result["runs"].as_array().unwrap();
    for run in runs {
        let of = |key: &str| run[key].as_u64().unwrap();
        assert_eq!(of("answered") + of("lost"), of("sent"), "{run}");
        assert!(of("sent") > 0 && of("failed") == 0, "{run}");
        let slowdown = &run["server"]["overall"]["slowdown"];
        assert!(
            slowdown["p50"].as_f64().is_none_or(|value| value >= 0.99),
            "{run}"
        );
    }
    let last: Vec<&Value> = runs.iter().filter(|run| run["repeated"] == false).collect();
    assert_eq!(last.len(), count);
    last
}

fn written(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().into()
}

/// Writes the programs with and without probes, which are the same here.
fn service(folder: &TempDir) -> String {
    let text = SERVER.replace("HEADWAY", env!("CARGO_BIN_EXE_headway"));
    for name in ["server", "server-plain"] {
        let path = PathBuf::from(written(folder, name, &text));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.path().join("server").to_str().unwrap().into()
}
