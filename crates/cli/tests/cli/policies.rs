//! `headway policies`, and the documents beside it.

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
fn a_misspelt_policy_is_refused_with_the_nearest() {
    let refused = headway(&["policies", "dacr"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("darc"), "{said}");
}

/// What a policy says of itself a reader finds in the documents: its name, and the key of each parameter.
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
