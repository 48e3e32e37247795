//! The lock files beside the workspace have what the workspace's crates need: `--locked` refuses a stale one on a fresh clone only.

use crate::assert_tidy;
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

#[test]
fn lock_files_are_those_of_the_manifests() {
    let manifests = manifests();
    let locks = tree::files(&["lock"]);
    assert!(
        locks.len() > 2,
        "{locks:?}: the workspace and what lies beside it"
    );
    let mut faults = Vec::new();
    for path in locks {
        let folder = path.trim_end_matches("Cargo.lock");
        let lock: Table = tree::read(&path).parse().expect("a lock file");
        for what in stale(&lock, &manifests) {
            faults.push(format!(
                "{path}:1: {what}; run `cargo update --workspace --manifest-path {folder}Cargo.toml`"
            ));
        }
    }
    assert_tidy(&faults);
}

/// The names that a crate's manifest asks for, by the crate's name: those that are built always.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let mut manifests = BTreeMap::new();
    for path in tree::files(&["toml"]) {
        if !path.ends_with("Cargo.toml") {
            continue;
        }
        let manifest: Table = tree::read(&path).parse().expect("a manifest");
        let name = manifest
            .get("package")
            .and_then(|it| it.get("name")?.as_str());
        if let Some(name) = name {
            manifests.insert(name.to_owned(), needed(&manifest));
        }
    }
    manifests
}

fn needed(manifest: &Table) -> BTreeSet<String> {
    let tables = ["dependencies", "build-dependencies"];
    let tables = tables
        .iter()
        .filter_map(|kind| manifest.get(*kind)?.as_table());
    let all = tables.flatten().filter(|(_, value)| {
        let optional = value.get("optional").and_then(Value::as_bool);
        !optional.unwrap_or(false)
    });
    let named = all.map(|(key, value)| {
        let package = value.get("package").and_then(Value::as_str);
        package.unwrap_or(key).to_owned()
    });
    named.collect()
}

/// What a lock file lacks of the crates that it has by path.
fn stale(lock: &Table, manifests: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let packages = lock.get("package").and_then(Value::as_array);
    let local = packages
        .into_iter()
        .flatten()
        .filter(|it| it.get("source").is_none());
    let mut faults = Vec::new();
    for package in local {
        let name = package.get("name").and_then(Value::as_str).expect("a name");
        let Some(needed) = manifests.get(name) else {
            faults.push(format!("no crate is called `{name}`"));
            continue;
        };
        let locked = package.get("dependencies").and_then(Value::as_array);
        let locked: BTreeSet<&str> = locked
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str()?.split(' ').next())
            .collect();
        let missing = needed.iter().filter(|it| !locked.contains(it.as_str()));
        faults.extend(missing.map(|it| format!("`{name}` needs `{it}`, which is not locked")));
    }
    faults
}

#[test]
fn a_stale_lock_is_found() {
    let lock: Table = "[[package]]\nname = \"a\"\ndependencies = [\"b\", \"c 1.0.0\"]\n"
        .parse()
        .unwrap();
    let needs = |all: &[&str]| {
        let needed = all.iter().map(|&it| it.to_owned()).collect();
        BTreeMap::from([("a".to_owned(), needed)])
    };
    assert!(stale(&lock, &needs(&["b", "c"])).is_empty());
    assert_eq!(stale(&lock, &needs(&["b", "d"])).len(), 1);
    assert_eq!(stale(&lock, &BTreeMap::new()).len(), 1);
}
