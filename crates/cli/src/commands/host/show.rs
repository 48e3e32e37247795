//! A daemon's status as text.

use headway_report::table::Table;
use serde_json::Value;

/// A paragraph about the daemon, and tables of its applications and of durations.
pub(super) fn text(status: &Value) -> String {
    let cores = array(&status["cores"]).iter().map(|core| {
        let app = core["app"].as_str().unwrap_or("–");
        let leaving = if core["leaving"] == true {
            ", told to leave"
        } else {
            ""
        };
        format!("{}: {app}{leaving}", core["core"])
    });
    let own = match status["own_core"].as_u64() {
        Some(core) => format!("it spins on core {core}"),
        None => "it has no core of its own".into(),
    };
    format!(
        "{}, process {}, up for {:.0} s; {own}\npolicy {}\ncores {}\n{}{}\n{}\n\n{}",
        word(&status["socket"]),
        status["pid"],
        number(&status["uptime_s"]),
        word(&status["spec"]),
        cores.collect::<Vec<_>>().join(", "),
        unusable(status),
        network(&status["network"]),
        apps(status),
        times(status),
    )
}

/// A line for each application that is granted cores which it may not use.
fn unusable(status: &Value) -> String {
    let mut text = String::new();
    for app in array(&status["apps"]) {
        let cores: Vec<_> = array(&app["unusable_cores"])
            .iter()
            .map(Value::to_string)
            .collect();
        if !cores.is_empty() {
            text += &format!(
                "{} may not use cores that it is granted: {}; its cpuset has them no more\n",
                word(&app["name"]),
                cores.join(", ")
            );
        }
    }
    text
}

/// The data plane in one line; none without a device.
fn network(network: &Value) -> String {
    if network.is_null() {
        return String::new();
    }
    let broken = array(&network["broken"]).iter().map(word);
    let broken: Vec<_> = broken.collect();
    let cut_off = if broken.is_empty() {
        String::new()
    } else {
        format!(
            "; cut off, since they wrote nonsense: {}",
            broken.join(", ")
        )
    };
    format!(
        "device {}: {} frames to applications, {} from them; lost: {} for nobody here, {} at full lanes, {} at a full device, {} missed, {} in another's name, {} of impossible length, {} longer than the device takes, {} for those cut off{cut_off}\n",
        word(&network["device"]),
        network["delivered"],
        network["sent"],
        network["unknown"],
        network["lane_full"],
        network["device_full"],
        network["missed"],
        network["spoofed"],
        network["invalid"],
        network["too_long"],
        network["for_broken"],
    )
}

fn apps(status: &Value) -> Table {
    let mut table = Table::new([
        "application",
        "class",
        "kind",
        "guaranteed",
        "most",
        "cores",
        "waiting",
        "grants",
        "revoked",
        "moved away",
        "core time",
    ]);
    for app in array(&status["apps"]) {
        let cores: Vec<_> = array(&app["cores"]).iter().map(Value::to_string).collect();
        table.push([
            word(&app["name"]),
            word(&app["class"]),
            word(&app["kind"]),
            app["guaranteed"].to_string(),
            app["most"].to_string(),
            if cores.is_empty() {
                "–".into()
            } else {
                cores.join(" ")
            },
            app["waiting"].to_string(),
            app["grants"].to_string(),
            app["revocations"].to_string(),
            app["evictions"].to_string(),
            format!("{:.1} s", number(&app["core_ns"]) / 1e9),
        ]);
    }
    table
}

/// The operations whose durations the daemon measures.
pub(super) const KINDS: [(&str, &str); 4] = [
    ("look", "the policy's look"),
    ("grant", "a grant"),
    ("revoke", "an order to leave"),
    ("leave", "from the order until the core is free"),
];

fn times(status: &Value) -> Table {
    let mut table = Table::new(["what", "times", "p50", "p99", "longest"]);
    for (kind, what) in KINDS {
        let times = &status[kind];
        let us = |field: &str| format!("{:.1} µs", number(&times[field]) / 1e3);
        table.push([
            what.to_owned(),
            times["count"].to_string(),
            us("p50_ns"),
            us("p99_ns"),
            us("max_ns"),
        ]);
    }
    table
}

pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_says_who_has_which_core() {
        let times = json!({ "count": 3, "p50_ns": 2500, "p99_ns": 9000, "max_ns": 9100 });
        let status = json!({
            "socket": "/run/headway/host.sock", "pid": 7, "uptime_s": 2.0, "spec": "shenango", "own_core": null,
            "cores": [{ "core": 0, "app": "kv", "leaving": true }, { "core": 1, "app": null, "leaving": false }],
            "apps": [{ "name": "kv", "class": "latency-critical", "kind": "kthreads", "guaranteed": 1, "most": 2, "cores": [0], "unusable_cores": [1, 3],
                "waiting": 4, "grants": 5, "revocations": 6, "evictions": 0, "core_ns": 1_500_000_000_u64 }],
            "look": times, "grant": times, "revoke": times, "leave": times,
        });
        let text = text(&status);
        for part in [
            "cores 0: kv, told to leave, 1: –",
            "it has no core of its own",
            "kv may not use cores that it is granted: 1, 3;",
            "1.5 s",
            "2.5 µs",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
