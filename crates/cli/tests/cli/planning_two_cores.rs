//! Plans for a machine of two cores.

use super::errors::refused;
use super::{headway, words};

/// A plan for two cores at seven tenths of what they carry.
fn on_two_cores(more: &[&str]) -> serde_json::Value {
    let base = words(
        "plan --workload high-bimodal --cores 2 --rate 27.7k --requests 100k --replications 3 --format json",
    );
    let done = headway(&[&base[..], more].concat());
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Workers that take turns as the dispatcher, or time themselves, have both cores: no further one is asked for.
#[test]
fn two_cores_are_enough_for_what_they_carry() {
    let report = on_two_cores(&[]);
    assert_eq!(report["verdict"], "met");
    let (best, needed) = (&report["ranking"][0], &report["cores"][0]);
    assert!(
        ["inline", "steered"].contains(&best["layout"].as_str().unwrap()),
        "{best}"
    );
    assert_eq!((&best["workers"], &best["cores"]), (&2.into(), &2.into()));
    assert_eq!(needed["policy"], best["policy"], "{needed}");
    assert_eq!(
        (&needed["workers"], &needed["cores"]),
        (&2.into(), &2.into())
    );
}

#[test]
fn a_bound_of_half_a_millisecond_is_met_on_two_cores_by_what_interrupts() {
    let slo = ["--slo", "class.short.latency.p99<=500us"];
    let asked = ["--policy", "concord", "--policy", "synergy"];
    let report = on_two_cores(&[&slo[..], &asked].concat());
    let ranking = report["ranking"].as_array().unwrap();
    for policy in ["concord", "synergy"] {
        let best = ranking.iter().find(|entry| {
            let spec = entry["policy"].as_str().unwrap();
            spec.split(',').next() == Some(policy) && entry["met"] == entry["replications"]
        });
        let best = best.unwrap_or_else(|| panic!("{policy}: {ranking:?}"));
        assert_eq!(best["cores"], 2, "{best}");
        assert!(best["slo_use"]["hi"].as_f64() < Some(1.0), "{best}");
    }
}

/// In a pool requests wait before the policy once so many have begun.
#[test]
fn a_plan_for_a_pool_heeds_how_many_requests_may_have_begun() {
    let asked = ["--policy", "fixed-priority"];
    let slo = ["--slo", "class.short.latency.p99<=1s"];
    let with = |limit: &[&str]| on_two_cores(&[&asked[..], &slo, limit].concat());
    let (unlimited, plenty) = (with(&[]), with(&["--begun-at-most", "1M"]));
    assert_eq!(unlimited["ranking"], plenty["ranking"]);
    let few = with(&["--begun-at-most", "4"]);
    assert_ne!(unlimited["ranking"], few["ranking"]);
    let caveats = few["caveats"].to_string();
    assert!(
        caveats.contains("at most 4 requests have begun"),
        "{caveats}"
    );
    for more in [["--validate", "1s"], ["--config-out", "serve.toml"]] {
        let args = [&["plan", "--begun-at-most", "4"], &more[..]].concat();
        refused(&args, &["--begun-at-most", more[0], "cannot be used with"]);
    }
}
