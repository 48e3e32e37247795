//! `include/headway.h` is what cbindgen makes of the source.

use std::env;
use std::fs;
use std::path::Path;

use headway_capi::server::{HEADWAY_ABI_VERSION, headway_abi_version};

/// With `HEADWAY_WRITE_HEADER` set, writes it instead: `make header`.
#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_crate(root)
        .generate()
        .unwrap()
        .write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/headway.h");
    if env::var_os("HEADWAY_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "include/headway.h is not what the source says: run `make header`"
    );
}

#[test]
fn the_library_is_named_by_its_version() {
    assert_eq!(headway_abi_version(), HEADWAY_ABI_VERSION);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let soname = format!("-soname,libheadway.so.{HEADWAY_ABI_VERSION}\"");
    assert!(fs::read_to_string(script).unwrap().contains(&soname));
}
