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
