//! A running process over HTTP: its counters as Prometheus reads them, a page for people, and the status that the page shows.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::descriptors::AcceptFailures;
use headway_machine::thread::fork::ParentsOnly;
use nix::sys::socket::{Shutdown, shutdown};
use serde_json::Value;

/// The type of metrics in the text format of OpenMetrics.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The type of metrics in Prometheus' own text format.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4";

/// The total time that a client gets.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients served at the same time; the server hangs up on further ones.
const CLIENTS_MAX: usize = 16;
/// Above the length of any scraper's request line.
const REQUEST_BYTES_MAX: usize = 4096;

/// The content that a server shows.
pub trait Site: Send + Sync + 'static {
    /// The self-contained HTML page, which fetches the status.
    fn page(&self) -> &'static str;
    /// The status.
    fn status(&self) -> Value;
    /// The metrics.
    fn metrics(&self) -> String;
    /// The type of the metrics: [`OPENMETRICS`] or [`PROMETHEUS_TEXT`].
    fn metrics_type(&self) -> &'static str;
}

impl<S: Site> Site for Arc<S> {
    fn page(&self) -> &'static str {
        (**self).page()
    }

    fn status(&self) -> Value {
        (**self).status()
    }

    fn metrics(&self) -> String {
        (**self).metrics()
    }

    fn metrics_type(&self) -> &'static str {
        (**self).metrics_type()
    }
}

/// A bound port that does not answer yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: Arc<ParentsOnly<TcpListener>>,
    addr: SocketAddr,
}

impl HttpServer {
    /// Binds the port; 0 lets the system choose.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let listener = Arc::new(ParentsOnly::new(listener));
        Ok(Self { listener, addr })
    }

    /// Answers clients, each in a thread of its own, until what this returns is dropped.
    ///
    /// # Errors
    /// The system has no thread or descriptor for it.
    pub fn answer(self, site: impl Site) -> io::Result<HttpAnswering> {
        let Self { listener, addr } = self;
        let site = Arc::new(site);
        let ending = Arc::new(AtomicBool::new(false));
        let (accepted, ends) = (Arc::clone(&listener), Arc::clone(&ending));
        let mut failures = AcceptFailures::new(format!("http://{addr}"));
        let thread = std::thread::Builder::new()
            .name("hw-metrics".into())
            .spawn(move || {
                let clients = Arc::new(());
                for stream in accepted.incoming() {
                    match stream {
                        Ok(_) if Arc::strong_count(&clients) > CLIENTS_MAX => {}
                        Ok(stream) => serve(stream, &site, &clients),
                        Err(_) if ends.load(Ordering::Acquire) => return,
                        Err(error) => {
                            failures.tell(&error);
                            std::thread::sleep(AcceptFailures::RETRY);
                        }
                    }
                }
            })?;
        Ok(HttpAnswering {
            listener,
            addr,
            thread: Some(thread),
            ending,
            process: std::process::id(),
        })
    }
}

/// The thread that answers. Dropping this ends it; a client that is being served has its thread for up to two seconds more.
#[derive(Debug)]
pub struct HttpAnswering {
    listener: Arc<ParentsOnly<TcpListener>>,
    addr: SocketAddr,
    /// There until this is dropped.
    thread: Option<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
    /// Of the thread.
    process: u32,
}

impl HttpAnswering {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for HttpAnswering {
    fn drop(&mut self) {
        // In a child of a fork the thread is the parent's, and so is the socket: the descriptor is closed there, and its number may be another's.
        if self.process != std::process::id() {
            std::mem::forget(Arc::clone(&self.listener));
            return;
        }
        self.ending.store(true, Ordering::Release);
        // The thread's call returns, and so do later ones.
        if shutdown(self.listener.as_fd().as_raw_fd(), Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It does not panic, and there would be no remedy.
            let _ = thread.join();
        }
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

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn answer(mut stream: TimedStream, site: &impl Site) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES_MAX];
    let mut length = 0;
    let head = loop {
        if let Some(end) = head_end(&request[..length]) {
            break Some(&request[..end]);
        }
        if length == request.len() {
            break None;
        }
        match stream.read(&mut request[length..])? {
            0 => break None,
            read => length += read,
        }
    };
    let answer = head.map_or_else(HttpAnswer::to_no_request, |head| answer_to(head, site));
    stream.write_all(answer.text().as_bytes())?;
    stream.flush()?;
    // A socket that is closed over bytes that it did not read takes the answer back: what else the client sends, such as a body, is read first.
    shutdown(stream.stream.as_raw_fd(), Shutdown::Write)?;
    let has_more = head.is_none_or(|head| head.len() < length || !answer.is_read);
    while has_more && stream.read(&mut request)? > 0 {}
    Ok(())
}

/// Where the lines of a request end: what follows is a body.
fn head_end(request: &[u8]) -> Option<usize> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    end.map(|end| end + 4)
}

/// The page may run its own script and style, and connect to this server only.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";

struct HttpAnswer {
    status: &'static str,
    kind: &'static str,
    body: String,
    /// Whether the client asked to read something: by GET or HEAD, which have no body.
    is_read: bool,
    /// Whether the answer is to a HEAD: the same without the body.
    is_head: bool,
}

impl HttpAnswer {
    fn refusal(status: &'static str, why: &str) -> Self {
        Self {
            status,
            kind: "text/plain",
            body: format!("{why}\n"),
            is_read: false,
            is_head: false,
        }
    }

    /// To bytes that are no request, or one that is too long: who it asks may be in the rest.
    fn to_no_request() -> Self {
        let why = format!("a request has an empty line within its first {REQUEST_BYTES_MAX} bytes");
        Self::refusal("431 Request Header Fields Too Large", &why)
    }

