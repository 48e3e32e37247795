//! `headway policies`, and the documents about policies.

use super::{headway, json};
use headway_policy::{Level, Policy};
use std::collections::HashSet;
use std::path::Path;

#[test]
fn every_policy_is_listed_with_its_level() {
    for level in Level::ALL {
        let listed = json(&["policies", "--level", level.name(), "--format", "json"]);
        let listed = listed["policies"].as_array().unwrap();
        let names: HashSet<&str> = listed
            .iter()
            .map(|policy| policy["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, HashSet::from_iter(level.names()));
        assert!(listed.iter().all(|policy| policy["level"] == level.name()));
    }
}

#[test]
fn a_policy_answers_to_its_papers_name_and_tells_its_parameters() {
    let found = json(&["policies", "persephone", "--format", "json"]);
    let darc = &found["policies"][0];
    assert_eq!(darc["name"], "darc");
    let params = darc["params"].as_array().unwrap();
    let delta = params.iter().find(|param| param["key"] == "delta").unwrap();
    assert_eq!(delta["default"], "2");
    let shown = headway(&["policies", "darc"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("delta") && shown.contains("spillway"),
        "{shown}"
    );
}

#[test]
fn every_policy_but_the_ideal_runs_live_and_its_command_is_named() {
    let listed = json(&["policies", "--format", "json"]);
    for policy in listed["policies"].as_array().unwrap() {
        assert_eq!(policy["live"], policy["name"] != "ps", "{policy}");
    }
    let table = printed(&["policies", "--level", "rack"]);
    assert!(
        table.contains("live") && !table.contains("simulated"),
        "{table}"
    );
    for (policy, command) in [("pallas", "headway rack"), ("interval", "headway host")] {
        for asks in ["serve", "bench"] {
            let refused = headway(&[asks, "--policy", policy]);
            assert_eq!(refused.status.code(), Some(2));
            let said = String::from_utf8(refused.stderr).unwrap();
            assert!(said.contains(command), "{asks}: {said}");
            assert!(!said.contains("simulator only"), "{asks}: {said}");
        }
    }
}

#[test]
fn a_misspelt_policy_is_refused_with_the_nearest() {
    let refused = headway(&["policies", "dacr"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("darc"), "{said}");
}

/// The names of a level's policies, optionally only those that a live server runs.
fn names(level: Level, live_alone: bool) -> Vec<&'static str> {
    let runs = |policy: &Policy| policy.live_command().is_some();
    let all = Policy::all().filter(|policy| policy.level() == level);
    let chosen = all.filter(|policy| !live_alone || runs(policy));
    chosen.map(|policy| policy.about().name).collect()
}

fn printed(args: &[&str]) -> String {
    String::from_utf8(headway(args).stdout).unwrap()
}

#[test]
fn help_names_the_policies_that_the_command_can_run() {
    let words = |command: &str| -> HashSet<String> {
        let help = printed(&[command, "--help"]);
        let (_, after) = help.split_once("--policy <").unwrap();
        let (own, _) = after.split_once("'headway policies NAME'").unwrap();
        let is_part = |c: char| c.is_alphanumeric() || c == '-';
        own.split(|c| !is_part(c)).map(str::to_owned).collect()
    };
    for (command, levels, live_alone) in [
        ("sim", &Level::ALL[..], false),
        ("sweep", &[Level::Server, Level::Rack], false),
        ("capacity", &[Level::Server, Level::Rack], false),
        ("serve", &[Level::Server], true),
        ("bench", &[Level::Server], true),
    ] {
        let named = words(command);
        for level in Level::ALL {
            let expected = if levels.contains(&level) {
                names(level, live_alone)
            } else {
                Vec::new()
            };
            for name in names(level, false) {
                assert_eq!(
                    named.contains(name),
                    expected.contains(&name),
                    "{command}: {name}"
                );
            }
        }
    }
}

#[test]
fn completions_offer_the_policies_of_each_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for name in Level::ALL.map(|level| names(level, false)).concat() {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let script = printed(&["completions", "fish"]);
    let offered = |command: &str| {
        let mut flags = script.split("\ncomplete -c headway ");
        let own = format!("__fish_headway_using_subcommand {command}\"");
        flags
            .find(|flag| flag.contains(&own) && flag.contains("-l policy "))
            .unwrap()
    };
    assert!(offered("sim").contains("pallas\\t"));
    assert!(offered("serve").contains("concord\\t") && !offered("serve").contains("pallas\\t"));
}

/// The documents name every policy and the key of each of its parameters.
#[test]
fn the_documents_name_every_policy_and_parameter() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = [
        "policies",
        "darc",
        "orders",
        "interrupting",
        "racks",
        "hosts",
    ];
    let text: String = pages
        .iter()
        .map(|page| std::fs::read_to_string(docs.join(format!("{page}.md"))).unwrap())
        .collect();
    let mut missing = Vec::new();
    for policy in Policy::all() {
        let about = policy.about();
        let keys = about.params.iter().map(|param| param.key);
        for word in keys.chain([about.name]) {
            if !text.contains(&format!("`{word}`")) {
                missing.push(format!("{}: `{word}`", about.name));
            }
        }
    }
    assert!(missing.is_empty(), "say in docs/: {missing:?}");
}
