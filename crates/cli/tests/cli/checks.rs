//! `serve --check` and every live tool refuse the same settings as a server, before one starts.

use super::errors::refused;
use super::headway;

#[test]
fn what_no_live_server_runs_is_refused_by_every_live_tool() {
    for (policy, why) in [
        ("ps", "headway sim"),
        ("pallas", "rack"),
        ("darc,profile=known", "profile=known"),
    ] {
        for command in [&["serve", "--check"][..], &["serve"], &["bench"], &["demo"]] {
            let flags = ["--workers", "2", "--policy", policy];
            refused(&[command, &flags].concat(), &["--policy: ", why]);
        }
    }
    let pinned = [
        "serve",
        "--check",
        "--policy",
        "concord",
        "--layout",
        "dedicated",
        "--workers",
        "2",
        "--pin",
        "0,1",
    ];
    refused(&pinned, &["--pin: ", "3 threads", "2 cores"]);
    for layout in ["dedicated", "inline"] {
        let ok = headway(&[
            "serve", "--check", "--policy", "concord", "--layout", layout,
        ]);
        assert_eq!(ok.status.code(), Some(0), "{ok:?}");
    }
}

/// Start and check refuse the same settings, since they run the same code.
#[test]
fn a_check_refuses_the_numbers_that_a_start_refuses() {
    let most = &["--queue-limit: queues of 1000000000", "choose at most"];
    for command in [&["serve"][..], &["serve", "--check"]] {
        refused(&[command, &["--queue-limit", "1000000000"]].concat(), most);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.toml").display().to_string();
    for (setting, why) in [
        ("queue-limit = 1000000000", "choose at most"),
        ("queue-limit = 0", "choose at least 1"),
        ("workers = 0", "1 to 256"),
    ] {
        std::fs::write(&path, setting).unwrap();
        let key = setting.split(' ').next().unwrap();
        for command in [&["serve"][..], &["serve", "--check"]] {
            let args = [command, &["-c", &path]].concat();
            refused(&args, &["server.toml:1", key, why]);
        }
    }
    let largest = [
        "serve",
        "--check",
        "--workers",
        "1",
        "--workload",
        "high-bimodal",
    ];
    let largest = [&largest[..], &["--queue-limit", "87000"]].concat();
    assert_eq!(headway(&largest).status.code(), Some(0));
}

/// The server's own class, of requests that are of no other, has a name in reports and metrics.
#[test]
fn a_class_called_like_the_server_s_own_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.toml").display().to_string();
    let workload = r#"class = [{ name = "unknown", share = 1.0, service = { dist = "constant", mean = "1us" } }]"#;
    std::fs::write(&path, workload).unwrap();
    for command in [&["serve"][..], &["serve", "--check"]] {
        let args = [command, &["--workload", &path]].concat();
        refused(&args, &["--workload: ", "class 'unknown'", "its own name"]);
    }
}

#[test]
fn a_check_refuses_the_steering_that_a_start_refuses() {
    for command in [&["serve"][..], &["serve", "--check"]] {
        let with = |policy, steer| {
            let args = ["--policy", policy, "--steer", steer];
            [command, &args].concat()
        };
        let one_queue = &[
            "--steer: ",
            "policy darc takes all requests",
            "choose d-fcfs",
        ];
        refused(&with("darc", "random"), one_queue);
        let beyond = &["--steer: ", "byte 10", "choose a byte from 0 to 9"];
        refused(&with("d-fcfs", "byte=10"), beyond);
    }
    let steered = ["serve", "--check", "--policy", "synergy", "--steer"];
    for steer in ["flow", "random", "class", "byte=9"] {
        let checked = headway(&[&steered[..], &[steer]].concat());
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    }
}

#[cfg(not(feature = "kv"))]
#[test]
fn a_service_that_the_build_lacks_is_refused() {
    for command in [&["serve"][..], &["serve", "--check"]] {
        let args = [command, &["--app", "kv"]].concat();
        refused(&args, &["--app: ", "feature kv"]);
    }
}

#[test]
fn spin_must_be_allowed_to_work_as_long_as_its_classes() {
    let check = [
        "serve",
        "--check",
        "--workload",
        "high-bimodal",
        "--max-spin",
    ];
    refused(
        &[&check[..], &["50us"]].concat(),
        &["--max-spin: ", "'long'", "100us"],
    );
    assert_eq!(
        headway(&[&check[..], &["100us"]].concat()).status.code(),
        Some(0)
    );
}
