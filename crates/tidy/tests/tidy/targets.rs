//! Every file of integration tests is compiled: where a crate lists its test programs, cargo looks for no others.

use crate::assert_tidy;
use crate::tree;
use std::collections::BTreeSet;
use toml::{Table, Value};

#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let mut faults = Vec::new();
    for path in tree::files(&["toml"]) {
        let Some(folder) = path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let manifest: Table = tree::read(&path).parse().expect("a manifest");
        let lists = manifest.get("package").and_then(|it| it.get("autotests"));
        if lists != Some(&Value::Boolean(false)) {
            continue;
        }
        let programs = programs(&manifest);
        let main = tree::read(&format!("{folder}/tests/main.rs"));
        for file in tree::files(&["rs"]) {
            let name = file.strip_prefix(&format!("{folder}/tests/"));
            let name =
                name.and_then(|name| name.strip_suffix(".rs").filter(|_| !name.contains('/')));
            if name.is_some_and(|name| !is_compiled(name, &programs, &main)) {
                faults.push(format!(
                    "{file}:1: no program has these tests; add `mod {};` to {folder}/tests/main.rs",
                    name.unwrap_or_default()
                ));
            }
        }
    }
    assert_tidy(&faults);
}

/// The names of a manifest's test programs.
fn programs(manifest: &Table) -> BTreeSet<&str> {
    let tests = manifest.get("test").and_then(Value::as_array);
    let tests = tests.into_iter().flatten();
    tests
        .filter_map(|test| test.get("name")?.as_str())
        .collect()
}

fn is_compiled(name: &str, programs: &BTreeSet<&str>, main: &str) -> bool {
    let module = format!("mod {name};");
    name == "main" || programs.contains(name) || main.lines().any(|line| line == module)
}

#[test]
fn a_file_without_a_program_is_found() {
    let programs = BTreeSet::from(["tests", "no_alloc"]);
    let compiled = |name| is_compiled(name, &programs, "mod theory;\n");
    assert!(compiled("main") && compiled("no_alloc") && compiled("theory"));
    assert!(!compiled("theor") && !compiled("stable"));
}
