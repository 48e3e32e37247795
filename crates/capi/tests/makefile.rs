//! What `make` would do, asked without doing it: it heeds where cargo builds and where things are to go.

use std::path::Path;
use std::process::Command;

/// The commands that `make` would run for these targets; `None`, with the reason printed, where there is no make.
fn commands(targets: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("make")
        .current_dir(root)
        .arg("--dry-run")
        .args(targets)
        .args(["CARGO_TARGET_DIR=/else/where", "PREFIX=/some/prefix"])
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: there is no make");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn make_finds_what_cargo_built_elsewhere() {
    let Some(said) = commands(&["demo", "reproduce", "install", "install-capi"]) else {
        return;
    };
    assert!(
        said.contains("\n/else/where/release/headway demo\n"),
        "{said}"
    );
    assert!(
        said.contains("/else/where/release/libheadway_capi.so"),
        "{said}"
    );
    let elsewhere = said
        .split_whitespace()
        .find(|word| word.starts_with("target/"));
    assert_eq!(elsewhere, None, "{said}");
}

#[test]
fn make_installs_under_the_prefix() {
    let Some(said) = commands(&["install", "install-capi"]) else {
        return;
    };
    for installed in [
        "bin/headway",
        "bin/cargo-headway",
        "share/man/man1",
        "lib/pkgconfig/headway.pc",
    ] {
        assert!(
            said.contains(&format!(" /some/prefix/{installed}\n")),
            "{installed}: {said}"
        );
    }
    assert!(!said.contains("/usr/local"), "{said}");
}
