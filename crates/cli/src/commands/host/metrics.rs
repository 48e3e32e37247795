//! A daemon over HTTP.

use super::show::{KINDS, array, number};
use super::status::HostSubject;
use headway_ops::http::{PROMETHEUS_TEXT, Site};
use serde_json::Value;
use std::fmt::Write as _;

/// A page without external resources: the application of each core over time.
const PAGE: &str = include_str!("page.html");

impl Site for HostSubject {
    fn page(&self) -> &'static str {
        PAGE
    }

    fn status(&self) -> Value {
        HostSubject::status(self).unwrap_or_default()
    }

    fn metrics(&self) -> String {
        text(&Site::status(self))
    }

    fn metrics_type(&self) -> &'static str {
        PROMETHEUS_TEXT
    }
}

/// The status in the text format of Prometheus.
fn text(status: &Value) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    for (name, kind, field) in [
        ("app_cores", "gauge", "cores"),
        ("app_unusable_cores", "gauge", "unusable_cores"),
        ("app_waiting", "gauge", "waiting"),
        ("app_grants_total", "counter", "grants"),
        ("app_revocations_total", "counter", "revocations"),
        ("app_evictions_total", "counter", "evictions"),
        ("app_core_seconds_total", "counter", "core_ns"),
    ] {
        let _ = writeln!(text, "# TYPE headway_host_{name} {kind}");
        for app in array(&status["apps"]) {
            let value = match &app[field] {
                Value::Array(cores) => cores.len() as f64,
                value if field == "core_ns" => number(value) / 1e9,
                value => number(value),
            };
            let _ = writeln!(text, "headway_host_{name}{{app={}}} {value}", app["name"]);
        }
    }
    frames(&mut text, &status["network"]);
    for (kind, _) in KINDS {
        let name = format!("headway_host_{kind}_seconds");
        let times = &status[kind];
        let _ = writeln!(text, "# TYPE {name} histogram");
        for bound in array(&times["cumulative"]) {
            let (ns, count) = (number(&bound[0]), number(&bound[1]));
            let _ = writeln!(text, "{name}_bucket{{le=\"{}\"}} {count}", ns / 1e9);
        }
        let count = number(&times["count"]);
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum {}", number(&times["sum_ns"]) / 1e9);
        let _ = writeln!(text, "{name}_count {count}");
    }
    text
}

/// The reasons for which the data plane loses frames, by their fields.
const LOSSES: [&str; 8] = [
    "unknown",
    "lane_full",
    "device_full",
    "missed",
    "spoofed",
    "invalid",
    "too_long",
    "for_broken",
];

/// The counters of the data plane; none without a device.
fn frames(text: &mut String, network: &Value) {
    if network.is_null() {
        return;
    }
    let _ = writeln!(text, "# TYPE headway_host_frames_total counter");
    for (direction, field) in [("in", "delivered"), ("out", "sent")] {
        let count = number(&network[field]);
        let _ = writeln!(
            text,
            "headway_host_frames_total{{direction=\"{direction}\"}} {count}"
        );
    }
    let _ = writeln!(text, "# TYPE headway_host_lost_frames_total counter");
    for reason in LOSSES {
        let count = number(&network[reason]);
        let _ = writeln!(
            text,
            "headway_host_lost_frames_total{{reason=\"{reason}\"}} {count}"
        );
    }
    let _ = writeln!(text, "# TYPE headway_host_cut_off_apps gauge");
    let cut_off = array(&network["broken"]).len();
    let _ = writeln!(text, "headway_host_cut_off_apps {cut_off}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_host::arbiter::NetworkReport;
    use serde_json::json;

    /// Each count of a report is a metric of its own.
    #[test]
    fn frames_are_counted_where_there_is_a_device() {
        assert!(!text(&json!({ "network": null })).contains("frames"));
        let network = NetworkReport {
            device: "eth1".into(),
            delivered: 11,
            sent: 12,
            unknown: 13,
            lane_full: 14,
            device_full: 15,
            missed: 16,
            spoofed: 17,
            invalid: 18,
            too_long: 19,
            for_broken: 20,
            broken: vec!["web".into()],
        };
        let text = text(&json!({ "network": network }));
        for line in [
            "# TYPE headway_host_frames_total counter",
            "headway_host_frames_total{direction=\"in\"} 11",
            "headway_host_frames_total{direction=\"out\"} 12",
            "headway_host_lost_frames_total{reason=\"unknown\"} 13",
            "headway_host_lost_frames_total{reason=\"lane_full\"} 14",
            "headway_host_lost_frames_total{reason=\"device_full\"} 15",
            "headway_host_lost_frames_total{reason=\"missed\"} 16",
            "headway_host_lost_frames_total{reason=\"spoofed\"} 17",
            "headway_host_lost_frames_total{reason=\"invalid\"} 18",
            "headway_host_lost_frames_total{reason=\"too_long\"} 19",
            "headway_host_lost_frames_total{reason=\"for_broken\"} 20",
            "headway_host_cut_off_apps 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }

    #[test]
    fn applications_and_durations_are_there() {
        let status = json!({
            "apps": [{ "name": "kv", "cores": [0, 1], "unusable_cores": [1], "core_ns": 2_500_000_000_u64, "grants": 7 }],
            "grant": { "count": 3, "sum_ns": 6000, "cumulative": [[1024, 1], [2048, 3]] },
        });
        let text = text(&status);
        for line in [
            "headway_host_app_cores{app=\"kv\"} 2",
            "headway_host_app_unusable_cores{app=\"kv\"} 1",
            "headway_host_app_core_seconds_total{app=\"kv\"} 2.5",
            "# TYPE headway_host_grant_seconds histogram",
            "headway_host_grant_seconds_bucket{le=\"0.000001024\"} 1",
            "headway_host_grant_seconds_bucket{le=\"+Inf\"} 3",
            "headway_host_grant_seconds_sum 0.000006",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }
}
