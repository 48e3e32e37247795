//! Every relative link of a document has a target.

use crate::assert_tidy;
use crate::document::Document;
use crate::tree;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

#[test]
fn every_link_resolves() {
    let documents = Document::all();
    let by_path: HashMap<&str, &Document> = documents
        .iter()
        .map(|document| (document.path.as_str(), document))
        .collect();
    let mut faults = Vec::new();
    for document in &documents {
        for link in &document.links {
            if let Err(why) = resolve(&document.path, &link.item, &by_path) {
                let what = format!("the link to `{}` is broken: {why}", link.item);
                faults.push(document.fault(link.line, what));
            }
        }
    }
    assert_tidy(&faults);
}

/// Documents that comments of source files and scripts name exist too.
#[test]
fn every_document_that_source_files_name_exists() {
    let documents = tree::files(&["md"]);
    let mut faults = Vec::new();
    for path in tree::files(&[
        "rs", "c", "h", "cpp", "hpp", "cc", "py", "sh", "toml", "mk", "Makefile",
    ]) {
        for (number, line) in tree::read(&path).lines().enumerate() {
            for named in documents_named(line) {
                if !documents.iter().any(|document| document == named) {
                    faults.push(format!(
                        "{path}:{}: there is no `{named}`; name the document that says it now",
                        number + 1
                    ));
                }
            }
        }
    }
    assert_tidy(&faults);
}

/// Checks that a link of a document has a target; the error says why not.
fn resolve(from: &str, link: &str, documents: &HashMap<&str, &Document>) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let path = match file {
        "" => from.to_string(),
        _ => beside(from, file).ok_or("it leaves the repository")?,
    };
    if !tree::root().join(&path).exists() {
        return Err(format!("there is no `{path}`; link to where it is now"));
    }
    if fragment.is_empty() {
        return Ok(());
    }
    let has_it = match documents.get(path.as_str()) {
        Some(document) => document.anchors.contains(fragment),
        None => has_line(&path, fragment),
    };
    has_it.then_some(()).ok_or(format!(
        "`{path}` has no `#{fragment}`; take the fragment of a heading that it has"
    ))
}

/// The path from the root, for a path relative to another file.
fn beside(from: &str, file: &str) -> Option<String> {
    let mut path = PathBuf::from(from);
    path.pop();
    for part in Path::new(file).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    path.to_str().map(str::to_string)
}

/// Whether the file has the line of a fragment such as `L12`.
fn has_line(path: &str, fragment: &str) -> bool {
    let number = fragment
        .strip_prefix('L')
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number: usize| (1..=tree::read(path).lines().count()).contains(&number))
}

/// The words of a line that look like paths of documents, such as `docs/guide.md`.
fn documents_named(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || "-_./".contains(letter);
    line.split(move |letter| !is_part(letter))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.starts_with("docs/") && word.ends_with(".md"))
}

#[test]
fn a_link_to_nothing_is_told_from_one_that_resolves() {
    let target = Document::parse("docs/json.md", "# Exit status\n");
    let documents = HashMap::from([("docs/json.md", &target)]);
    let resolve = |link| resolve("docs/guide.md", link, &documents);
    for good in [
        "https://ui.perfetto.dev",
        "json.md",
        "json.md#exit-status",
        "../Cargo.toml#L1",
        "../crates",
    ] {
        assert_eq!(resolve(good), Ok(()), "{good}");
    }
    for bad in [
        "jsn.md",
        "json.md#exit",
        "../../README.md",
        "../Cargo.toml#L100000",
    ] {
        assert!(resolve(bad).is_err(), "{bad}");
    }
}
