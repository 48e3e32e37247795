//! An open-loop client: it sends when a request is due, whatever became of those before, and latency counts from when it was due.
//!
//! It stands for another machine's: its two threads go before all others where the system lets them, and one keeps time by itself, since Tokio's timers count
//! milliseconds.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use headway_machine::thread::{Responsiveness, stay_responsive};
use headway_policy::Rng;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::service::{POINT, REPORT};

/// The share of reports.
const REPORTS: f64 = 0.1;

/// Of the capacity.
pub(super) const CORES: f64 = 2.0;

/// After the last request was sent, how long answers are waited for. What has none by then never gets any.
const GRACE: Duration = Duration::from_secs(2);

/// Descriptors of the process for all else than connections, of which each has two.
const OTHER_DESCRIPTORS: u64 = 256;

/// A request and its end.
pub(super) struct Answered {
    pub(super) is_report: bool,
    /// 0 for none in time.
    pub(super) status: u16,
    /// When it was due, since the first one was.
    pub(super) due: Duration,
    /// From when it was due to its answer.
    pub(super) latency: Duration,
    /// Since the first request was due.
    pub(super) ended: Duration,
}

/// A request that is due now.
struct DueRequest {
    due: Duration,
    is_report: bool,
}

/// How a client's threads are scheduled beside the service's.
pub(super) fn responsiveness() -> Responsiveness {
    let tried = thread::spawn(stay_responsive).join();
    tried.expect("a thread that asks for its priority ends")
}

/// Raises the limit of descriptors as far as this process may. A way that is overloaded has thousands of requests outstanding; beyond the connections that there can
/// be, they wait at the client for one, in their order.
fn most_connections() -> Result<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let descriptors = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    let connections = descriptors.saturating_sub(OTHER_DESCRIPTORS) / 2;
    Ok(connections.clamp(1, Semaphore::MAX_PERMITS as u64) as usize)
}

/// Sends requests at this load for so long, and returns what became of each.
///
/// # Errors
/// When a connection breaks.
pub(super) fn drive(
    address: SocketAddr,
    load: f64,
    span: Duration,
    seed: u64,
) -> Result<Vec<Answered>> {
    let mean = POINT.as_secs_f64() * (1.0 - REPORTS) + REPORT.as_secs_f64() * REPORTS;
    let rate = load * CORES / mean;
    let start = Instant::now();
    let (sender, receiver) = unbounded_channel();
    thread::scope(|scope| {
        scope.spawn(move || keep_time(start, rate, span, seed, &sender));
        let client = scope.spawn(move || {
            stay_responsive();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let give_up = start + span + GRACE;
            runtime.block_on(send_all(address, start, give_up, receiver))
        });
        client.join().expect("the client does not panic")
    })
}

/// Says when each request is due, at that time.
fn keep_time(
    start: Instant,
    rate: f64,
    span: Duration,
    seed: u64,
    client: &UnboundedSender<DueRequest>,
) {
    stay_responsive();
    let mut rng = Rng::new(seed);
    let mut uniform = move || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut due = Duration::ZERO;
    while due < span {
        due += Duration::from_secs_f64(-(1.0 - uniform()).ln() / rate);
        let is_report = uniform() < REPORTS;
        thread::sleep((start + due).saturating_duration_since(Instant::now()));
        if client.send(DueRequest { due, is_report }).is_err() {
            return;
        }
    }
}

async fn send_all(
    address: SocketAddr,
    start: Instant,
    give_up: Instant,
    mut requests: UnboundedReceiver<DueRequest>,
) -> Result<Vec<Answered>> {
    let connections = Arc::new(Connections::most(most_connections()?));
    let mut sent = Vec::new();
    while let Some(DueRequest { due, is_report }) = requests.recv().await {
        let connections = Arc::clone(&connections);
        sent.push(tokio::spawn(async move {
            let asked =
                tokio::time::timeout_at(give_up.into(), connections.ask(address, is_report));
            let status = match asked.await {
                Ok(answer) => answer?,
                Err(_) => 0,
            };
            let ended = start.elapsed();
            let latency = ended.saturating_sub(due);
            Ok::<_, anyhow::Error>(Answered {
                is_report,
                status,
                due,
                latency,
                ended,
            })
        }));
    }
    let mut answers = Vec::with_capacity(sent.len());
    for request in sent {
        answers.push(request.await??);
    }
    Ok(answers)
}

/// Of a client: one for each request that is outstanding.
struct Connections {
    idle: Mutex<Vec<TcpStream>>,
    free: Semaphore,
}

impl Connections {
    fn most(count: usize) -> Self {
        Self {
            idle: Mutex::default(),
            free: Semaphore::new(count),
        }
    }

    /// One request over a connection that is idle, or a new one. Returns the status.
    async fn ask(&self, address: SocketAddr, is_report: bool) -> Result<u16> {
        let _one = self.free.acquire().await?;
        let kept = self.idle().pop();
        let mut stream = match kept {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        let path = if is_report { "/report" } else { "/point" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::with_capacity(512);
        loop {
            if stream.read_buf(&mut answer).await? == 0 {
                bail!("the service closed a connection");
            }
            if let Some(status) = complete(&answer)? {
                self.idle().push(stream);
                return Ok(status);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The status of a response whose headers and body are there.
fn complete(answer: &[u8]) -> Result<Option<u16>> {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Ok(None);
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.context("a response without its length")?;
    let status = head
        .split(' ')
        .nth(1)
        .context("a response without status")?;
    Ok((body.len() >= length).then_some(status.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_complete_with_its_body() {
        let head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\n";
        assert_eq!(complete(head).unwrap(), None);
        assert_eq!(complete(&[&head[..], b"busy"].concat()).unwrap(), Some(503));
        assert!(complete(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
