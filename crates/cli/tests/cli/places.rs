//! Where output goes: results have their place before a run.

use super::{headway, words};

/// Each of these would take minutes, and the test with it.
#[test]
fn a_result_without_a_place_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("no/such/result");
    let place = place.to_str().unwrap();
    for (command, flags) in [
        (
            "sim --workload tpcc --policy darc --requests 4G",
            &["-o", "--hlog", "--trace-out", "--html"][..],
        ),
        (
            "sweep --workload tpcc --policy darc --requests 4G",
            &["-o", "--html"],
        ),
        (
            "capacity --workload tpcc --policy darc --slo overall.slowdown.p99<=9 --requests 4G",
            &["-o"],
        ),
        (
            "plan --workload tpcc --slo overall.slowdown.p99<=9 --requests 4G",
            &["-o"],
        ),
        (
            "bench --workload tpcc --policy darc --duration 600s",
            &["-o"],
        ),
        (
            "load udp://127.0.0.1:9 --workload tpcc --rate 10 --duration 600s",
            &["-o", "--hlog", "--record"],
        ),
        ("reproduce all", &["-o", "--html"]),
        ("calibrate", &["-o"]),
        ("demo", &["-o", "--html"]),
    ] {
        for flag in flags {
            let refused = headway(&[&words(command)[..], &[flag, place]].concat());
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(2), "{command} {flag}: {said}");
            let name = flag
                .replace("-o", "--output")
                .replace("----output", "--output");
            let name = if flag.starts_with("--") { *flag } else { &name };
            assert!(
                said.contains(name) && said.contains(place),
                "{command} {flag}: {said}"
            );
        }
    }
}
