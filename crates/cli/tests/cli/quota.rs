//! A process whose control group pays for fewer cores than it may use.

use super::{headway, words};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A control group with a quota of one core, until it is dropped.
struct OneCore(PathBuf);

impl OneCore {
    /// In either version's hierarchy; why there is none.
    fn new() -> Result<Self, String> {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return Err("it needs two cores".into());
        }
        let name = format!("headway-quota-{}", std::process::id());
        let mut why = String::new();
        for (hierarchy, file, quota) in [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"),
            ("/sys/fs/cgroup", "cpu.max", "100000 100000"),
        ] {
            let group = Path::new(hierarchy).join(&name);
            if let Err(error) = fs::create_dir(&group) {
                why = format!("{}: {error}", group.display());
                continue;
            }
            let made = Self(group);
            // An existing file: one that is made by this would limit nothing.
            let limited = fs::OpenOptions::new().write(true).open(made.0.join(file));
            let limited =
                limited.and_then(|mut file| std::io::Write::write_all(&mut file, quota.as_bytes()));
            match limited {
                Ok(()) => return Ok(made),
                Err(error) => why = format!("{}/{file}: {error}", made.0.display()),
            }
        }
        Err(format!(
            "no control group with a quota can be made here: {why}"
        ))
    }

    /// Runs the command in the group.
    fn headway(&self, args: &str) -> Output {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh", env!("CARGO_BIN_EXE_headway")]);
        command.args(words(args)).output().expect("a shell")
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // Its processes have ended.
        let _ = fs::remove_dir(&self.0);
    }
}

fn parsed(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).expect(&said)
}

#[test]
fn a_quota_is_told_and_counts_for_plans_and_workers() {
    let group = match OneCore::new() {
        Ok(group) => group,
        Err(why) => {
            println!("SKIPPED a_quota_is_told_and_counts_for_plans_and_workers: {why}");
            return;
        }
    };
    let doctor = "doctor --format json";
    let quota = |output: &Output| {
        let report = parsed(output).to_string();
        report.contains("quota (cpu.max) is that of 1 core, of")
    };
    assert!(quota(&group.headway(doctor)));
    assert!(!quota(&headway(&words(doctor))));

    // A quarter of a core's work: plans are for all cores that there are.
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("server.toml");
    let plan = format!(
        "plan --workload high-bimodal --rate 5k --slo overall.slowdown.p50<=1000 --requests 20k --ideal --config-out {} --format json",
        settings.display()
    );
    let most_cores = |output: &Output| {
        let report = parsed(output);
        let ranking = report["ranking"].as_array().expect("a ranking").clone();
        let cores = ranking.iter().map(|entry| entry["cores"].as_u64());
        cores.max().flatten().expect("a candidate")
    };
    assert_eq!(most_cores(&group.headway(&plan)), 1);
    assert!(most_cores(&headway(&words(&plan))) > 1);

    // A server has as many workers as there are cores: too many for one pin where no quota holds.
    let settings = folder.path().join("counted.toml");
    fs::write(&settings, "policy = \"d-fcfs\"\npin = \"0\"\n").unwrap();
    let check = format!("serve --check -c {}", settings.display());
    let checked = group.headway(&check);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let refused = headway(&words(&check));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("threads cannot be pinned to 1 core"),
        "{said}"
    );
}
