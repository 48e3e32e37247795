//! Running one request: the handler, the response, the counts.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use headway_machine::Clock;
use headway_net::datapath::Tx;
use headway_net::header::Status;
use headway_net::pool::{Pool, Prefetch, SlotId};
use headway_net::slot::Slot;
use headway_policy::WorkerId;

use crate::refusal::write_header;
use crate::service::{Call, Service};
use crate::tally::Tally;

/// A request that was run.
pub(crate) struct Ran {
    class: u16,
    /// From when to when the handler ran.
    pub(crate) span_ns: Range<u64>,
}

impl Ran {
    /// What the handler took.
    #[inline]
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.span_ns.end - self.span_ns.start
    }
}

/// What a worker needs to turn a request into a response.
pub(crate) struct Executor<S, T> {
    service: Arc<S>,
    pub(crate) tx: T,
    worker: WorkerId,
    pool: Arc<Pool>,
    pub(crate) tally: Arc<Tally>,
    clock: Clock,
}

impl<S: Service, T: Tx> Executor<S, T> {
    pub(crate) fn new(
        service: Arc<S>,
        tx: T,
        worker: WorkerId,
        pool: Arc<Pool>,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            service,
            tx,
            worker,
            pool,
            tally,
            clock: Clock::global(),
        }
    }

    /// Class and time of arrival, ns.
    #[inline]
    pub(crate) fn describe(&self, id: &SlotId) -> (u16, u64) {
        let slot = self.pool.get(id);
        (slot.class, slot.arrived_ns)
    }

    /// Begins to fetch a request that will be run soon.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Prefetch) {
        self.pool.prefetch(slot);
    }

    /// Runs the request and sends the response from the same buffer. To be [counted](Self::count) by the caller, when nobody waits for
    /// this worker any more.
    #[inline]
    pub(crate) fn run(&mut self, id: &mut SlotId) -> Ran {
        let slot = self.pool.get_mut(id);
        let class = slot.class;
        let start_ns = self.clock.now_ns();
        let (status, len) = self.call(slot);
        let end_ns = self.clock.now_ns();
        let end_ns = end_ns.max(start_ns);
        let cpu_ns = end_ns - start_ns;
        write_header(slot, status, cpu_ns, len);
        if self.tx.send(&self.pool, id, end_ns).is_err() {
            self.tally.unsent.add(1);
        }
        Ran {
            class,
            span_ns: start_ns..end_ns,
        }
    }

    /// A handler that panics may leave its own data half changed, as with any poisoned lock; the server's is only
    /// the buffer, whose header is rewritten.
    #[inline]
    fn call(&self, slot: &mut Slot) -> (Status, usize) {
        let mut call = Call::new(slot, self.worker);
        let handled = catch_unwind(AssertUnwindSafe(|| self.service.handle(&mut call)));
        match handled {
            Ok(()) => call.outcome(),
            Err(_) => {
                self.tally.panics.add(1);
                (Status::Error, 0)
            }
        }
    }

    /// Counts a request that was run.
    #[inline]
    pub(crate) fn count(&self, ran: &Ran) {
        let tally = self.tally.class(ran.class);
        tally.answered.add(1);
        tally.cpu_ns.add(ran.cpu_ns());
    }
}
