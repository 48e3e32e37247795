//! Dry runs of `make`: its commands heed cargo's target directory and the directories for installation.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The way in which a variable reaches `make`.
#[derive(Clone, Copy, Debug)]
enum Told {
    Argument,
    Environment,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// The commands that `make` would run for these targets; `None`, with the reason printed, where there is no make.
fn commands(targets: &[&str], variables: &[(&str, &str)], told: Told) -> Option<String> {
    let mut make = Command::new("make");
    make.current_dir(root())
        .arg("--dry-run")
        .args(targets)
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_BUILD_TARGET_DIR")
        .env_remove("PREFIX")
        .env_remove("DESTDIR");
    for (name, value) in variables {
        match told {
            Told::Argument => make.arg(format!("{name}={value}")),
            Told::Environment => make.env(name, value),
        };
    }
    let Ok(output) = make.output() else {
        eprintln!("SKIPPED: there is no make");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn make_finds_what_cargo_built_elsewhere() {
    let targets = ["demo", "reproduce", "install", "install-capi"];
    for told in [Told::Argument, Told::Environment] {
        let Some(said) = commands(&targets, &[("CARGO_TARGET_DIR", "/else/where")], told) else {
            return;
        };
        assert!(
            said.contains("\n/else/where/release/headway demo\n"),
            "{told:?}: {said}"
        );
        assert!(
            said.contains("/else/where/release/libheadway_capi.so"),
            "{told:?}: {said}"
        );
        let elsewhere = said
            .split_whitespace()
            .find(|word| word.starts_with("target/"));
        assert_eq!(elsewhere, None, "{told:?}: {said}");
    }
}

/// Installed files are under the prefix, below the root of a package where one is made.
fn assert_installed_at(place: &str, variables: &[(&str, &str)], told: Told) {
    let Some(said) = commands(&["install", "install-capi"], variables, told) else {
        return;
    };
    for installed in [
        "bin/headway",
        "bin/cargo-headway",
        "share/man/man1",
        "lib/pkgconfig/headway.pc",
    ] {
        assert!(
            said.contains(&format!(" {place}/{installed}\n")),
            "{told:?}, {installed}: {said}"
        );
    }
    assert!(!said.contains("/usr/local"), "{told:?}: {said}");
}

#[test]
fn make_installs_under_the_prefix() {
    let relative = root().join("some/prefix").display().to_string();
    for told in [Told::Argument, Told::Environment] {
        assert_installed_at("/some/prefix", &[("PREFIX", "/some/prefix")], told);
        assert_installed_at(&relative, &[("PREFIX", "some/prefix")], told);
        let packaged = [("PREFIX", "/some/prefix"), ("DESTDIR", "/package")];
        assert_installed_at("/package/some/prefix", &packaged, told);
    }
}
