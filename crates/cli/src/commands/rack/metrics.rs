//! A switch over HTTP.

use super::status::RackSubject;
use headway_ops::http::{PROMETHEUS_TEXT, Site};
use serde_json::Value;
use std::fmt::Write as _;

/// A page without external resources: groups, servers, demand beside allocation, bursts and bounces.
const PAGE: &str = include_str!("page.html");

impl Site for RackSubject {
    fn page(&self) -> &'static str {
        PAGE
    }

    fn status(&self) -> Value {
        RackSubject::status(self)
    }

    fn metrics(&self) -> String {
        text(&RackSubject::status(self))
    }

    fn metrics_type(&self) -> &'static str {
        PROMETHEUS_TEXT
    }
}

/// The status in the text format of Prometheus.
fn text(status: &Value) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, samples: Vec<(String, f64)>| {
        // Writing into a string does not fail.
        let _ = writeln!(text, "# TYPE headway_rack_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "headway_rack_{name}{labels} {value}");
        }
    };
    let counts = status["counts"].as_object().into_iter().flatten();
    let counts = counts.map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), number(count)));
    metric("packets_total", "counter", counts.collect());
    let agents = status["agents"].as_object().into_iter().flatten();
    let agents = agents.filter(|(_, count)| count.is_u64());
    let agents = agents.map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), number(count)));
    metric("agent_packets_total", "counter", agents.collect());
    let lost = status["port"].as_object().into_iter().flatten();
    // An answer from another address was sent.
    let lost = lost.filter(|(kind, count)| count.is_u64() && *kind != "other_source");
    let lost = lost.map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), number(count)));
    metric("port_lost_packets_total", "counter", lost.collect());
    let other = Some(&status["port"]["other_source"]).filter(|count| count.is_u64());
    let other = other.map(|count| (String::new(), number(count)));
    metric("other_source_total", "counter", other.into_iter().collect());
    metric(
        "layouts_total",
        "counter",
        vec![(String::new(), number(&status["layouts"]))],
    );
    metric(
        "under_way",
        "gauge",
        vec![(String::new(), number(&status["under_way"]))],
    );
    for field in ["answered", "exceeded"] {
        let bounds = array(&status["slo"]).iter();
        let counted = bounds.filter(|bound| bound[field].is_u64());
        let counted = counted.map(|bound| {
            let labels = format!("{{bound={}}}", bound["bound"]);
            (labels, number(&bound[field]))
        });
        metric(&format!("slo_{field}_total"), "counter", counted.collect());
    }
    for (name, field) in [
        ("server_cores", "counted_cores"),
        ("server_unanswered", "unanswered"),
    ] {
        let servers = array(&status["servers"]).iter().map(|server| {
            let labels = format!("{{server={}}}", server["server"]);
            (labels, number(&server[field]))
        });
        metric(name, "gauge", servers.collect());
    }
    for (name, kind, samples) in of_types(status) {
        metric(name, kind, samples);
    }
    metric(
        "overflowed_total",
        "counter",
        vec![(String::new(), number(&status["overflowed"]))],
    );
    for (name, samples) in of_groups(status) {
        metric(name, "gauge", samples);
    }
    text
}

/// Values with their labels.
type Samples = Vec<(String, f64)>;

/// The metrics of each type: name, kind and samples. What is not known is left out.
fn of_types(status: &Value) -> [(&'static str, &'static str, Samples); 3] {
    [
        ("type_requests_total", "counter", "requests"),
        ("type_demand_cores", "gauge", "demand_cores"),
        ("type_mean_us", "gauge", "mean_us"),
    ]
    .map(|(name, kind, field)| {
        let known = array(&status["types"]).iter();
        let known = known.filter(|of_type| of_type[field].is_number());
        let known = known.map(|of_type| {
            let labels = format!("{{type=\"{}\"}}", of_type["type"]);
            (labels, number(&of_type[field]))
        });
        (name, kind, known.collect())
    })
}

/// The gauges of each group.
fn of_groups(status: &Value) -> [(&'static str, Samples); 2] {
    [
        ("group_cores", "cores"),
        ("group_demand_cores", "demand_cores"),
    ]
    .map(|(name, field)| {
        let groups = array(&status["groups"]).iter().map(|group| {
            let labels = format!("{{group=\"{}\"}}", group["group"]);
            (labels, number(&group[field]))
        });
        (name, groups.collect())
    })
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_metric_has_its_type_and_its_labels() {
        let status = json!({
            "counts": { "requests": 7 },
            "port": { "unsent": 3, "rejected": null, "other_source": 4 },
            "layouts": 2,
            "overflowed": 9,
            "types": [{ "type": 3, "requests": 5, "mean_us": null, "demand_cores": 1.5 }],
            "under_way": 1,
            "servers": [{ "server": "10.0.0.1:7000", "counted_cores": 4, "unanswered": 3 }],
            "slo": [{ "bound": "class.GET.latency.p99<=250us", "answered": 100, "exceeded": 2, "met": false }],
            "groups": [{ "group": 0, "cores": 4, "demand_cores": 3.5 }],
        });
        let text = text(&status);
        for line in [
            "# TYPE headway_rack_packets_total counter",
            "headway_rack_packets_total{kind=\"requests\"} 7",
            "headway_rack_port_lost_packets_total{kind=\"unsent\"} 3",
            "headway_rack_other_source_total 4",
            "headway_rack_layouts_total 2",
            "headway_rack_overflowed_total 9",
            "headway_rack_type_requests_total{type=\"3\"} 5",
            "headway_rack_type_demand_cores{type=\"3\"} 1.5",
            "headway_rack_slo_exceeded_total{bound=\"class.GET.latency.p99<=250us\"} 2",
            "headway_rack_server_cores{server=\"10.0.0.1:7000\"} 4",
            "headway_rack_server_unanswered{server=\"10.0.0.1:7000\"} 3",
            "headway_rack_group_demand_cores{group=\"0\"} 3.5",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(!text.contains("rejected"), "what is not known: {text}");
    }
}
