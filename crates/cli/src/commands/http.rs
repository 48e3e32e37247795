//! A running command over HTTP: its counters as Prometheus reads them, a page for people, and the status that the page shows.

use crate::commands::serve::config::Sourced;
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// The timeout for a client that neither sends nor reads.
const PATIENCE: Duration = Duration::from_secs(2);
/// Above the length of any scraper's request line.
const REQUEST_BYTES_MAX: usize = 4096;

/// The content that a server shows.
pub(crate) trait Site: Send + Sync + 'static {
    /// The self-contained HTML page, which fetches the status.
    fn page(&self) -> &'static str;
    /// The status.
    fn status(&self) -> Value;
    /// The status in the text format of Prometheus.
    fn metrics(&self) -> String;
}

/// A bound port that does not answer yet.
pub(crate) struct HttpServer {
    listener: TcpListener,
}

impl HttpServer {
    pub(crate) fn bind(place: &Sourced<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind(place.value).map_err(|error| {
            place.refused(format!(
                "cannot listen at {}: {error}; choose another port",
                place.value
            ))
        })?;
        Ok(Self { listener })
    }

    /// Answers one client after the other until the process ends.
    pub(crate) fn answer(self, site: Arc<impl Site>) -> Result<()> {
        let at = self.listener.local_addr()?;
        eprintln!("Prometheus finds it at http://{at}/metrics, and a browser at http://{at}/");
        std::thread::Builder::new()
            .name("hw-metrics".into())
            .spawn(move || {
                for stream in self.listener.incoming() {
                    match stream {
                        // A client that hung up does not read the answer.
                        Ok(stream) => drop(answer(stream, &*site)),
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
                    }
                }
            })
            .context("cannot start the thread that answers Prometheus")?;
        Ok(())
    }
}

fn answer(mut stream: TcpStream, site: &impl Site) -> std::io::Result<()> {
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
    let HttpAnswer { status, kind, body } = answer_to(&request[..length], site);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// The page may run its own script and style, and connect to this server only.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";

struct HttpAnswer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

fn answer_to(request: &[u8], site: &impl Site) -> HttpAnswer {
    let asks = |path: &str| request.starts_with(format!("GET {path} ").as_bytes());
    let (status, kind, body) = if asks("/metrics") {
        ("200 OK", "text/plain; version=0.0.4", site.metrics())
    } else if asks("/status") {
        ("200 OK", "application/json", site.status().to_string())
    } else if asks("/") {
        ("200 OK", "text/html; charset=utf-8", site.page().to_owned())
    } else {
        let body = "GET /, /status and /metrics are all there is\n".to_owned();
        ("404 Not Found", "text/plain", body)
    };
    HttpAnswer { status, kind, body }
}
