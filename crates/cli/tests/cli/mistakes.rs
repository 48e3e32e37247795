//! Values that name nothing to run, or one thing twice: refused before the run, by the flag.

use super::errors::refused;
use super::{headway, words};

#[test]
fn a_run_without_time_is_refused_by_every_command_that_takes_one() {
    let load = "load udp://127.0.0.1:9 --duration 0s";
    for command in [
        "sim --duration 0s",
        "sweep --duration 0ms",
        "capacity --slo overall.slowdown.p99<=9 --duration 0",
        "bench --duration 0s",
        "plan --validate 0s",
        load,
    ] {
        refused(&words(command), &["a run of '0", "give it time"]);
    }
}

/// What the flags ask for is wrong, whatever the server does.
#[test]
fn a_load_that_cannot_be_offered_is_a_usage_error() {
    let none = "load udp://127.0.0.1:9 --workload high-bimodal --rate 1 --duration 1ns";
    refused(&words(none), &["has no request", "longer duration"]);
    let many = "load udp://127.0.0.1:9 --requests 5G";
    refused(&words(many), &["at most 4294967296 requests"]);
}

/// One core more than the most workers was a usage error of its own.
#[test]
fn a_plan_for_more_than_any_server_carries_is_refused_with_what_one_carries() {
    for rate in ["1G", "1e300"] {
        refused(
            &["plan", "--workload", "high-bimodal", "--rate", rate],
            &["--rate: ", "workers busy", "at most 256", "3.55M rps"],
        );
    }
    // What 256 workers carry is planned for.
    let carried = "plan --workload high-bimodal --rate 5M --policy c-fcfs --requests 2k --slo overall.slowdown.p50<=9";
    let planned = headway(&words(carried));
    assert_eq!(planned.status.code(), Some(0), "{planned:?}");
}

/// Results tell applications apart by their names.
#[test]
fn two_applications_of_a_host_have_two_names() {
    for second in ["kv:batch", "kv:workload=exponential-10us,load=0.1"] {
        let first = "kv:workload=fixed-1us,load=0.2";
        refused(
            &[
                "sim", "--policy", "interval", "--app", first, "--app", second,
            ],
            &["two applications are called 'kv'", "a name of its own"],
        );
    }
}
