//! The records of every request's send and replies. Each part has a single writer. During the run a
//! send stores one number and a reply one entry; all figures are computed afterwards.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headway_net::header::{Header, Status};

use crate::moment::Moment;
use crate::plan::Planned;

/// No time: not sent, or not answered. It is not zero, so that filling the tables touches every page
/// and the run has no page faults.
const NEVER: u64 = u64::MAX;

/// When each request left: the sender writes it, and the receiver reads it to reject replies to
/// requests not yet sent.
#[derive(Debug)]
pub(crate) struct Departures {
    times_ns: Box<[AtomicU64]>,
    /// Number of requests sent, for progress and for the end of the run.
    count: AtomicU64,
    /// The end flag: set by the caller to end the run early, and by the sender when it is done.
    stop: AtomicBool,
}

impl Departures {
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            times_ns: (0..requests).map(|_| AtomicU64::new(NEVER)).collect(),
            count: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Requests leave in order, so the first `count` have left.
    #[inline]
    pub(crate) fn depart(&self, index: usize, now_ns: u64) {
        self.times_ns[index].store(now_ns, Ordering::Release);
        self.count.store(index as u64 + 1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn time_ns(&self, index: usize) -> Option<u64> {
        let time_ns = self.times_ns.get(index)?.load(Ordering::Acquire);
        (time_ns != NEVER).then_some(time_ns)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// The first reply to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    received_ns: u64,
    /// Execution time, from the server's reply.
    pub(crate) execution_ns: u32,
    pub(crate) status: Status,
}

impl Answer {
    const NONE: Self = Self {
        received_ns: NEVER,
        execution_ns: 0,
        status: Status::Ok,
    };

    /// When it arrived.
    pub(crate) fn received_ns(&self) -> u64 {
        self.received_ns
    }
}

/// Every reply: written by the receiver alone.
#[derive(Debug)]
pub(crate) struct Answers {
    table: Box<[Answer]>,
    pub(crate) answered: u64,
    /// Number of these replies that the kernel timed.
    pub(crate) stamped: u64,
    pub(crate) duplicates: u64,
    pub(crate) invalid: u64,
}

impl Answers {
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            table: vec![Answer::NONE; requests].into(),
            answered: 0,
            stamped: 0,
            duplicates: 0,
            invalid: 0,
        }
    }

    /// The first reply to the request of this index, if there was one.
    pub(crate) fn get(&self, index: usize) -> Option<&Answer> {
        let answer = &self.table[index];
        (answer.received_ns != NEVER).then_some(answer)
    }

    /// Enters a datagram that begins with `bytes`, read at `moment` and perhaps stamped by the kernel.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        plan: &[Planned],
        departures: &Departures,
        bytes: &[u8],
        moment: Moment,
        stamp_ns: Option<u64>,
    ) {
        let Some(reply) = MatchedReply::matching(plan, departures, bytes) else {
            self.invalid += 1;
            return;
        };
        let answer = &mut self.table[reply.header.index as usize];
        if answer.received_ns != NEVER {
            self.duplicates += 1;
            return;
        }
        let stamped_ns = stamp_ns.and_then(|stamp_ns| moment.of_stamp(stamp_ns, reply.departed_ns));
        self.answered += 1;
        self.stamped += u64::from(stamped_ns.is_some());
        *answer = Answer {
            received_ns: stamped_ns.unwrap_or(moment.clock_ns()),
            execution_ns: reply.header.time_ns,
            status: reply.header.flag.status(),
        };
    }
}

/// A reply to a request of this run.
struct MatchedReply {
    header: Header,
    departed_ns: u64,
}

impl MatchedReply {
    #[inline]
    fn matching(plan: &[Planned], departures: &Departures, bytes: &[u8]) -> Option<Self> {
        let (header, _) = Header::parse(bytes).ok()?;
        let index = header.index as usize;
        let departed_ns = departures.time_ns(index)?;
        let matches = header.flag.is_response() && header.class == plan[index].wire_type;
        matches.then_some(Self {
            header,
            departed_ns,
        })
    }
}
