//! Applications in namespaces and cpusets of their own.

use crate::stage::{Stage, may, report, turn, until};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What the daemon answers an application that is started by this command.
fn answer(stage: &Stage, command: &mut Command) -> String {
    let command = command.arg(std::env::current_exe().unwrap());
    let _app = stage.spawn_by(command, "asks");
    let answer = stage.socket().with_extension("answer");
    until("it is answered", || {
        fs::read_to_string(&answer).is_ok_and(|answer| !answer.is_empty())
    });
    let told = fs::read_to_string(&answer).unwrap();
    fs::remove_file(answer).unwrap();
    told
}

#[test]
fn a_server_whose_threads_have_other_numbers_is_refused() {
    const TEST: &str = "a_server_whose_threads_have_other_numbers_is_refused";
    let _turn = turn();
    if !may(TEST) {
        return;
    }
    let unshare = ["--pid", "--fork", "--kill-child"];
    let tried = Command::new("unshare").args(unshare).arg("true").status();
    if !tried.is_ok_and(|tried| tried.success()) {
        return println!("SKIPPED {TEST}: no PID namespace can be made here");
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let told = answer(&stage, Command::new("unshare").args(unshare));
    assert!(told.contains("run it in the daemon's"), "{told}");
    assert_eq!(answer(&stage, &mut Command::new("env")), "registered");
    until("it is gone", || report(&daemon).apps.is_empty());
    daemon.stop();
}

/// A cpuset of one core. It is removed with this value.
struct OneCore(PathBuf);

impl OneCore {
    /// For a test, which is told as skipped where there can be none.
    fn of_test(test: &str) -> Option<Self> {
        if !may(test) {
            return None;
        }
        let made = Self::make();
        if made.is_none() {
            println!("SKIPPED {test}: no cpuset of version 1 can be made here");
        }
        made
    }

    fn make() -> Option<Self> {
        let root = PathBuf::from("/sys/fs/cgroup/cpuset");
        let first = fs::read_to_string(root.join("cpuset.cpus")).ok()?;
        let first = first.trim().split([',', '-']).next()?.to_owned();
        let one = Self(root.join(format!("headway-test-{}", std::process::id())));
        fs::create_dir(&one.0).ok()?;
        fs::write(one.0.join("cpuset.cpus"), first).ok()?;
        let memory = fs::read_to_string(root.join("cpuset.mems")).ok()?;
        fs::write(one.0.join("cpuset.mems"), memory.trim()).ok()?;
        Some(one)
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        until("it is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_cpuset_that_becomes_smaller_is_told() {
    const TEST: &str = "a_cpuset_that_becomes_smaller_is_told";
    let _turn = turn();
    let Some(one) = OneCore::of_test(TEST) else {
        return;
    };
    let stage = Stage::new();
    let daemon = stage.daemon();
    let app = stage.spawn("kv");
    let unusable = || {
        let apps = report(&daemon).apps;
        apps.first()
            .is_some_and(|app| !app.unusable_cores.is_empty())
    };
    until("it has a core", || {
        report(&daemon)
            .apps
            .first()
            .is_some_and(|app| app.grants > 0)
    });
    assert!(!unusable());
    fs::write(one.0.join("cgroup.procs"), app.id().to_string()).unwrap();
    until("it is told", unusable);
    drop(app);
    daemon.stop();
}

#[test]
fn a_server_that_may_not_use_the_cores_is_refused() {
    const TEST: &str = "a_server_that_may_not_use_the_cores_is_refused";
    let _turn = turn();
    let Some(one) = OneCore::of_test(TEST) else {
        return;
    };
    let stage = Stage::new();
    let daemon = stage.daemon();
    let enters = format!(
        "echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"",
        one.0.display()
    );
    let told = answer(&stage, Command::new("sh").args(["-c", &enters]));
    assert!(
        told.contains("widen it, or start the daemon with"),
        "{told}"
    );
    assert!(report(&daemon).apps.is_empty());
    daemon.stop();
}
