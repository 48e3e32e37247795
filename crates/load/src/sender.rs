//! The sending half: requests in the plan's order, each at its time.

use std::io;

use headway_machine::Clock;
use headway_net::header::{Flag, HEADER_BYTES, Header};
use headway_net::slot::PAYLOAD_BYTES;

use crate::ledger::Departures;
use crate::load::Body;
use crate::plan::Planned;
use crate::port::{ClientPort, OutgoingRequests, SEND_BATCH};

/// The most bytes a request may have after its wire header.
pub const MAX_BODY_BYTES: usize = PAYLOAD_BYTES - HEADER_BYTES;

/// The state that all parts of a running load share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending<'a, P> {
    pub(crate) plan: &'a [Planned],
    pub(crate) departures: &'a Departures,
    pub(crate) port: P,
    pub(crate) clock: Clock,
    /// The plan's time 0, on the run's clock.
    pub(crate) start_ns: u64,
}

impl<P> Sending<'_, P> {
    /// The intended send time of request `index`; `None` when it is beyond the plan or the run was stopped.
    #[inline]
    pub(crate) fn due_ns(&self, index: usize) -> Option<u64> {
        let request = self.plan.get(index)?;
        (!self.departures.stopped()).then_some(self.start_ns + request.at_ns)
    }
}

pub(crate) struct LoadSender<'a, P: ClientPort> {
    run: Sending<'a, P>,
    body: &'a Body,
    requests: P::Out,
    next: usize,
    /// Sends that the system refused for another reason than a missing listener.
    pub(crate) failed: u64,
    /// Number of the target's reports of a port without a listener.
    pub(crate) refused: u64,
}

impl<'a, P: ClientPort> LoadSender<'a, P> {
    pub(crate) fn new(run: Sending<'a, P>, body: &'a Body) -> Self {
        Self {
            run,
            body,
            requests: run.port.outgoing(),
            next: 0,
            failed: 0,
            refused: 0,
        }
    }

    /// The next request's intended send time; `None` when no request is left.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.run.due_ns(self.next)
    }

    /// Sends the requests that are due at `now_ns`, at least the next one.
    pub(crate) fn send_due(&mut self, now_ns: u64) {
        let first = self.next;
        let mut count = 0;
        while count < SEND_BATCH && (count == 0 || self.is_due(first + count, now_ns)) {
            self.encode(count, first + count);
            count += 1;
        }
        self.next = first + count;
        // The reading just before the system call: the time for building the requests counts as the client's delay.
        let departed_ns = self.run.clock.now_ns();
        for index in first..self.next {
            self.run.departures.depart(index, departed_ns);
        }
        self.send(count);
    }

    #[inline]
    fn is_due(&self, index: usize, now_ns: u64) -> bool {
        self.run
            .due_ns(index)
            .is_some_and(|due_ns| due_ns <= now_ns)
    }

    #[inline]
    fn encode(&mut self, i: usize, index: usize) {
        let request = self.run.plan[index];
        let header = Header {
            class: request.wire_type,
            flag: Flag::REQUEST,
            index: index as u32,
            // A synthetic service reads its service time from here.
            time_ns: u32::try_from(request.service_ns).unwrap_or(u32::MAX),
        };
        self.requests.fill(i, |buffer| {
            let (front, body) = buffer.split_at_mut(HEADER_BYTES);
            front.copy_from_slice(&header.encode());
            HEADER_BYTES + (self.body)(request.class, header.index, body)
        });
    }

    /// Hands the first `count` messages to the kernel. A refused message is skipped and counts as lost.
    fn send(&mut self, count: usize) {
        let mut next = 0;
        let mut retried = false;
        while next < count {
            match self.requests.send(next..count) {
                Ok(taken) => (next, retried) = (next + taken, false),
                // The error belongs to an earlier datagram; this one was not tried.
                Err(error) if is_refused(&error) && !retried => {
                    self.refused += 1;
                    retried = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.failed += 1;
                    (next, retried) = (next + 1, false);
                }
            }
        }
    }
}

/// Whether an earlier datagram met a port that nobody listens on.
pub(crate) fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}
