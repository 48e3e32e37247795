//! ARCHITECTURE.md's table of rooms has every crate, what it imports directly, and imports before importers.

use crate::assert_tidy;
use crate::document::{At, Cell, Document};
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

const TABLE: &str = "ARCHITECTURE.md";

/// A crate of the workspace.
struct Crate {
    /// Its folder, from the root.
    folder: String,
    /// The folders of the crates of the workspace that it depends on.
    imports: BTreeSet<String>,
    /// Every normal dependency.
    dependencies: usize,
}

#[test]
fn the_table_of_rooms_is_that_of_the_manifests() {
    let document = Document::read(TABLE);
    let crates = crates();
    let mut missing: BTreeSet<&str> = crates.iter().map(|room| room.folder.as_str()).collect();
    let mut faults = Vec::new();
    let mut above: BTreeMap<String, String> = BTreeMap::new();
    for row in &document.table("room")[1..] {
        let Some((name, room)) = room(row, &crates) else {
            continue;
        };
        missing.remove(room.folder.as_str());
        let mut names = BTreeSet::new();
        for import in &room.imports {
            match above.get(import) {
                Some(name) => drop(names.insert(name.as_str())),
                None => faults.push(document.fault(
                    row.line,
                    format!("`{name}` imports {import}, which stands below it; arrows only go down: move the row, or drop the import"),
                )),
            }
        }
        let stated = imports(row);
        if stated != names {
            let names: Vec<_> = names.into_iter().collect();
            let what = format!(
                "by its Cargo.toml `{name}` imports {}; say that in the row",
                names.join(", ")
            );
            faults.push(document.fault(row.line, what));
        }
        above.insert(room.folder.clone(), name.to_string());
    }
    for folder in missing {
        faults.push(format!(
            "{folder}/Cargo.toml:1: the crate has no row in {TABLE}; add one"
        ));
    }
    assert_tidy(&faults);
}

#[test]
fn the_policies_import_nothing() {
    let crates = crates();
    let policy = crates.iter().find(|room| room.folder == "crates/policy");
    let imports = policy.expect("there is a crate of policies").dependencies;
    assert_eq!(
        imports, 0,
        "crates/policy/Cargo.toml: take the dependencies out"
    );
}

/// The room of a row and its name, unless it is no crate.
fn room<'a>(row: &'a At<Vec<Cell>>, crates: &'a [Crate]) -> Option<(&'a str, &'a Crate)> {
    let cell = row.item.first()?;
    let link = cell.links.first()?;
    let room = crates.iter().find(|room| {
        link.strip_prefix(&room.folder)
            .is_some_and(|rest| rest.starts_with('/'))
    })?;
    Some((&cell.text, room))
}

/// What a row says its room imports.
fn imports(row: &At<Vec<Cell>>) -> BTreeSet<&str> {
    let cell = row.item.last().map_or("", |cell| cell.text.as_str());
    let names = cell.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty() && *name != "–")
        .collect()
}

/// The crates of the workspace.
fn crates() -> Vec<Crate> {
    let workspace = manifest("Cargo.toml");
    let shared = table(&workspace["workspace"], "dependencies");
    let folder_of = |name: &String| Some(shared.get(name)?.get("path")?.as_str()?.to_string());
    let folders = tree::files(&["toml"]).into_iter().filter_map(|path| {
        let folder = path.strip_suffix("/Cargo.toml")?;
        let is_member = folder.starts_with("crates/") || folder.starts_with("apps/");
        is_member.then(|| folder.to_string())
    });
    folders
        .map(|folder| {
            let manifest = Value::Table(manifest(&format!("{folder}/Cargo.toml")));
            let dependencies = table(&manifest, "dependencies");
            Crate {
                folder,
                imports: dependencies.keys().filter_map(folder_of).collect(),
                dependencies: dependencies.len(),
            }
        })
        .collect()
}

fn manifest(path: &str) -> Table {
    let text = tree::read(path);
    text.parse()
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn table(value: &Value, key: &str) -> Table {
    value
        .get(key)
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default()
}
