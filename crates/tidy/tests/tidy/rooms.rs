//! ARCHITECTURE.md's table of rooms has every crate with its direct imports, and each crate after its imports.

use crate::assert_tidy;
use crate::document::{At, Cell, Document, Table};
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

const TABLE: &str = "ARCHITECTURE.md";

/// A crate of the workspace.
struct Crate {
    /// The crate's folder, from the root.
    folder: String,
    /// The folders of its dependencies in the workspace.
    imports: BTreeSet<String>,
    /// The number of all dependencies but those of tests.
    dependencies: usize,
}

/// A crate's row of the table.
struct Room<'a> {
    line: usize,
    name: &'a str,
    imports: BTreeSet<&'a str>,
    is: &'a Crate,
}

#[test]
fn the_table_of_rooms_is_that_of_the_manifests() {
    let document = Document::read(TABLE);
    let crates = crates();
    let rooms: Vec<Room> = rows(&document)
        .filter_map(|row| room(row, &crates))
        .collect();
    let places: BTreeMap<&str, (usize, &str)> = rooms
        .iter()
        .enumerate()
        .map(|(place, room)| (room.is.folder.as_str(), (place, room.name)))
        .collect();
    let mut faults = Vec::new();
    for (place, room) in rooms.iter().enumerate() {
        let name = room.name;
        let imports = room.is.imports.iter();
        let imports = imports.filter_map(|folder| places.get(folder.as_str()));
        for (_, import) in imports.clone().filter(|(above, _)| *above > place) {
            faults.push(document.fault(
                room.line,
                format!("`{name}` imports `{import}`, which stands below it, and imports point up; move a row, or drop the import"),
            ));
        }
        let names: BTreeSet<&str> = imports.map(|(_, name)| *name).collect();
        if room.imports != names {
            let names: Vec<_> = names.into_iter().collect();
            let what = format!(
                "by its Cargo.toml `{name}` imports {}; say that in the row",
                names.join(", ")
            );
            faults.push(document.fault(room.line, what));
        }
    }
    let missing = crates
        .iter()
        .map(|is| &is.folder)
        .filter(|folder| !places.contains_key(folder.as_str()));
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

/// The rows of every table whose last column has imports.
fn rows(document: &Document) -> impl Iterator<Item = &At<Vec<Cell>>> {
    let tables = document.tables.iter().filter(|table: &&Table| {
        let head = table.first().and_then(|row| row.item.last());
        head.is_some_and(|cell| cell.text.starts_with("imports"))
    });
    tables.flat_map(|table| &table[1..])
}

/// The crate of a row; none for a row without a crate.
fn room<'a>(row: &'a At<Vec<Cell>>, crates: &'a [Crate]) -> Option<Room<'a>> {
    let (first, last) = (row.item.first()?, row.item.last()?);
    let link = first.links.first()?;
    let is_in = |folder: &str| {
        let rest = link.strip_prefix(folder);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let stated = last.text.split(',').map(str::trim);
    Some(Room {
        line: row.line,
        name: &first.text,
        imports: stated
            .filter(|name| !name.is_empty() && *name != "–")
            .collect(),
        is: crates.iter().find(|is| is_in(&is.folder))?,
    })
}

/// The crates of the workspace.
fn crates() -> Vec<Crate> {
    let workspace = manifest("Cargo.toml");
    let shared = table(&workspace["workspace"], "dependencies");
    let folders = tree::files(&["toml"]).into_iter().filter_map(|path| {
        let folder = path.strip_suffix("/Cargo.toml")?;
        let is_member = folder.starts_with("crates/") || folder.starts_with("apps/");
        is_member.then(|| folder.to_string())
    });
    folders
        .map(|folder| {
            let manifest = Value::Table(manifest(&format!("{folder}/Cargo.toml")));
            let dependencies = linked(&manifest);
            Crate {
                folder,
                imports: dependencies
                    .keys()
                    .filter_map(|name: &String| {
                        Some(shared.get(name)?.get("path")?.as_str()?.to_string())
                    })
                    .collect(),
                dependencies: dependencies.len(),
            }
        })
        .collect()
}

/// All dependencies of a crate but those of its tests: also those of its build script, and of some targets only.
fn linked(manifest: &Value) -> toml::Table {
    let targets = table(manifest, "target");
    let sections = targets.values().chain([manifest]);
    sections
        .flat_map(|section| ["dependencies", "build-dependencies"].map(|key| table(section, key)))
        .flatten()
        .collect()
}

#[test]
fn imports_of_build_scripts_and_of_targets_count() {
    let text = "[dependencies]\na = \"1\"\n[build-dependencies]\nb = \"1\"\n[dev-dependencies]\nc = \"1\"\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n";
    let manifest = Value::Table(text.parse().expect("a manifest"));
    let names: BTreeSet<String> = linked(&manifest)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["a", "b", "d"].map(String::from).into());
}

fn manifest(path: &str) -> toml::Table {
    let text = tree::read(path);
    text.parse()
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn table(value: &Value, key: &str) -> toml::Table {
    value
        .get(key)
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default()
}
