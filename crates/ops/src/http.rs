//! A running process over HTTP: its counters as Prometheus reads them, a page for people, and the status that the page shows.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
        let thread = std::thread::Builder::new()
            .name("hw-metrics".into())
            .spawn(move || {
                let clients = Arc::new(());
                for stream in accepted.incoming() {
                    match stream {
                        Ok(_) if Arc::strong_count(&clients) > CLIENTS_MAX => {}
                        Ok(stream) => serve(stream, &site, &clients),
                        Err(_) if ends.load(Ordering::Acquire) => return,
                        // The process is probably out of descriptors; the thread retries when some are free.
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
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
        ("200 OK", site.metrics_type(), site.metrics())
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
