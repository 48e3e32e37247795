//! The flags of `serve` for interrupting requests, and the refused ones.

use super::errors::refused;
use super::headway;
use super::serving::{Serving, assert_all_counted, count};
use headway_policy::server::systems::ALL;

#[test]
fn ways_to_interrupt_that_cannot_be_are_refused_with_the_remedy() {
    for (flags, parts) in [
        (
            &["--app", "kv", "--policy", "concord", "--preempt", "signal"][..],
            &["--preempt: ", "of kv allocates", "flag"][..],
        ),
        (
            &[
                "--policy",
                "concord",
                "--preempt",
                "signal",
                "--layout",
                "inline",
            ],
            &["--layout: ", "signals", "dedicated"],
        ),
        (
            &["--policy", "tiny-quanta", "--preempt", "flag"],
            &["--preempt: ", "tiny-quanta", "concord"],
        ),
        (
            &[
                "--policy",
                "srpt",
                "--preempt",
                "tsc",
                "--layout",
                "dedicated",
            ],
            &["--preempt: ", "more urgent", "flags"],
        ),
        (
            &["--policy", "darc", "--preempt", "signal"],
            &["--preempt: ", "darc", "concord"],
        ),
        (
            &["--policy", "darc", "--feedback"],
            &["--feedback: ", "darc interrupts no request", "concord"],
        ),
        (
            &["--app", "echo", "--policy", "concord", "--feedback"],
            &["--feedback: ", "echo", "--app spin or kv"],
        ),
        (
            &[
                "--policy",
                "concord",
                "--workload",
                "exponential-1us",
                "--feedback",
            ],
            &["--feedback: ", "spin", "long = true"],
        ),
        (
            &[
                "--policy",
                "darc",
                "--layout",
                "inline",
                "--look-every",
                "5us",
            ],
            &["--look-every: ", "the inline layout", "concord"],
        ),
        (
            &[
                "--policy",
                "concord",
                "--layout",
                "dedicated",
                "--look-every",
                "5us",
            ],
            &["--look-every: ", "the inline layout"],
        ),
        (
            &["--policy", "concord", "--look-every", "999ns"],
            &["--look-every: ", "at least 1us"],
        ),
    ] {
        for check in [&["serve", "--check"][..], &["serve"]] {
            refused(&[check, &["--workers", "2"], flags].concat(), parts);
        }
    }
    for flags in [
        &["--policy", "synergy"][..],
        &["--policy", "synergy", "--app", "echo"],
        &["--policy", "concord", "--feedback", "--preempt", "signal"],
        &["--policy", "concord", "--app", "kv", "--feedback"],
        &["--policy", "concord", "--app", "kv", "--resume", "anywhere"],
        &[
            "--policy",
            "concord",
            "--layout",
            "inline",
            "--look-every",
            "1us",
        ],
        &["--policy", "c-fcfs", "--resume", "anywhere"],
    ] {
        let ok = headway(&[&["serve", "--check", "--workers", "2"], flags].concat());
        assert_eq!(ok.status.code(), Some(0), "{flags:?}: {ok:?}");
    }
}

#[test]
fn every_service_runs_under_every_live_policy() {
    let live = ALL.iter().filter(|policy| policy.by_default().runs_live());
    for policy in live.map(|policy| policy.about.name) {
        for app in ["kv", "spin", "sleep", "echo"] {
            let check = ["serve", "--check", "--workers", "2", "--app", app];
            let ok = headway(&[&check[..], &["--policy", policy]].concat());
            assert_eq!(ok.status.code(), Some(0), "{app}, {policy}: {ok:?}");
        }
    }
}

#[test]
fn requests_are_interrupted_as_asked() {
    for (flags, said_of) in [
        (
            &["--policy", "synergy", "--layout", "inline"][..],
            "no dispatcher: the network steers requests to them; idle threads spin for 20us, then park; \
             workers interrupt their own requests (inline), which go on at any worker",
        ),
        (
            &["--policy", "synergy", "--layout", "dedicated"],
            "a monitor with a thread of its own (dedicated) interrupts requests, which go on at any worker",
        ),
        (
            &[
                "--policy",
                "concord,q=5us",
                "--layout",
                "inline",
                "--look-every",
                "5us",
            ],
            "workers interrupt their own requests, which go on at any worker",
        ),
        (
            &[
                "--policy",
                "concord,q=5us",
                "--layout",
                "dedicated",
                "--resume",
                "own-worker",
            ],
            "the dispatcher interrupts requests, which go on at their own worker",
        ),
        (
            &[
                "--policy",
                "concord,q=5us",
                "--layout",
                "dedicated",
                "--preempt",
                "tsc",
            ],
            "workers interrupt requests by their own clocks, as the dispatcher says, which go on at any worker",
        ),
        (
            &["--policy", "tardis"],
            "no dispatcher: they help themselves from one queue",
        ),
        (
            &["--policy", "concord,dispatchers=2", "--layout", "inline"],
            "which take turns as 2 dispatchers (inline)",
        ),
        (
            &[
                "--policy",
                "shinjuku-sq,q=100us",
                "--preempt",
                "signal",
                "--feedback",
            ],
            "the dispatcher interrupts requests by signal where they say that they are long, which go on at their own worker",
        ),
    ] {
        let workload = ["--workers", "2", "--workload", "shenango-bimodal"];
        let server = Serving::start(&[flags, &workload].concat());
        let run = server.load("2k", "300ms");
        assert!(count(&run, "answered") > 0, "{flags:?}: {run}");
        server.signal(libc::SIGTERM);
        let (status, said) = server.end();
        assert_eq!(status, Some(0), "{flags:?}: {said}");
        assert!(said.contains(said_of), "{flags:?}: {said}");
        assert_all_counted(&said);
    }
}
