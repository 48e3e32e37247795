//! SECURITY.md has a link to each module that may have `unsafe` code.

use crate::assert_tidy;
use crate::document::Document;
use crate::tree;
use std::collections::BTreeMap;

const LIST: &str = "SECURITY.md";

#[test]
fn the_list_of_unsafe_modules_is_that_of_the_tree() {
    let document = Document::read(LIST);
    let listed: BTreeMap<&str, usize> = document
        .links
        .iter()
        .filter(|link| link.item.ends_with(".rs"))
        .map(|link| (link.item.as_str(), link.line))
        .collect();
    let modules: BTreeMap<String, usize> = tree::files(&["rs"])
        .into_iter()
        .filter(|path| is_product(path))
        .filter_map(|path| Some((path.clone(), exception(&tree::read(&path))?)))
        .collect();
    let mut faults = Vec::new();
    for (path, line) in &modules {
        if !listed.contains_key(path.as_str()) {
            faults.push(format!(
                "{path}:{line}: unsafe code is excepted here, and {LIST} does not link to it; add it to the list, with the reason"
            ));
        }
    }
    for path in modules.keys() {
        if let Some(line) = child(&tree::read(path)) {
            faults.push(format!(
                "{path}:{line}: the exception from the lint on unsafe code holds for this module's file as well; except items, or move what needs it into a file of its own"
            ));
        }
    }
    for (path, &line) in &listed {
        if !modules.contains_key(*path) {
            let what = format!("`{path}` excepts no unsafe code; take it off the list");
            faults.push(document.fault(line, what));
        }
    }
    assert_tidy(&faults);
}

/// Whether a file is part of the product, not of a test or benchmark.
fn is_product(path: &str) -> bool {
    let mut parts = path.split('/');
    matches!(parts.next(), Some("crates" | "apps")) && parts.nth(1) == Some("src")
}

/// The number of the first line that allows `unsafe_code`.
fn exception(text: &str) -> Option<usize> {
    Some(
        1 + text.lines().position(|line: &str| {
            let line = line.trim_start();
            let refuses = line.contains("forbid(") || line.contains("deny(");
            line.contains("unsafe_code") && !refuses && !line.starts_with("//")
        })?,
    )
}

/// The first module with a separate file, if an attribute allows `unsafe_code` in the whole file: the module would inherit it unnoticed.
fn child(text: &str) -> Option<usize> {
    let mut attribute = text
        .split("#![")
        .skip(1)
        .filter_map(|rest| rest.split(']').next());
    let is_whole = attribute.any(|attribute| attribute.contains("unsafe_code"));
    is_whole.then(|| {
        text.lines()
            .position(|line: &str| {
                let name = line.trim_end().strip_suffix(';').unwrap_or_default();
                name.starts_with("mod ") || name.starts_with("pub") && name.contains(" mod ")
            })
            .map(|line| 1 + line)
    })?
}

#[test]
fn a_module_that_would_be_excepted_unseen_is_found() {
    let code = "unsafe_code";
    let whole = format!("//! x\n#![expect(\n    {code},\n)]\n");
    assert_eq!(child(&format!("{whole}pub(crate) mod deeper;\n")), Some(5));
    assert_eq!(child(&format!("{whole}mod here {{}}\n")), None);
    assert_eq!(
        child(&format!("#[expect({code})]\nfn f() {{}}\nmod a;\n")),
        None
    );
}

#[test]
fn an_exception_is_seen_however_it_is_written() {
    let code = "unsafe_code";
    assert_eq!(
        exception(&format!("#![expect({code}, reason = \"\")]")),
        Some(1)
    );
    assert_eq!(
        exception(&format!("//! x\n#[allow(\n    {code},\n")),
        Some(3)
    );
    assert_eq!(exception(&format!("#![forbid({code})]\n// {code}")), None);
}
