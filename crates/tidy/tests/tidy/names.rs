//! A type's name has one meaning in the whole tree.

use crate::assert_tidy;
use crate::tree;
use std::collections::BTreeMap;

/// Names with the same meaning in many files: a policy's entry in the registry, its parsed parameters, a command's arguments.
const CONVENTIONS: [Convention; 3] = [
    Convention {
        name: "Entry",
        folder: "crates/policy/src/server/systems/",
    },
    Convention {
        name: "Settings",
        folder: "crates/policy/src/server/systems/",
    },
    Convention {
        name: "Args",
        folder: "crates/cli/src/commands/",
    },
];

/// Names of one thing with two definitions: the models of `loom` stand in for the modelled types, and the command's `File` is an
/// alias of the façade's.
const SAME_THING: [&str; 4] = ["NoPreempt", "SpinLock", "Suspending", "File"];

/// A name, and the only folder in which several files may define it.
struct Convention {
    name: &'static str,
    folder: &'static str,
}

#[test]
fn no_two_files_define_a_type_of_one_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in tree::files(&["rs"]) {
        let is_product = path.starts_with("crates/") && path.contains("/src/");
        if !is_product {
            continue;
        }
        for definition in definitions(&tree::read(&path)) {
            if !is_convention(&definition.name, &path) {
                let place = format!("{path}:{}", definition.line);
                places.entry(definition.name).or_default().push(place);
            }
        }
    }
    places.retain(|name, _| !SAME_THING.contains(&name.as_str()));
    let faults: Vec<String> = places.iter().filter_map(fault).collect();
    assert_tidy(&faults);
}

fn is_convention(name: &str, path: &str) -> bool {
    let mut conventions = CONVENTIONS.iter();
    conventions.any(|convention| convention.name == name && path.starts_with(convention.folder))
}

/// The fault of a name that several files define.
fn fault((name, places): (&String, &Vec<String>)) -> Option<String> {
    let file = |place: &String| place.rsplit_once(':').map(|(file, _)| file.to_string());
    let (first, others) = places.split_first()?;
    let other = others.iter().find(|&other| file(other) != file(first))?;
    Some(format!(
        "{first}: `{name}` is defined at {other} as well; give each the term that says what it is"
    ))
}

struct Definition {
    name: String,
    line: usize,
}

/// The types that a file defines, and its aliases; an indented alias belongs to a trait.
fn definitions(text: &str) -> Vec<Definition> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(at, line)| {
            let code = visible(line.trim_start());
            let (kind, rest) = code.split_once(' ')?;
            let is_alias = kind == "type" && !line.starts_with(' ');
            if !is_alias && !["struct", "enum", "trait", "union"].contains(&kind) {
                return None;
            }
            let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
            Some(Definition {
                name: name.to_string(),
                line: at + 1,
            })
        })
        .collect()
}

/// The code after `pub`, `pub(crate)` and the like.
fn visible(code: &str) -> &str {
    let Some(rest) = code.strip_prefix("pub") else {
        return code;
    };
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(scope, |(_, rest)| rest),
        None => rest,
    };
    rest.trim_start()
}

#[test]
fn definitions_are_found_however_visible() {
    let text = "pub(in crate::a) struct A<T>(T);\n    enum B {}\npub trait C: D {\n    type E;\n}\ntype F = A;\n// struct G\n";
    let found: Vec<(String, usize)> = definitions(text)
        .into_iter()
        .map(|definition| (definition.name, definition.line))
        .collect();
    let named = |name: &str, line: usize| (name.to_string(), line);
    let expected = [named("A", 1), named("B", 2), named("C", 3), named("F", 6)];
    assert_eq!(found, expected);
}

#[test]
fn two_places_in_one_file_are_no_fault() {
    let name = String::from("A");
    let places = |places: &[&str]| places.iter().map(|place| place.to_string()).collect();
    assert_eq!(fault((&name, &places(&["a.rs:1", "a.rs:9"]))), None);
    let two = fault((&name, &places(&["a.rs:1", "b.rs:2"])));
    assert!(two.is_some_and(|fault| fault.starts_with("a.rs:1: `A` is defined at b.rs:2")));
}
