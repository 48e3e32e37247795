//! What documents tell a newcomer to do works on a fresh clone: the dependency of README.md is there, and each target that a document names is run by CI or
//! stands in CONTRIBUTING.md's list.

use crate::assert_tidy;
use crate::document::Document;
use crate::tree;
use std::collections::BTreeSet;
use toml::Table;

const LIST: &str = "CONTRIBUTING.md";

#[test]
fn a_program_can_depend_on_headway_as_the_readme_says() {
    let readme = Document::read("README.md");
    let mut lines = readme.blocks.iter().filter(|it| it.item.info == "toml");
    let told = lines.next().expect("README.md has the dependency");
    let told: Table = told.item.text.parse().expect("it is TOML");
    let path = told["dependencies"]["headway"]["path"].as_str();
    let path = path.expect("a folder").strip_prefix("../headway/");
    let path = path.expect("the checkout lies beside the program");
    let manifest: Table = tree::read(&format!("{path}/Cargo.toml")).parse().unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("headway"));
    let added = format!("cargo add headway --path ../headway/{path}");
    assert!(readme.codes.iter().any(|it| it.item == added), "{added}");
}

#[test]
fn each_command_is_run_on_a_fresh_clone() {
    let run: BTreeSet<String> = listed().union(&run_by_ci()).cloned().collect();
    let mut faults = Vec::new();
    for document in Document::all() {
        if document.path.starts_with("docs/lab/") || document.path == "CHANGELOG.md" {
            continue;
        }
        let codes = document.codes.iter();
        let mut commands: Vec<(usize, String)> =
            codes.map(|it| (it.line, it.item.clone())).collect();
        for block in document.blocks.iter().filter(|it| it.item.info == "sh") {
            let lines = block.item.text.lines().enumerate();
            commands.extend(lines.map(|(at, line)| (block.line + 1 + at, line.to_owned())));
        }
        for (line, command) in commands {
            for target in targets(&command).filter(|it| !run.contains(*it)) {
                faults.push(document.fault(
                    line,
                    format!("neither CI nor {LIST} runs `make {target}` on a fresh clone; put it into the list there"),
                ));
            }
        }
    }
    assert_tidy(&faults);
}

#[test]
fn the_list_names_targets_that_there_are() {
    let makefiles = tree::read("Makefile") + &tree::read("apps/leveldb/leveldb.mk");
    let unknown = listed().into_iter().filter(|target| {
        let rule = |line: &str| {
            let targets = line.split_once(':').map(|(targets, _)| targets);
            targets.is_some_and(|it| it.split(' ').any(|it| it == target))
        };
        !makefiles.lines().any(rule)
    });
    let faults: Vec<String> = unknown
        .map(|target| format!("{LIST}:1: there is no target `{target}`; leave it out"))
        .collect();
    assert_tidy(&faults);
}

/// The targets in the list of CONTRIBUTING.md.
fn listed() -> BTreeSet<String> {
    let document = Document::read(LIST);
    let blocks = document.blocks.iter();
    let list = blocks.filter(|it| it.item.text.contains("make bench-peers"));
    let lines: Vec<&str> = list.flat_map(|it| it.item.text.lines()).collect();
    assert!(lines.len() > 5, "{LIST} has a list of commands");
    lines
        .into_iter()
        .flat_map(targets)
        .map(str::to_owned)
        .collect()
}

/// The parts of `make test`, and itself.
fn run_by_ci() -> BTreeSet<String> {
    let makefile = tree::read("Makefile");
    let parts = makefile
        .lines()
        .find_map(|line| line.split_once(".ci/parts "));
    let (_, parts) = parts.expect("`make test` has its parts");
    let parts = parts.split(&[' ', '+', ','][..]).chain(["test"]);
    parts.map(str::to_owned).collect()
}

/// The targets that a line of shell makes.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let line = line.split(" #").next().unwrap_or_default();
    let commands = line.split("&&").map(str::trim);
    let makes = commands.filter_map(|command| command.strip_prefix("make "));
    makes.flat_map(|makes| {
        let words = makes.split(' ').filter(|word| !word.is_empty());
        words.filter(|word| !word.contains('='))
    })
}

#[test]
fn targets_are_read() {
    let line = "make leveldb && headway serve # make it";
    assert_eq!(targets(line).collect::<Vec<_>>(), ["leveldb"]);
    let line = "make install-capi install-pass PREFIX=/usr/local";
    let found: Vec<_> = targets(line).collect();
    assert_eq!(found, ["install-capi", "install-pass"]);
}
