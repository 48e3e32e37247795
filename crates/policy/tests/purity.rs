//! The crate depends on nothing and has no access to time, threads, files or locks: what is not
//! linked cannot be asked.

const MANIFEST: &str = include_str!("../Cargo.toml");
const ROOT: &str = include_str!("../src/lib.rs");

#[test]
fn there_are_no_dependencies() {
    let mut section = "";
    for line in MANIFEST
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") && section != "[dev-dependencies]" {
            panic!("{section} has `{line}`: policy depends on nothing");
        }
    }
}

#[test]
fn the_standard_library_is_not_linked() {
    assert!(ROOT.contains("#![no_std]"));
    assert!(ROOT.contains("#![forbid(unsafe_code)]"));
    for source in sources(std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src"
    ))) {
        let text = std::fs::read_to_string(&source).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for forbidden in ["extern crate std", "std::", "unsafe {"] {
            assert!(
                !product.contains(forbidden),
                "{} uses `{forbidden}`",
                source.display()
            );
        }
    }
}

fn sources(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files
        .into_iter()
        .chain(folders.iter().flat_map(|folder| sources(folder)))
        .collect()
}

/// The modules that decide, one a level.
const ROOMS: &[&str] = &["server", "rack", "host"];

/// The words that decisions about servers, racks and hosts have in common: `crate::…` of these names.
const VOCABULARY: &[&str] = &["spec", "BitSet", "Rng", "ClassHint", "ClassId"];

/// One crate, three rooms that do not see each other: only the registry opens all doors, and the root exports from them.
#[test]
fn servers_racks_and_hosts_do_not_see_each_other() {
    for (place, code) in products() {
        let own = ROOMS
            .iter()
            .find(|room| place.starts_with(&format!("{room}/")));
        for name in imported(&code) {
            let allowed = match own {
                Some(room) => name == **room || VOCABULARY.contains(&name.as_str()),
                None => place == "registry.rs" || VOCABULARY.contains(&name.as_str()),
            };
            assert!(allowed, "{place} uses crate::{name}");
        }
    }
}

/// The modules of a server's room by layer: a module imports from its own layer and from those above it in this list.
const LAYERS: &[&[&str]] = &[
    &["job", "shape", "plan", "preemption_costs"],
    &["role"],
    &["reservation", "stability", "lengths", "sayings"],
    &[
        "disciplines",
        "placements",
        "controls",
        "locals",
        "monitors",
    ],
    &["bound", "central", "working"],
    &["systems", "fluid"],
    &["change", "queue_lists"],
    &["begun_limit"],
    &["admission_control"],
];

/// The contract knows no part, a part no dispatcher, a dispatcher no system.
#[test]
fn imports_of_a_server_point_up_in_the_list_of_layers() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let exported = |item: &str| {
        let text = include_str!("../src/server/mod.rs");
        let mut lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("pub use "));
        lines.find_map(|line| {
            let (module, items) = line.split_once("::")?;
            items
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|exported| exported == item)
                .then_some(module)
        })
    };
    for (place, code) in products() {
        let Some(inside) = place.strip_prefix("server/") else {
            continue;
        };
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        if module == "mod" {
            continue;
        }
        let own = layer(module);
        assert!(
            own.is_some(),
            "{place} is in no layer; name its module in one"
        );
        for name in imported_from("crate::server::", &code) {
            let above = layer(&name).or_else(|| layer(exported(&name)?));
            let is_above = above.is_some() && above <= own;
            assert!(
                is_above,
                "{place} uses crate::server::{name}, which stands below it"
            );
        }
    }
}

/// Every file of the crate, from its `src`, and its code without comments and tests.
fn products() -> impl Iterator<Item = (String, String)> {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    sources(root).into_iter().map(move |source| {
        let place = source.strip_prefix(root).unwrap().to_string_lossy();
        let text = std::fs::read_to_string(&source).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = product
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        (place.into_owned(), code.collect::<Vec<_>>().join("\n"))
    })
}

/// The first names after `crate::` in code, groups in braces taken apart.
fn imported(code: &str) -> Vec<String> {
    imported_from("crate::", code)
}

/// The first names after the prefix.
fn imported_from(prefix: &str, code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for path in code.split(prefix).skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            names.push(word(path));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for character in group.chars() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(word(&std::mem::take(&mut item))),
                character => item.push(character),
            }
        }
        names.push(word(&item));
    }
    names.retain(|name| !name.is_empty());
    names
}

fn word(text: &str) -> String {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text[..end.unwrap_or(text.len())].to_owned()
}

#[test]
fn imports_are_read_in_groups_and_in_paths() {
    let text = "use crate::{BitSet, host::{A, B}, Rng};\nlet x = crate::systems::find();";
    assert_eq!(imported(text), ["BitSet", "host", "Rng", "systems"]);
}
