//! The receiving half: replies into the ledger.

use headway_net::header::HEADER_BYTES;
use headway_net::udp::batch::Inbox;

use crate::ledger::Answers;
use crate::moment::Moment;
use crate::sender::{Sending, is_refused};

/// Replies received in one system call.
const BATCH: usize = 64;

pub(crate) struct ReplyReceiver<'a> {
    run: Sending<'a>,
    /// Only the wire header of a reply is kept; the rest is ignored.
    inbox: Inbox<BATCH, HEADER_BYTES>,
    pub(crate) answers: Answers,
    /// Number of the target's reports of a port without a listener.
    pub(crate) refused: u64,
}

impl<'a> ReplyReceiver<'a> {
    pub(crate) fn new(run: Sending<'a>) -> Self {
        Self {
            run,
            inbox: Inbox::new(),
            answers: Answers::new(run.plan.len()),
            refused: 0,
        }
    }

    /// Enters all replies that have arrived.
    pub(crate) fn drain(&mut self) {
        loop {
            match self.inbox.receive(&self.run.socket.udp) {
                Ok(count) => {
                    self.enter(count);
                    if count < BATCH {
                        return;
                    }
                }
                Err(error) if is_refused(&error) => self.refused += 1,
                // No datagram waits.
                Err(_) => return,
            }
        }
    }

    /// Whether every request that left was answered.
    pub(crate) fn is_complete(&self) -> bool {
        self.answers.answered == self.run.departures.count()
    }

    fn enter(&mut self, count: usize) {
        let moment = Moment::now(self.run.clock);
        for i in 0..count {
            let (bytes, stamp_ns) = self.inbox.datagram(i);
            let Sending {
                plan, departures, ..
            } = self.run;
            self.answers
                .enter(plan, departures, bytes, moment, stamp_ns);
        }
    }
}
