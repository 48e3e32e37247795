//! The daemon with the rights that its unit for systemd leaves it.

use crate::apps::Work;
use crate::stage::{Stage, may, turn, until};
use headway_kthread::CoreSource;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The greatest exposure, in tenths.
const EXPOSURE_MAX: &str = "--threshold=25";

fn unit() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../contrib/headway-host.service")
}

/// The capabilities of the unit, as setpriv(1) calls them.
fn capabilities() -> String {
    let unit = fs::read_to_string(unit()).unwrap();
    let mut lines = unit.lines();
    let line = lines.find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = line.unwrap().split_whitespace();
    let names = names.map(|name| name.trim_start_matches("CAP_").to_lowercase());
    names.fold("-all".to_owned(), |all, name| format!("{all},+{name}"))
}

#[test]
fn the_unit_leaves_the_daemon_little() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", EXPOSURE_MAX]);
    let Ok(judged) = analyze.arg(unit()).output() else {
        return println!("SKIPPED the_unit_leaves_the_daemon_little: systemd-analyze is not there");
    };
    let told = String::from_utf8_lossy(&judged.stdout);
    let judged_by = told.lines().last().unwrap_or_default();
    assert!(judged.status.success(), "{judged_by}");
    assert!(judged_by.contains("Overall exposure level"), "{judged_by}");
}

#[test]
fn the_daemon_does_with_the_capabilities_of_its_unit() {
    const TEST: &str = "the_daemon_does_with_the_capabilities_of_its_unit";
    let _turn = turn();
    if !may(TEST) {
        return;
    }
    let bounded = ["--bounding-set", &capabilities(), "--no-new-privs"];
    let tried = Command::new("setpriv").args(bounded).arg("true").status();
    if !tried.is_ok_and(|tried| tried.success()) {
        return println!("SKIPPED {TEST}: it needs root, and setpriv");
    }
    let stage = Stage::new();
    let mut command = Command::new("setpriv");
    let command = command.args(bounded).arg(std::env::current_exe().unwrap());
    let _daemon = stage.spawn_by(command, "daemon");
    let work = Work::register("kv", 2, &stage.socket());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for kthread in 0..2 {
            let (work, ended) = (Arc::clone(&work), &ended);
            scope.spawn(move || work.run(kthread, &|| ended.load(Ordering::Acquire)));
        }
        work.put(50);
        until("its work is done", || {
            work.taken.load(Ordering::Acquire) == 50
        });
        ended.store(true, Ordering::Release);
        work.client.close();
    });
}
