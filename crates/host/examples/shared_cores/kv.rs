//! A key-value server of kthreads: it answers each datagram, a key, with the sum of a range of values from there on.

use headway_host::client::{ClientOptions, HostClient};
use headway_kthread::CoreSource;
use headway_machine::thread as own_thread;
use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time that kthreads look for work before they give their core back (Shenango § 5).
const PATIENCE: Duration = Duration::from_micros(2);
const KEYS: u64 = 1 << 18;
/// Values of a range: tens of microseconds.
const RANGE: usize = 2_000;

struct Request {
    bytes: [u8; 16],
    from: SocketAddr,
}

struct Server {
    client: HostClient,
    socket: UdpSocket,
    store: BTreeMap<u64, u64>,
    queue: Mutex<VecDeque<Request>>,
    queued: AtomicUsize,
}

/// Serves until it is killed. Prints its port.
pub(crate) fn serve(daemon: &Path, kthreads: usize) -> Result<(), Box<dyn std::error::Error>> {
    let options = ClientOptions {
        // Requests are short, and kthreads look at their orders between two of them.
        probes: true,
        ..ClientOptions::new("kv", kthreads)
    };
    let server = Arc::new(Server {
        client: HostClient::register(daemon, &options)?,
        socket: UdpSocket::bind("127.0.0.1:0")?,
        store: (0..KEYS)
            .map(|key| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15), key))
            .collect(),
        queue: Mutex::default(),
        queued: AtomicUsize::new(0),
    });
    println!("{}", server.socket.local_addr()?.port());
    for kthread in 0..server.client.kthreads() {
        let server = Arc::clone(&server);
        thread::spawn(move || server.work(kthread));
    }
    server.take_in()
}

impl Server {
    /// Receives datagrams. The thread mostly sleeps, and runs as soon as one arrives.
    fn take_in(&self) -> Result<(), Box<dyn std::error::Error>> {
        own_thread::stay_responsive();
        let mut bytes = [0; 16];
        loop {
            let (length, from) = self.socket.recv_from(&mut bytes)?;
            if length != bytes.len() {
                continue;
            }
            self.lock().push_back(Request { bytes, from });
            self.queued.fetch_add(1, Ordering::Release);
            self.client.put(1);
            self.client.notify();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Request>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, kthread: usize) {
        let mut grant = self.client.enter(kthread);
        let mut idle_since = Instant::now();
        loop {
            if self.client.orders(kthread).is_revoked(grant) {
                grant = self.client.leave(kthread, grant, &mut || true);
            } else if let Some(request) = self.take() {
                self.answer(&request);
                idle_since = Instant::now();
            } else if idle_since.elapsed() > PATIENCE {
                let mut finds_nothing = || self.queued.load(Ordering::Acquire) == 0;
                grant = self.client.leave(kthread, grant, &mut finds_nothing);
                idle_since = Instant::now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn take(&self) -> Option<Request> {
        if self.queued.load(Ordering::Acquire) == 0 {
            return None;
        }
        let request = self.lock().pop_front()?;
        self.queued.fetch_sub(1, Ordering::AcqRel);
        self.client.took(1);
        Some(request)
    }

    fn answer(&self, request: &Request) {
        let (number, key) = request.bytes.split_at(8);
        let key = u64::from_le_bytes(key.try_into().expect("eight bytes"));
        let values = self.store.range(key..).take(RANGE);
        let sum = values.fold(0_u64, |sum, (_, value)| sum.wrapping_add(*value));
        let mut response = [0; 16];
        response[..8].copy_from_slice(number);
        response[8..].copy_from_slice(&sum.to_le_bytes());
        // The client may be gone.
        let _ = self.socket.send_to(&response, request.from);
    }
}
