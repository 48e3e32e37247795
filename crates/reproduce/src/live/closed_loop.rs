//! A closed loop: a fixed number of requests is outstanding, and each answer triggers the next request. It measures the time of
//! single requests at rest, and the throughput of a server that always has requests waiting.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::slot::PAYLOAD_BYTES;

use super::requests::RequestMix;

/// An answer that takes longer is lost, and the measurement fails.
const PATIENCE: Duration = Duration::from_secs(5);

/// The errors of a closed loop.
#[derive(thiserror::Error)]
pub enum ClosedLoopError {
    /// The system refused to send, or no answer came.
    #[error("a request at rest was not answered: {0}")]
    Link(#[from] std::io::Error),
    /// The datagram is no answer, or the answer reports an error.
    #[error("a request of class {class} at rest was answered with {status:?}")]
    Refused {
        /// The request's class.
        class: String,
        /// The answer's status; none if the datagram is no answer.
        status: Option<Status>,
    },
}

headway_words::debug_is_display!(ClosedLoopError);

/// A client with a closed loop.
pub(crate) struct ClosedLoop<'a> {
    socket: UdpSocket,
    mix: &'a RequestMix,
    next: u32,
}

/// Times of one request, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestTimes {
    /// From the send to the answer's arrival at the program, ns.
    pub(crate) round_trip_ns: u64,
    /// The handler's time, as the server reports it, ns.
    pub(crate) execution_ns: u64,
}

impl<'a> ClosedLoop<'a> {
    pub(crate) fn connect(addr: SocketAddr, mix: &'a RequestMix) -> Result<Self, ClosedLoopError> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.connect(addr)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            socket,
            mix,
            next: 0,
        })
    }

    /// Sends one request of a class, and waits for its answer.
    pub(crate) fn ask(&mut self, class: usize) -> Result<RequestTimes, ClosedLoopError> {
        let began = Instant::now();
        self.send(class)?;
        let header = self.receive()?;
        Ok(RequestTimes {
            round_trip_ns: began.elapsed().as_nanos() as u64,
            execution_ns: u64::from(header.time_ns),
        })
    }

    /// Measures the answers per second with `outstanding` requests in flight; `draw` returns the class of each.
    pub(crate) fn throughput(
        &mut self,
        outstanding: usize,
        length: Duration,
        mut draw: impl FnMut() -> usize,
    ) -> Result<f64, ClosedLoopError> {
        for _ in 0..outstanding {
            self.send(draw())?;
        }
        let began = Instant::now();
        let mut answered = 0_u32;
        while began.elapsed() < length {
            self.receive()?;
            answered += 1;
            self.send(draw())?;
        }
        let rps = f64::from(answered) / began.elapsed().as_secs_f64();
        for _ in 0..outstanding {
            self.receive()?;
        }
        Ok(rps)
    }

    fn send(&mut self, class: usize) -> Result<(), ClosedLoopError> {
        let mut datagram = [0; PAYLOAD_BYTES];
        let header = Header {
            class: class as u8,
            flag: Flag::REQUEST,
            index: self.next,
            time_ns: 0,
        };
        let (front, room) = datagram.split_at_mut(HEADER_BYTES);
        front.copy_from_slice(&header.encode());
        let length = self.mix.body(header.class, self.next, room);
        self.next = self.next.wrapping_add(1);
        self.socket.send(&datagram[..HEADER_BYTES + length])?;
        Ok(())
    }

    fn receive(&mut self) -> Result<Header, ClosedLoopError> {
        let mut datagram = [0; PAYLOAD_BYTES];
        let length = self.socket.recv(&mut datagram)?;
        let header = Header::parse(&datagram[..length])
            .ok()
            .map(|(header, _)| header);
        match header {
            Some(header) if header.flag.is_response() && header.flag.status() == Status::Ok => {
                Ok(header)
            }
            other => Err(ClosedLoopError::Refused {
                class: other
                    .map_or("none", |header| self.mix.name(header.class.into()))
                    .into(),
                status: other.map(|header| header.flag.status()),
            }),
        }
    }
}