    fn text(&self) -> String {
        let Self {
            status, kind, body, ..
        } = self;
        let allow = if status.starts_with("405") {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        };
        let shown = if self.is_head { "" } else { body };
        format!(
            "HTTP/1.1 {status}\r\n{allow}Content-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\nConnection: close\r\n\r\n{shown}",
            body.len()
        )
    }
}

/// The first line of a request.
struct RequestLine<'a> {
    method: &'a str,
    /// Of `http://HOST/PATH`, as a client asks a proxy.
    host: Option<&'a str>,
    /// Without the query, which changes nothing here.
    path: &'a str,
}

impl<'a> RequestLine<'a> {
    fn parse(head: &'a [u8]) -> Option<Self> {
        let head = std::str::from_utf8(head).ok()?;
        let mut parts = head.lines().next()?.split(' ');
        let (method, target) = (parts.next()?, parts.next()?);
        if !parts.next()?.starts_with("HTTP/1.") || parts.next().is_some() {
            return None;
        }
        const SCHEME: &str = "http://";
        let (host, target) = match target.get(..SCHEME.len()) {
            Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => {
                let rest = &target[SCHEME.len()..];
                let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                (Some(host), path)
            }
            _ => (None, target),
        };
        let path = target.split('?').next()?;
        // Of an address without a path, that is the root.
        let path = if host.is_some() && path.is_empty() {
            "/"
        } else {
            path
        };
        Some(Self { method, host, path })
    }
}

fn answer_to(head: &[u8], site: &impl Site) -> HttpAnswer {
    let Some(request) = RequestLine::parse(head) else {
        return HttpAnswer::refusal("400 Bad Request", "this is no request of HTTP/1.1");
    };
    if !asks_this_machine(head) || !request.host.is_none_or(is_this_machine) {
        let why = "ask for this machine by its address, its name or localhost";
        return HttpAnswer::refusal("421 Misdirected Request", why);
    }
    let is_head = request.method == "HEAD";
    let is_read = is_head || request.method == "GET";
    let (status, kind, body) = match request.path {
        "/" | "/status" | "/metrics" if !is_read => {
            let why = "GET and HEAD are all that is answered here";
            return HttpAnswer::refusal("405 Method Not Allowed", why);
        }
        "/metrics" => ("200 OK", site.metrics_type(), site.metrics()),
        "/status" => ("200 OK", "application/json", site.status().to_string()),
        "/" => ("200 OK", "text/html; charset=utf-8", site.page().to_owned()),
        _ => {
            let body = "GET /, /status and /metrics are all there is\n".to_owned();
            ("404 Not Found", "text/plain", body)
        }
    };
    HttpAnswer {
        status,
        kind,
        body,
        is_read,
        is_head,
    }
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

        fn metrics_type(&self) -> &'static str {
            PROMETHEUS_TEXT
        }
    }

    fn ask(at: SocketAddr, host: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\n{host}\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn server() -> HttpAnswering {
        let server = HttpServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        server.answer(Nothing).unwrap()
    }

    #[test]
    fn a_port_is_free_once_nobody_answers_there() {
        let server = server();
        let at = server.addr();
        assert!(ask(at, "").ends_with("metrics"));
        drop(server);
        assert!(TcpStream::connect(at).is_err());
    }

    fn say(at: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_query_a_head_and_an_absolute_target_are_answered() {
        let server = server();
        let at = server.addr();
        for target in [
            "/metrics?x=1&y=/",
            "http://127.0.0.1:9100/metrics",
            "HTTP://localhost/metrics?x",
        ] {
            let said = say(at, &format!("GET {target} HTTP/1.1\r\nHost: {at}\r\n\r\n"));
            assert!(said.ends_with("\r\n\r\nmetrics"), "{target}: {said}");
        }
        let said = say(at, &format!("GET http://{at} HTTP/1.1\r\n\r\n"));
        assert!(said.ends_with("\r\n\r\npage"), "{said}");
        let head = say(at, "HEAD /metrics HTTP/1.1\r\n\r\n");
        let all = say(at, "GET /metrics HTTP/1.1\r\n\r\n");
        assert_eq!(format!("{head}metrics"), all);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }

    #[test]
    fn what_is_not_answered_hears_why() {
        let server = server();
        let at = server.addr();
        // As much as a client sends before it reads an answer.
        let body = "x".repeat(100_000);
        let post = "POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
        let said = say(at, &format!("{post}{body}"));
        assert!(said.starts_with("HTTP/1.1 405"), "{said}");
        assert!(said.contains("\r\nAllow: GET, HEAD\r\n"), "{said}");
        let said = say(at, "POST /other HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 404"), "{said}");
        let said = say(at, "metrics\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    }

    /// Who it asks may be named after so long a query.
    #[test]
    fn a_request_that_is_too_long_reads_nothing() {
        let server = server();
        let query = "x".repeat(REQUEST_BYTES_MAX);
        let request = format!("GET /metrics?{query} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        let said = say(server.addr(), &request);
        assert!(said.starts_with("HTTP/1.1 431"), "{said}");
    }

    #[test]
    fn an_absolute_target_of_somebody_else_reads_nothing() {
        let server = server();
        let at = server.addr();
        for (target, host) in [
            ("http://evil.example/metrics", "localhost"),
            ("http://localhost/metrics", "evil.example"),
            ("http:///metrics", "localhost"),
            (
                "http://x@evil.example/metrics?http://localhost",
                "localhost",
            ),
        ] {
            let said = say(
                at,
                &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            );
            assert!(said.starts_with("HTTP/1.1 421"), "{target}: {said}");
        }
    }

    #[test]
    fn a_client_that_drips_holds_up_nobody() {
        let server = server();
        let at = server.addr();
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
        let server = server();
        let at = server.addr();
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
