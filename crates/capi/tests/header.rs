//! `include/headway.h` is what cbindgen makes of the source.

use std::env;
use std::fs;
use std::path::Path;

use headway_capi::server::{HEADWAY_ABI_VERSION, headway_abi_version};

/// The files of the source that say what threads in user space are, in a header of their own.
const THREADS: [&str; 3] = ["sharing.rs", "threads.rs", "waiting.rs"];

/// With `HEADWAY_WRITE_HEADER` set, writes it instead: `make header`.
fn assert_current(header: &str, config: &str, of_header: impl Fn(&str) -> bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = fs::read_dir(root.join("src")).unwrap();
    // The root names all files, and has nothing of its own.
    let mut sources: Vec<_> = sources
        .map(|entry| entry.unwrap().path())
        .filter(|source| !source.ends_with("lib.rs"))
        .collect();
    sources.sort();
    let mut builder = cbindgen::Builder::new()
        .with_config(cbindgen::Config::from_file(root.join(config)).unwrap());
    for source in sources {
        if of_header(source.file_name().unwrap().to_str().unwrap()) {
            builder = builder.with_src(source);
        }
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include").join(header);
    if env::var_os("HEADWAY_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "include/{header} is not what the source says: run `make header`"
    );
}

#[test]
fn the_headers_are_current() {
    assert_current("headway.h", "cbindgen.toml", |file| {
        !THREADS.contains(&file)
    });
    assert_current("headway_threads.h", "cbindgen-threads.toml", |file| {
        THREADS.contains(&file)
    });
}

#[test]
fn the_library_is_named_by_its_version() {
    assert_eq!(headway_abi_version(), HEADWAY_ABI_VERSION);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let soname = format!("-soname,libheadway.so.{HEADWAY_ABI_VERSION}\"");
    assert!(fs::read_to_string(script).unwrap().contains(&soname));
}
