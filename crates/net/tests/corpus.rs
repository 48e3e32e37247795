//! The fuzz targets' properties over the corpus kept with them: what a fuzzer once found,
//! every test run checks again.

use std::fs;
use std::path::Path;

mod properties;

/// Runs `property` on every file of a target's corpus.
fn replay(target: &str, property: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a readable corpus").path();
        property(&fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
        files += 1;
    }
    assert!(files > 0, "{} holds no seeds", folder.display());
}

#[test]
fn header() {
    replay("header", properties::header);
}

#[test]
fn classifiers() {
    replay("classifiers", properties::classifiers);
}

#[test]
fn classifier_spec() {
    replay("classifier_spec", properties::spec);
}
