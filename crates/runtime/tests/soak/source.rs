//! Where the requests of a trial come from: a replay, or UDP on this machine.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use headway_machine::Clock;
use headway_net::header::{Flag, Header, Status};
use headway_net::replay::{Replay, ReplayArrival, ReplayControl};
use headway_runtime::{Builder, NoSource, Server, Service, Stats};

use super::common::{loopback, wait_until};
use super::trial::Trial;

/// Requests at once that no socket's buffer drops.
const BURST: usize = 64;

/// A request that was answered or refused.
pub(crate) struct Answer {
    pub(crate) index: u32,
    pub(crate) refused: bool,
}

/// What sends a trial's requests.
pub(crate) enum Source {
    Replay(ReplayControl),
    Udp {
        sent: u64,
        ended: Arc<AtomicBool>,
        ear: Option<JoinHandle<Vec<Answer>>>,
    },
}

impl Source {
    /// Starts the server, and sends it the requests.
    pub(crate) fn start(trial: &Trial, builder: Builder<impl Service, NoSource>) -> (Server, Self) {
        if trial.by_udp {
            let server = builder.listen_udp(loopback()).start().unwrap();
            let source = Self::over_udp(trial, &server);
            return (server, source);
        }
        let mut schedules = vec![Vec::new(); trial.queues];
        for (index, (queue, at_ns, class)) in trial.arrivals().enumerate() {
            schedules[queue].push(ReplayArrival {
                at_ns,
                service_ns: index as u64 + 1,
                index: index as u32,
                class,
            });
        }
        let (datapath, control) = Replay::new(schedules).unwrap();
        let server = builder.datapath(datapath).start().unwrap();
        control.start(Clock::global().now_ns());
        (server, Self::Replay(control))
    }

    fn over_udp(trial: &Trial, server: &Server) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.local_addr().unwrap()).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let (hears, ear) = (Arc::clone(&ended), socket.try_clone().unwrap());
        let ear = std::thread::spawn(move || answers_at(&ear, &hears));
        let mut sent = 0;
        for (index, (_, _, class)) in trial.arrivals().enumerate() {
            let header = Header {
                class,
                flag: Flag::REQUEST,
                index: index as u32,
                time_ns: index as u32,
            };
            sent += u64::from(socket.send(&header.encode()).is_ok());
            if index % BURST == BURST - 1 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Self::Udp {
            sent,
            ended,
            ear: Some(ear),
        }
    }

    /// Waits until the server has taken everything in, or the kernel has dropped it.
    pub(crate) fn wait_for_all(&self, server: &Server) {
        wait_until("all were taken in", || match self {
            Self::Replay(control) => control.taken() == control.total(),
            Self::Udp { sent, .. } => {
                let stats = server.stats();
                stats.received + stats.kernel_drops == *sent
            }
        });
    }

    /// The requests that the server took in, as far as the source knows.
    pub(crate) fn taken(&self, stats: &Stats) -> u64 {
        match self {
            Self::Replay(control) => control.taken() as u64,
            Self::Udp { .. } => stats.received,
        }
    }

    /// Everything that was answered or refused, of a server that has ended.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        match self {
            Self::Replay(control) => {
                let done = control.take_completions();
                let done = done.iter().map(|done| Answer {
                    index: done.index,
                    refused: done.shed,
                });
                done.collect()
            }
            Self::Udp { ended, ear, .. } => {
                ended.store(true, Ordering::Release);
                let ear = ear.take().expect("it is asked once");
                ear.join().unwrap()
            }
        }
    }
}

/// What the client hears, until nothing came for a while after the end.
fn answers_at(socket: &UdpSocket, ended: &AtomicBool) -> Vec<Answer> {
    let quiet = Some(Duration::from_millis(20));
    socket.set_read_timeout(quiet).unwrap();
    let (mut answers, mut buffer) = (Vec::new(), [0; 2_048]);
    loop {
        let is_over = ended.load(Ordering::Acquire);
        match socket.recv(&mut buffer) {
            Ok(len) => {
                let (header, _) = Header::parse(&buffer[..len]).unwrap();
                let refused = matches!(header.flag.status(), Status::Shed | Status::Draining);
                answers.push(Answer {
                    index: header.index,
                    refused,
                });
            }
            Err(_) if is_over => return answers,
            Err(_) => {}
        }
    }
}
