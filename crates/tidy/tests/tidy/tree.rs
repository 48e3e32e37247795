//! The repository's files.

use std::path::{Path, PathBuf};

/// Folders with build outputs and fuzzers' findings, which are not part of the repository.
const GENERATED: [&str; 3] = ["target", "artifacts", "__pycache__"];

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the crate lies in a workspace")
}

/// The text of a file, by its path from the root.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Paths from the root, in order, of all files with one of these extensions, or with one of these names if they have no extension.
pub(crate) fn files(extensions: &[&str]) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &mut |path| {
        let extension = path.extension().or(path.file_name());
        let extension = extension.and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| extensions.contains(&extension)) {
            let path = path.strip_prefix(&root).expect("the walk starts there");
            found.push(path.to_str().expect("file names are UTF-8").to_string());
        }
    });
    found.sort();
    found
}

fn walk(folder: &Path, visit: &mut impl FnMut(&Path)) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type().expect("the entry has a type");
        if kind.is_file() {
            visit(&entry.path());
        } else if kind.is_dir() && !name.starts_with('.') && !GENERATED.contains(&&*name) {
            walk(&entry.path(), visit);
        }
    }
}
