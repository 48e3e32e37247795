//! `headway reproduce`: its list, its errors, and commands that repeat its figures.

use super::{headway, json};
use std::path::PathBuf;

#[test]
fn the_list_names_every_file_of_the_folder() {
    let names = json(&["reproduce", "--list", "--format", "json"]);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.filter(|entry| entry.as_ref().unwrap().path().is_file());
    assert_eq!(names.as_array().unwrap().len(), files.count());
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    let output = headway(&["reproduce", "concord-fig22"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("did you mean 'concord-fig2'"), "{stderr}");
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_place() {
    let file = Scratch::new("mistaken.toml", "title = \"x\"\nclaims = 3\n");
    let output = headway(&["reproduce", file.path()]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("line 2") && stderr.contains("claims"),
        "{stderr}"
    );
}

const OWN: &str = r#"
title = "an experiment of one's own"
paper = "none"
figure = "Figure 0"
testbed = "nothing"
[server]
workload = "high-bimodal"
workers = 4
requests = "20k"
network = "10us"
[[system]]
name = "DARC"
policy = "darc,profile=known"
[[measure]]
kind = "capacity"
slo = "overall.slowdown.p99<=20"
[[claim]]
says = "it carries something"
of = "DARC: load"
at_least = 0.1
"#;

#[test]
fn the_commands_printed_repeat_the_figures() {
    let file = Scratch::new("own.toml", OWN);
    let answer = json(&["reproduce", file.path(), "--format", "json"]);
    let result = &answer["results"][0];
    assert_eq!(result["claims"][0]["verdict"], "reproduced");
    let command = result["commands"][0].as_str().unwrap().replace('\'', "");
    let words: Vec<&str> = command
        .split_whitespace()
        .skip(1)
        .chain(["--format", "json"])
        .collect();
    let repeated = json(&words);
    let ours = &result["figures"][0];
    assert_eq!(ours["what"], "load");
    assert_eq!(repeated["results"][0]["load"], ours["value"]);
}

/// A file that is deleted with the test.
struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Self {
            _folder: folder,
            path,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}
