//! Sweeps in shards, and sweeps that run until their intervals are narrow enough.

use super::{headway, json};
use std::path::Path;

const SWEEP: [&str; 11] = [
    "sweep",
    "--policy",
    "c-fcfs",
    "--policy",
    "darc,window=2000",
    "--loads",
    "0.3,0.6,0.85",
    "--requests",
    "20k",
    "--workload",
    "tpcc",
];

fn sweep(more: &[&str]) -> Vec<u8> {
    let done = headway(&[&SWEEP[..], more].concat());
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{more:?}: {said}");
    done.stdout
}

/// Writes all shards, each with a different number of threads.
fn cut(dir: &Path, of: usize, more: &[&str]) -> Vec<String> {
    (1..=of)
        .map(|index: usize| {
            let path = dir.join(format!("{index}.json")).display().to_string();
            let (shard, threads) = (format!("{index}/{of}"), index.to_string());
            let piece = ["--shard", &shard, "--threads", &threads, "-o", &path];
            sweep(&[&["--format", "json"], &piece[..], more].concat());
            path
        })
        .collect()
}

fn merge(pieces: &[String], more: &[&str]) -> std::process::Output {
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    headway(&[&["sweep", "--merge"], &pieces[..], more].concat())
}

#[test]
fn pieces_put_together_are_the_whole_sweep_to_the_byte() {
    let adaptive = ["--until-ci", "15%", "--replications", "12"];
    for more in [&["--replications", "2"][..], &adaptive] {
        let dir = tempfile::tempdir().unwrap();
        let mut pieces = cut(dir.path(), 4, more);
        pieces.reverse();
        for format in ["json", "csv", "table"] {
            let whole = sweep(&[&["--format", format], more].concat());
            let merged = merge(&pieces, &["--format", format]);
            let said = String::from_utf8_lossy(&merged.stderr);
            assert!(merged.stdout == whole, "{format} {more:?}: {said}");
        }
    }
}

#[test]
fn pieces_that_do_not_make_a_sweep_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let other_dir = tempfile::tempdir().unwrap();
    let pieces = cut(dir.path(), 3, &[]);
    let other = cut(other_dir.path(), 3, &["--seed", "2"]);
    let whole = dir.path().join("whole.json").display().to_string();
    sweep(&["--format", "json", "-o", &whole]);
    let cases: [(&[String], &str); 5] = [
        (
            &[pieces[0].clone(), pieces[2].clone()],
            "piece 2/3 is missing",
        ),
        (
            &[pieces[0].clone(), other[1].clone(), pieces[2].clone()],
            "not of the same sweep",
        ),
        (
            &[pieces[0].clone(), pieces[0].clone()],
            "is the same piece as",
        ),
        (&[whole], "a whole sweep, not a piece"),
        (&["/nowhere/1.json".into()], "/nowhere/1.json"),
    ];
    for (files, complaint) in cases {
        let done = merge(files, &[]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(
            said.contains("--merge") && said.contains(complaint),
            "{said}"
        );
    }
}

#[test]
fn a_piece_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pieces = cut(dir.path(), 2, &[]);
    let text = std::fs::read_to_string(&pieces[0]).unwrap();
    let mut piece: serde_json::Value = serde_json::from_str(&text).unwrap();
    piece["runs"].as_array_mut().unwrap().pop();
    for broken in [piece.to_string(), text[..text.len() / 2].to_owned()] {
        std::fs::write(&pieces[0], broken).unwrap();
        let done = merge(&pieces, &[]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(&pieces[0]), "{said}");
    }
}

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
