//! A running command over HTTP: its counters as Prometheus reads them, a page for people, and the status that the page shows.

use crate::commands::serve::config::Sourced;
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The total time that a client gets.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients served at the same time; the server hangs up on further ones.
const CLIENTS_MAX: usize = 16;
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

    /// Answers clients until the process ends, each in a thread of its own.
    pub(crate) fn answer(self, site: Arc<impl Site>) -> Result<()> {
        let at = self.listener.local_addr()?;
        eprintln!("Prometheus finds it at http://{at}/metrics, and a browser at http://{at}/");
        std::thread::Builder::new()
            .name("hw-metrics".into())
            .spawn(move || {
                let clients = Arc::new(());
                for stream in self.listener.incoming() {
                    match stream {
                        Ok(_) if Arc::strong_count(&clients) > CLIENTS_MAX => {}
                        Ok(stream) => serve(stream, &site, &clients),
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
                    }
                }
            })
            .context("cannot start the thread that answers Prometheus")?;
        Ok(())
    }
}

/// Answers a client in a thread, which counts by its share of `clients`.
fn serve(stream: TcpStream, site: &Arc<impl Site>, clients: &Arc<()>) {
    let (site, client) = (Arc::clone(site), Arc::clone(clients));
    let thread = std::thread::Builder::new().name("hw-page".into());
    // A client that hung up does not read the answer, and one for which there is no thread asks again.
    let _ = thread.spawn(move || {
        let _client = client;
        answer(TimedStream::new(stream), &*site)
    });
}

/// A client's connection until its time is over, however often it sends or reads a byte.
struct TimedStream {
    stream: TcpStream,
    until: Instant,
}

impl TimedStream {
    fn new(stream: TcpStream) -> Self {
        let until = Instant::now() + PATIENCE;
        Self { stream, until }
    }

    fn left(&self) -> std::io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

fn answer(mut stream: TimedStream, site: &impl Site) -> std::io::Result<()> {
    let mut request = [0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while length < request.len() && !request[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut request[length..])? {
            0 => break,
            read => length += read,
        }
    }
    let HttpAnswer { status, kind, body } = answer_to(&request[..length], site);
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes())?;
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
    if !asks_this_machine(request) {
        let body = "ask for this machine by its address, its name or localhost\n".to_owned();
        return HttpAnswer {
            status: "421 Misdirected Request",
            kind: "text/plain",
            body,
        };
    }
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

/// Whether the `Host` of a request, if it has one, is this machine: a page of somebody else, whose name leads here, must not read what is here.
fn asks_this_machine(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let mut hosts = text.lines().skip(1).filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    match (hosts.next(), hosts.next()) {
        (None, _) => true,
        (Some(host), None) => is_this_machine(host),
        (Some(_), Some(_)) => false,
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    if address.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (own, name) = (own.trim().to_lowercase(), name.to_lowercase());
    let rest = name.strip_prefix(&own).filter(|_| !own.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Site for Nothing {
        fn page(&self) -> &'static str {
            "page"
        }

        fn status(&self) -> Value {
            Value::Null
        }

        fn metrics(&self) -> String {
            "metrics".into()
        }
    }

    fn ask(at: SocketAddr, host: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\n{host}\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        HttpServer { listener }.answer(Arc::new(Nothing)).unwrap();
        at
    }

    #[test]
    fn a_client_that_drips_holds_up_nobody() {
        let at = server();
        let mut dripping: Vec<_> = (0..4).map(|_| TcpStream::connect(at).unwrap()).collect();
        for stream in &mut dripping {
            stream.write_all(b"G").unwrap();
        }
        assert!(ask(at, "").ends_with("metrics"));
        // Its time ends however often it sends something.
        let mut stream = dripping.remove(0);
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let begun = Instant::now();
        while !matches!(stream.read(&mut [0; 64]), Ok(0)) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "it is still served"
            );
            if stream.write_all(b"x").is_err() {
                break;
            }
        }
    }

    #[test]
    fn a_page_of_somebody_else_reads_nothing() {
        let at = server();
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let own = format!("{}:9100", own.trim());
        for host in [
            "127.0.0.1:9100",
            "[::1]:80",
            "localhost",
            "LOCALHOST:9100",
            &own,
        ] {
            let said = ask(at, &format!("Host: {host}\r\n"));
            assert!(said.ends_with("metrics"), "{host}: {said}");
        }
        for host in [
            "evil.example:9100",
            "",
            "127.0.0.1.evil.example",
            "localhost\r\nHost: x",
        ] {
            let said = ask(at, &format!("Host: {host}\r\n"));
            assert!(said.starts_with("HTTP/1.1 421"), "{host}: {said}");
        }
    }
}
