//! Replays a fuzz target's corpus in an ordinary test: what a fuzzer once found, every test
//! run checks again. Crates' `tests/corpus.rs` include this file.

use std::fs;
use std::path::Path;

/// Runs `property` on every file of a target's corpus.
///
/// # Panics
/// When the corpus cannot be read or is empty, or the property does not hold.
pub(crate) fn replay(target: &str, property: fn(&[u8])) {
    let crates_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = crates_folder.join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a readable corpus").path();
        // Shown by the test harness when the property fails.
        println!("{}", path.display());
        property(&fs::read(&path).expect("a readable seed"));
        files += 1;
    }
    assert!(files > 0, "{} holds no seeds", folder.display());
}
