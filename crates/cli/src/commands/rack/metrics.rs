//! A switch over HTTP: its counters as Prometheus reads them, a page for people, and the status that the page shows.

use super::status::RackSubject;
use crate::commands::serve::config::Sourced;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A client that says nothing, or does not read, is left after so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// More than the request line of any scraper.
const REQUEST_BYTES_MAX: usize = 4096;

/// A port that is bound and answers nobody yet.
pub(super) struct MetricsServer {
    listener: TcpListener,
}

impl MetricsServer {
    pub(super) fn bind(place: &Sourced<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind(place.value).map_err(|error| {
            place.refused(format!(
                "cannot listen at {}: {error}; choose another port",
                place.value
            ))
        })?;
        Ok(Self { listener })
    }

    /// Answers from now on, one client after the other, until the process ends.
    pub(super) fn answer(self, subject: Arc<RackSubject>) -> Result<()> {
        let at = self.listener.local_addr()?;
        eprintln!("Prometheus finds it at http://{at}/metrics, and a browser at http://{at}/");
        std::thread::Builder::new()
            .name("hw-metrics".into())
            .spawn(move || {
                for stream in self.listener.incoming() {
                    match stream {
                        // The client may have hung up.
                        Ok(stream) => drop(answer(stream, &subject)),
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
                    }
                }
            })
            .context("cannot start the thread that answers Prometheus")?;
        Ok(())
    }
}

fn answer(mut stream: TcpStream, subject: &RackSubject) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while length < request.len() && !request[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut request[length..])? {
            0 => break,
            read => length += read,
        }
    }
    let HttpAnswer { status, kind, body } = answer_to(&request[..length], subject);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// The page runs its own script and style, and asks this server alone.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";

/// Groups, servers, demand beside allocation, bursts and bounces; whole in itself.
const PAGE: &str = include_str!("page.html");

struct HttpAnswer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

fn answer_to(request: &[u8], subject: &RackSubject) -> HttpAnswer {
    let asks = |path: &str| request.starts_with(format!("GET {path} ").as_bytes());
    let (status, kind, body) = if asks("/metrics") {
        (
            "200 OK",
            "text/plain; version=0.0.4",
            text(&subject.status()),
        )
    } else if asks("/status") {
        ("200 OK", "application/json", subject.status().to_string())
    } else if asks("/") {
        ("200 OK", "text/html; charset=utf-8", PAGE.to_owned())
    } else {
        let body = "GET /, /status and /metrics are all there is\n".to_owned();
        ("404 Not Found", "text/plain", body)
    };
    HttpAnswer { status, kind, body }
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
    for (name, field) in [
        ("group_cores", "cores"),
        ("group_demand_cores", "demand_cores"),
    ] {
        let groups = array(&status["groups"]).iter();
        let groups = groups.map(|group| {
            (
                format!("{{group=\"{}\"}}", group["group"]),
                number(&group[field]),
            )
        });
        metric(name, "gauge", groups.collect());
    }
    text
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
            "layouts": 2,
            "under_way": 1,
            "servers": [{ "server": "10.0.0.1:7000", "counted_cores": 4, "unanswered": 3 }],
            "groups": [{ "group": 0, "cores": 4, "demand_cores": 3.5 }],
        });
        let text = text(&status);
        for line in [
            "# TYPE headway_rack_packets_total counter",
            "headway_rack_packets_total{kind=\"requests\"} 7",
            "headway_rack_layouts_total 2",
            "headway_rack_server_cores{server=\"10.0.0.1:7000\"} 4",
            "headway_rack_server_unanswered{server=\"10.0.0.1:7000\"} 3",
            "headway_rack_group_demand_cores{group=\"0\"} 3.5",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }
}
