//! Public errors print their sentence by `Debug` too: that is what `fn main() -> Result<(), Box<dyn Error>>` shows.

use crate::assert_tidy;
use crate::tree;

#[test]
fn public_errors_print_their_sentence() {
    let mut faults = Vec::new();
    for path in tree::files(&["rs"]) {
        let library = path.starts_with("crates/") || path.starts_with("apps/");
        let helps_tests = ["crates/tidy/", "crates/world/"]
            .iter()
            .any(|it| path.starts_with(it));
        if library && path.contains("/src/") && !helps_tests {
            faults.extend(faults_of(&path, &tree::read(&path)));
        }
    }
    assert_tidy(&faults);
}

/// The derived `Debug` of errors in a file.
fn faults_of(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut faults = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(derived) = line.strip_prefix("#[derive(") else {
            continue;
        };
        let derives = |name: &str| derived.split(&[' ', ',', ')'][..]).any(|it| it == name);
        let public = lines[at..].iter().find_map(|line| named(line));
        let Some(name) = public.filter(|_| derives("Debug")) else {
            continue;
        };
        let by_hand = [
            format!("impl std::error::Error for {name} "),
            format!("impl core::error::Error for {name} "),
            format!("impl Error for {name} "),
        ];
        let implements = lines
            .iter()
            .any(|line| by_hand.iter().any(|error| line.starts_with(error)));
        if derives("thiserror::Error") || derives("Error") || implements {
            faults.push(format!(
                "{path}:{}: `{name}` prints its fields where a main returns it; implement `Debug` by `headway_words::debug_is_display!({name})`",
                at + 1
            ));
        }
    }
    faults
}

/// The name of the public type that a line begins.
fn named(line: &str) -> Option<&str> {
    let name = ["pub enum ", "pub struct "]
        .iter()
        .find_map(|kind| line.strip_prefix(kind))?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
}

#[test]
fn a_derived_debug_of_an_error_is_found() {
    let derived = "#[derive(Debug, thiserror::Error)]\n#[non_exhaustive]\npub enum A {}\n";
    let by_hand = "#[derive(Clone, Debug)]\npub struct B;\nimpl core::error::Error for B {}\n";
    assert_eq!(faults_of("x.rs", &(derived.to_owned() + by_hand)).len(), 2);
    let mended = "#[derive(Clone, thiserror::Error)]\npub struct A;\n";
    let other = "#[derive(Debug)]\npub struct B;\n";
    assert!(faults_of("x.rs", &(mended.to_owned() + other)).is_empty());
}
