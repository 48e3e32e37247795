//! A server that answers by plan.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use headway_load::{Extent, Load};
use headway_net::header::{Flag, Header, Status};
use headway_workload::{Class, Offered, ServiceDistribution, Workload};
use nix::sys::socket::{setsockopt, sockopt};

/// The fate of a request at the test's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answer,
    Drop,
    /// Answered by another socket than the one asked.
    Elsewhere,
    /// Answered twice.
    Twice,
    /// Answered after the last request was received.
    Hold,
    /// A datagram shorter than the header comes back.
    Short,
    /// The request comes back, not marked as a response.
    Echo,
    /// The reply has another class.
    WrongClass,
    /// The reply has an index that no request has.
    WrongIndex,
    Refuse(Status),
}

/// A server thread; stopped when dropped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Which types came.
    types: Arc<Mutex<BTreeSet<u8>>>,
    thread: Option<JoinHandle<()>>,
}

/// The service time that the server reports for each request.
pub(crate) const EXECUTION_NS: u64 = 2_000;

impl Server {
    /// Treats the request of each index by its fate; requests beyond the list are answered.
    pub(crate) fn with(fates: Vec<Fate>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        hold_all_requests(&socket);
        let addr = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let types = Arc::<Mutex<BTreeSet<u8>>>::default();
        let came = Arc::clone(&types);
        let thread = Some(std::thread::spawn(move || {
            serve(&socket, &fates, &stopped, &came);
        }));
        Self {
            addr,
            stop,
            types,
            thread,
        }
    }

    /// The types of the requests so far, each once, in order.
    pub(crate) fn types(&self) -> Vec<u8> {
        self.types.lock().unwrap().iter().copied().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))), "the server panicked");
    }
}

/// Room for every request of a test while this server's thread waits for a core: the kernel charges a full
/// datagram 2.3 kB and keeps 208 KiB by default, which 20 ms without a core overflow.
fn hold_all_requests(socket: &UdpSocket) {
    const BYTES: usize = 4 << 20;
    setsockopt(socket, sockopt::RcvBufForce, &BYTES)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &BYTES))
        .unwrap();
}

fn serve(socket: &UdpSocket, fates: &[Fate], stop: &AtomicBool, types: &Mutex<BTreeSet<u8>>) {
    let mut held = Vec::new();
    let elsewhere = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, client)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let (request, _) = Header::parse(&buffer[..len]).unwrap();
        types.lock().unwrap().insert(request.class);
        let index = request.index as usize;
        let ok = request.response(Status::Ok, EXECUTION_NS).encode();
        let send = |bytes: &[u8]| drop(socket.send_to(bytes, client));
        match fates.get(index).copied().unwrap_or(Fate::Answer) {
            Fate::Answer => send(&ok),
            Fate::Elsewhere => drop(elsewhere.send_to(&ok, client)),
            Fate::Drop => {}
            Fate::Twice => (send(&ok), send(&ok)).0,
            Fate::Hold => held.push(ok),
            Fate::Short => send(&ok[..9]),
            Fate::Echo => send(&buffer[..len]),
            Fate::WrongClass => send(
                &Header {
                    class: request.class + 1,
                    ..Header::decode(ok)
                }
                .encode(),
            ),
            Fate::WrongIndex => send(
                &Header {
                    index: u32::MAX,
                    ..Header::decode(ok)
                }
                .encode(),
            ),
            Fate::Refuse(status) => send(
                &Header {
                    flag: Flag::response(status),
                    ..request
                }
                .encode(),
            ),
        }
        if index + 1 == fates.len() {
            held.drain(..).for_each(|reply| send(&reply));
        }
    }
}

/// Two classes of 1 and 10 µs, half and half.
pub(crate) fn workload() -> Workload {
    let class =
        |name: &str, mean_ns| Class::new(name, 0.5, ServiceDistribution::Constant { mean_ns });
    Workload::new("two", vec![class("short", 1_000), class("long", 10_000)])
}

/// The time for replies, ns. Only requests that are lost take it: a run ends once all are answered.
pub(crate) const FOREVER_NS: u64 = 60_000_000_000;

/// The time for replies where the server leaves some requests unanswered, ns. Any wait of the server's thread for a core is shorter.
pub(crate) const LOSSY_NS: u64 = 5_000_000_000;

/// `count` requests at 5 000 per second, all measured.
pub(crate) fn load(target: SocketAddr, count: u64) -> Load {
    let mut load = Load::new(
        target,
        workload(),
        Offered::Rate(5_000.0),
        Extent::Requests { count },
    );
    load.warm_up = 0.0;
    load.timeout_ns = FOREVER_NS;
    load
}
