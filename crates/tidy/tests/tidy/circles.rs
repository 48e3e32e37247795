//! No two files of a crate need each other, directly or indirectly. Items that both need are in a file below both.
//!
//! A file needs another if its code names an item of the other. Declaring a module, or exporting items of a module below, does not count.

use crate::assert_tidy;
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};

/// The keywords before the name of an item.
const DEFINERS: [&str; 8] = [
    "struct", "enum", "trait", "type", "fn", "const", "static", "union",
];

/// A path of names, as in `crate::park::Idle`.
type Path<'a> = Vec<&'a str>;

/// The names in a file of a crate.
#[derive(Default)]
struct File<'a> {
    place: String,
    parent: Option<usize>,
    /// The modules that the file declares and that have separate files.
    children: BTreeMap<&'a str, usize>,
    /// The items that the file defines.
    items: BTreeSet<&'a str>,
    imports: Vec<Import<'a>>,
    /// Paths and single names in the file's code.
    named: Vec<Named<'a>>,
}

struct Import<'a> {
    name: &'a str,
    of: Named<'a>,
}

struct Named<'a> {
    path: Path<'a>,
    /// The number of modules within the file around the name.
    depth: usize,
}

/// The target of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    Item(usize),
}

#[test]
fn no_files_need_each_other() {
    let roots = tree::files(&["rs"]).into_iter().filter(|path| {
        let is_product = path.starts_with("crates/") || path.starts_with("apps/");
        is_product && (path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
    });
    let faults: Vec<String> = roots
        .flat_map(|root| {
            let sources = sources(&root);
            faults(&sources)
        })
        .collect();
    assert_tidy(&faults);
}

/// The code of a crate's files by path, without comments, strings and the module of tests.
fn sources(root: &str) -> BTreeMap<String, String> {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_root = |path: &str| path.ends_with("/src/main.rs") || path.ends_with("/src/lib.rs");
    let files = tree::files(&["rs"])
        .into_iter()
        .filter(|path: &String| path.starts_with(&format!("{folder}/")));
    files
        .filter(|path| path == root || !is_root(path))
        .map(|path| {
            let code = code(&tree::read(&path));
            (path, code)
        })
        .collect()
}

fn code(text: &str) -> String {
    let product = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let mut code = String::new();
    for line in product.lines() {
        let mut in_text = false;
        let mut last = ' ';
        for character in line.chars() {
            match character {
                '"' if last != '\\' && last != '\'' => in_text = !in_text,
                '/' if last == '/' && !in_text => break,
                _ if !in_text => code.push(character),
                _ => {}
            }
            last = character;
        }
        code.push('\n');
    }
    code
}

/// Splits code into names, `::` and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let len = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(len);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The files of a crate, the root first.
fn files(sources: &BTreeMap<String, String>) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    let mut open: Vec<(Option<(usize, &str)>, String)> = Vec::new();
    open.extend(
        sources
            .keys()
            .find(|path: &&String| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
            .map(|root| (None, root.clone())),
    );
    while let Some((declared, place)) = open.pop() {
        let at = files.len();
        let mut file = File {
            parent: declared.map(|(parent, _)| parent),
            ..File::default()
        };
        if let Some((parent, name)) = declared {
            files[parent].children.insert(name, at);
        }
        let (folder, name) = place.rsplit_once('/').unwrap_or(("", &place));
        let base = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            name => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        for module in file.read(&tokens(&sources[&place])) {
            let beside = [
                format!("{base}/{module}.rs"),
                format!("{base}/{module}/mod.rs"),
            ];
            let found = beside.into_iter().find(|path| sources.contains_key(path));
            open.extend(found.map(|path| (Some((at, module)), path)));
        }
        file.place = place;
        files.push(file);
    }
    files
}

impl<'a> File<'a> {
    /// Reads the file's names, and returns the modules that it declares.
    fn read(&mut self, tokens: &[&'a str]) -> Vec<&'a str> {
        let mut declared = Vec::new();
        let mut braces = 0;
        let mut inline = Vec::new();
        let mut at = 0;
        while let Some(&token) = tokens.get(at) {
            let next = tokens.get(at + 1).copied().unwrap_or_default();
            match token {
                "{" => braces += 1,
                "}" => {
                    braces -= 1;
                    inline.pop_if(|opened| *opened == braces);
                }
                "use" if next != "<" => {
                    let end = tokens[at..].iter().position(|&token| token == ";");
                    let end = end.map_or(tokens.len(), |len| at + len);
                    self.import(&tokens[at + 1..end], &[], inline.len());
                    at = end;
                }
                "mod" if tokens.get(at + 2) == Some(&";") => declared.push(next),
                "mod" => {
                    self.items.insert(next);
                    inline.push(braces);
                }
                _ if DEFINERS.contains(&token) => {
                    self.items.insert(next);
                }
                _ if is_name(token) => {
                    let mut path = vec![token];
                    while tokens.get(at + 1) == Some(&"::")
                        && is_name(tokens.get(at + 2).unwrap_or(&""))
                    {
                        path.push(tokens[at + 2]);
                        at += 2;
                    }
                    let depth = inline.len();
                    self.named.push(Named { path, depth });
                }
                _ => {}
            }
            at += 1;
        }
        declared
    }

    /// Reads the tree of an import: `a::{b, c as d}`.
    fn import(&mut self, tree: &[&'a str], before: &[&'a str], depth: usize) {
        let mut path = before.to_vec();
        for (at, &token) in tree.iter().enumerate() {
            match token {
                "::" => {}
                "{" => {
                    let mut nested = 0;
                    let branches = tree[at + 1..tree.len() - 1].split(|&token| {
                        nested += i32::from(token == "{") - i32::from(token == "}");
                        token == "," && nested == 0
                    });
                    for branch in branches.filter(|branch| !branch.is_empty()) {
                        self.import(branch, &path, depth);
                    }
                    return;
                }
                "as" => break,
                "self" if !path.is_empty() && path.last() != Some(&"super") => {}
                name => path.push(name),
            }
        }
        let Some(&last) = path.last() else { return };
        let name = match tree {
            [.., "as", name] => name,
            _ => last,
        };
        let of = Named { path, depth };
        self.imports.push(Import { name, of });
    }

    /// Whether the file's code outside imports and exports has the name.
    fn uses(&self, name: &str) -> bool {
        self.named.iter().any(|named| named.path.contains(&name))
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The target of a path in the file at `from`; none outside the crate.
fn resolve(files: &[File<'_>], from: usize, named: &Named<'_>, steps: usize) -> Option<Target> {
    let (mut at, mut depth) = (from, named.depth);
    let mut path = named.path.as_slice();
    while let [first, rest @ ..] = path {
        match *first {
            "crate" => at = 0,
            "self" => {}
            "super" if depth > 0 => depth -= 1,
            "super" => at = files[at].parent?,
            _ => break,
        }
        path = rest;
    }
    while let [first, rest @ ..] = path {
        let Some(&child) = files[at].children.get(first) else {
            break;
        };
        at = child;
        path = rest;
    }
    let [first, rest @ ..] = path else {
        return Some(Target::Module(at));
    };
    if files[at].items.contains(first) {
        return Some(Target::Item(at));
    }
    // Limits the steps, since exports of an item from another crate can form a circle.
    let steps = steps.checked_sub(1)?;
    let mut imports = files[at]
        .imports
        .iter()
        .filter(|import| import.of.depth == 0);
    imports.find_map(|import| {
        let (kept, goes_on) = match import.name {
            "*" => (import.of.path.split_last()?.1, path),
            name if name == *first => (import.of.path.as_slice(), rest),
            _ => return None,
        };
        let path = [kept, goes_on].concat();
        resolve(files, at, &Named { path, depth: 0 }, steps)
    })
}

/// The files that a file needs.
fn needs(files: &[File<'_>], from: usize) -> BTreeSet<usize> {
    const EXPORTS_IN_A_ROW: usize = 8;
    let file = &files[from];
    let leads = |named: &Named<'_>| resolve(files, from, named, EXPORTS_IN_A_ROW);
    let imported = file
        .imports
        .iter()
        .filter_map(|import| match leads(&import.of)? {
            Target::Item(at) if !is_below(files, from, at) || file.uses(import.name) => Some(at),
            _ => None,
        });
    let within = file.named.iter().filter(|named| named.path.len() > 1);
    let within = within.filter_map(|named| match leads(named)? {
        Target::Item(at) => Some(at),
        Target::Module(_) => None,
    });
    imported.chain(within).filter(|&at| at != from).collect()
}

/// Whether a file is a module of another's, or a module of such a module.
fn is_below(files: &[File<'_>], above: usize, file: usize) -> bool {
    let mut next = files[file].parent;
    while let Some(at) = next {
        if at == above {
            return true;
        }
        next = files[at].parent;
    }
    false
}

/// Every step that is part of a circle.
fn faults(sources: &BTreeMap<String, String>) -> Vec<String> {
    let files = files(sources);
    let needs: Vec<BTreeSet<usize>> = (0..files.len()).map(|at| needs(&files, at)).collect();
    let leads_to = |from: usize, to: usize| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                open.extend(&needs[at]);
            }
        }
        seen.contains(&to)
    };
    let steps = needs.iter().enumerate();
    let steps = steps.flat_map(|(from, to)| to.iter().map(move |&to| (from, to)));
    steps
        .filter(|&(from, to)| leads_to(to, from))
        .map(|(from, to)| {
            let (from, to) = (&files[from].place, &files[to].place);
            format!("{from}:1: needs {to}, which needs it in turn, directly or around; move what both need into a file below both")
        })
        .collect()
}

fn crate_of(files: &[(&str, &str)]) -> Vec<String> {
    let place = |name: &str| format!("crates/it/src/{name}");
    let sources = files.iter().map(|(name, text)| (place(name), code(text)));
    faults(&sources.collect())
}

#[test]
fn a_circle_is_found_however_it_is_imported() {
    let by_export = [
        ("lib.rs", "mod a;\nmod b;\npub use a::A;"),
        ("a.rs", "use crate::b;\npub struct A(b::B);"),
        ("b.rs", "pub struct B;\nfn f(_: &crate::A) {}"),
    ];
    assert_eq!(crate_of(&by_export).len(), 2);
    let by_parent = [
        ("lib.rs", "mod a;\n"),
        ("a/mod.rs", "mod b;\nuse b::{B, C as D};\npub struct A(D);"),
        ("a/b.rs", "use super::A;\npub struct C(A);"),
    ];
    assert_eq!(crate_of(&by_parent).len(), 2);
}

#[test]
fn to_declare_to_export_and_to_test_is_no_need() {
    let tree = [
        (
            "lib.rs",
            "mod a;\nmod b;\npub use a::A;\npub use b::B;\npub struct L;",
        ),
        (
            "a.rs",
            "use crate::L;\n// crate::B\npub struct A(L, &'static str = \"crate::B\");",
        ),
        (
            "b.rs",
            "use crate::{A, L};\n#[cfg(test)]\nmod tests { use super::*; }",
        ),
    ];
    assert_eq!(crate_of(&tree), Vec::<String>::new());
}
