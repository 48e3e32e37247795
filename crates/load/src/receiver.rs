//! The receiving half: replies into the ledger.

use crate::ledger::Answers;
use crate::moment::Moment;
use crate::port::{ClientPort, IncomingReplies, RECEIVE_BATCH};
use crate::sender::{Sending, is_refused};

pub(crate) struct ReplyReceiver<'a, P: ClientPort> {
    run: Sending<'a, P>,
    replies: P::In,
    pub(crate) answers: Answers,
    /// Number of the target's reports of a port without a listener.
    pub(crate) refused: u64,
}

impl<'a, P: ClientPort> ReplyReceiver<'a, P> {
    pub(crate) fn new(run: Sending<'a, P>) -> Self {
        Self {
            run,
            replies: run.port.incoming(),
            answers: Answers::new(run.plan.len()),
            refused: 0,
        }
    }

    /// Enters all replies that have arrived.
    pub(crate) fn drain(&mut self) {
        loop {
            match self.replies.receive() {
                Ok(count) => {
                    self.enter(count);
                    if count < RECEIVE_BATCH {
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
        let moment = Moment::now(self.run.clock, self.run.port.stamp_clock());
        for i in 0..count {
            let (bytes, stamp_ns) = self.replies.reply(i);
            let Sending {
                plan, departures, ..
            } = self.run;
            self.answers
                .enter(plan, departures, bytes, moment, stamp_ns);
        }
    }
}
