//! No trait of policies or of the simulator has a method with a body: without a default, a wrapper that forgets to forward a method does not compile.

use crate::assert_tidy;
use crate::tree;

const CRATES: [&str; 2] = ["crates/policy/src/", "crates/sim/src/"];

#[test]
fn no_trait_has_default_methods() {
    let faults: Vec<String> = tree::files(&["rs"])
        .into_iter()
        .filter(|path| CRATES.iter().any(|folder| path.starts_with(folder)))
        .flat_map(|path| {
            let text = tree::read(&path);
            let fault = |(line, name): (usize, &str)| {
                format!("{path}:{line}: a method of the trait {name} has a body; require it, or give those that have it a trait of their own")
            };
            defaults(&text).into_iter().map(fault).collect::<Vec<_>>()
        })
        .collect();
    assert_tidy(&faults);
}

/// The line of every body within a trait, and the trait's name.
fn defaults(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut within = None;
    let mut depth = 0;
    for (at, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        within = within.or_else(|| declared(code));
        let Some(name) = within else { continue };
        for mark in code.chars() {
            match mark {
                '{' if depth == 1 => {
                    found.push((at + 1, name));
                    depth = 2;
                }
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    within = within.filter(|_| depth > 0);
                }
                _ => {}
            }
        }
    }
    found
}

/// The name of the trait that a line declares.
fn declared(code: &str) -> Option<&str> {
    let words: Vec<&str> = code.split_whitespace().take(4).collect();
    let at = words.iter().position(|&word| word == "trait")?;
    let is_visibility = |word: &&str| word.starts_with("pub") || *word == "unsafe";
    let name = words
        .get(at + 1)
        .filter(|_| words[..at].iter().all(is_visibility))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn a_body_is_found_and_a_signature_is_none() {
    let required = "pub trait A: B {\n    type T;\n    fn f<T>(&self, t: T)\n    where\n        T: C;\n}\nimpl A for D {\n    fn f(&self) {}\n}\n";
    assert_eq!(defaults(required), []);
    let given = "pub(crate) trait A\nwhere\n    Self: B,\n{\n    fn f(&self);\n    fn g(&self) {\n        if self.h() {}\n    }\n    fn h(&self) {} // {\n}\nstruct C {}\n";
    assert_eq!(defaults(given), [(6, "A"), (9, "A")]);
}
