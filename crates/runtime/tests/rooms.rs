//! The rooms of the crate: the table in `lib.rs` lists every module of the root, and code imports from its own room and from rooms above it.

use std::path::{Path, PathBuf};

const ROOT: &str = include_str!("../src/lib.rs");

/// The rooms by row of the table, from the top.
fn rows() -> Vec<Vec<&'static str>> {
    let rows = ROOT.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.map(|row| {
        let cell = row.split('|').next().unwrap_or_default();
        cell.split('`').step_by(2).map(str::trim).collect()
    })
    .map(|rooms: Vec<&str>| rooms.into_iter().filter(|room| !room.is_empty()).collect())
    .collect()
}

#[test]
fn the_table_of_rooms_lists_the_modules_of_the_root() {
    let mut listed = rows().concat();
    listed.sort_unstable();
    let modules = ROOT.lines().filter_map(|line| line.strip_prefix("mod "));
    let modules: Vec<&str> = modules.map(|module| module.trim_end_matches(';')).collect();
    assert_eq!(listed, modules);
}

#[test]
fn imports_point_up_in_the_table_of_rooms() {
    let rows = rows();
    let row = |room: &str| rows.iter().position(|rooms| rooms.contains(&room));
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut faults = Vec::new();
    for file in files(folder) {
        let place = file.strip_prefix(folder).unwrap().to_string_lossy();
        let own = place.split(['/', '.']).next().unwrap_or_default();
        if own == "lib" {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for name in imported(&text) {
            let is_above = row(name).is_some() && row(name) < row(own);
            if name != own && !is_above {
                faults.push(format!(
                    "{place} imports crate::{name}, which is no room above `{own}`"
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The names after `crate::` in a file's code, without comments and tests.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    let tests = text.find("\nmod tests {").unwrap_or(text.len());
    let code = text[..tests].lines().map(str::trim_start);
    let code = code.filter(|line| !line.starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|path| {
            path.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default()
        })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let within = folders.iter().flat_map(|folder| self::files(folder));
    files.into_iter().chain(within).collect()
}

#[test]
fn imports_are_read_outside_of_comments_and_tests() {
    let text = "//! [x](crate::a)\nuse crate::b::C;\nfn f(_: crate::d::E) {}\n#[cfg(test)]\nmod tests {\n use crate::f; }";
    assert_eq!(imported(text).collect::<Vec<_>>(), ["b", "d"]);
}
