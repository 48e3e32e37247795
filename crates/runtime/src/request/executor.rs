//! Running one request: the handler, the response, the counts.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use headway_machine::Clock;
use headway_machine::thread::fork;
use headway_net::datapath::Tx;
use headway_net::header::{Flag, Status};
use headway_net::pool::{Prefetch, SlotId, SlotPool};
use headway_net::slot::Slot;
use headway_policy::{ClassId, Job, WorkerId};

use crate::error::SetupFailure;
use crate::queue::token::job_of;
use crate::request::panics::{Panicked, catch};
use crate::request::refusal::write_header;
use crate::request::server_queue::ServerQueue;
use crate::request::service::{Call, CallMode, Response, Service};
use crate::stats::journal::{JournalEntry, JournalWriter};
use crate::stats::stall::turned_to_request;
use crate::stats::tally::{ShedCause, Tally};

/// What a thread does once it is pinned and before the server counts on it. Its argument is the core it is pinned to.
pub(crate) type ThreadSetup = Box<dyn FnOnce(Option<usize>) -> Result<(), SetupFailure> + Send>;

/// A request that was run.
pub(crate) struct Ran {
    pub(crate) class: u16,
    /// From when to when the handler ran, the last time if it was interrupted.
    pub(crate) span_ns: Range<u64>,
    /// What the handler took in all.
    pub(crate) cpu_ns: u64,
}

/// Calls the handler. One that panics may leave its own data half changed, as with any poisoned lock; the server's is only
/// the buffer, whose header is rewritten. Where a request is heard, it is interrupted only where it says so; the next assignment begins anew.
#[inline]
pub(crate) fn handle(
    service: &dyn Service,
    buffer: &mut Slot,
    worker: WorkerId,
    mode: CallMode,
) -> Response {
    let mut call = Call::new(buffer, worker, mode);
    let returned = catch(|| service.handle(&mut call));
    // The answer is the parent's.
    fork::end_child();
    match returned {
        Ok(()) => call.response(),
        Err(Panicked) => Response {
            status: Status::Error,
            payload_bytes: 0,
            panicked: true,
            feedback: call.feedback_until_panic(),
        },
    }
}

/// What a worker needs to turn a request into a response.
pub(crate) struct Executor {
    service: Arc<dyn Service>,
    pub(crate) tx: Box<dyn Tx>,
    worker: WorkerId,
    pool: Arc<SlotPool>,
    pub(crate) tally: Arc<Tally>,
    journal: Option<JournalWriter>,
    /// Of a server behind a rack's switch.
    queue: Option<Arc<ServerQueue>>,
    clock: Clock,
    /// Dropped by the worker's thread as its last act.
    _leaves: LeavesWorker,
}

/// Tells the service, when it is dropped, that the worker's thread handles no more requests.
struct LeavesWorker(Arc<dyn Service>);

impl Drop for LeavesWorker {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.0.leave_worker();
        }
    }
}

impl Executor {
    pub(crate) fn new(
        service: Arc<dyn Service>,
        tx: Box<dyn Tx>,
        worker: WorkerId,
        pool: Arc<SlotPool>,
        tally: Arc<Tally>,
        journal: Option<JournalWriter>,
        clock: Clock,
    ) -> Self {
        Self {
            _leaves: LeavesWorker(Arc::clone(&service)),
            service,
            tx,
            worker,
            pool,
            tally,
            journal,
            queue: None,
            clock,
        }
    }

    /// Tells a rack's switch that asks for it how many requests there are.
    pub(crate) fn tells_queue(&mut self, queue: &Arc<ServerQueue>) {
        self.queue = Some(Arc::clone(queue));
    }

    /// Makes the thread that is to run it ready.
    pub(crate) fn setup(&self) -> ThreadSetup {
        let (service, worker) = (Arc::clone(&self.service), self.worker);
        Box::new(move |core| {
            fork::is_worker();
            service.setup_worker(worker, core)
        })
    }

    /// Class and time of arrival, ns.
    #[inline]
    pub(crate) fn describe(&self, slot: &SlotId) -> (u16, u64) {
        let buffer = self.pool.get(slot);
        (buffer.class, buffer.arrived_ns)
    }

    /// The request as policies see it once it has run; its service is told apart.
    #[inline]
    pub(crate) fn job(&self, slot: SlotId) -> (Job, SlotId) {
        let (class, arrived_ns) = self.describe(&slot);
        let (id, slot) = job_of(slot);
        (Job::new(id, ClassId(class), arrived_ns), slot)
    }

    /// The worker, as handlers know it.
    pub(crate) fn worker(&self) -> WorkerId {
        self.worker
    }

    /// How many requests there may be.
    pub(crate) fn slots(&self) -> usize {
        self.pool.len()
    }

    /// Begins to fetch a request that will be run soon.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Prefetch) {
        self.pool.prefetch(slot);
    }

    /// Runs the request and sends the response from the same buffer. To be [counted](Self::count) by the caller, when nobody waits for
    /// this worker any more.
    #[inline]
    pub(crate) fn run(&mut self, slot: &mut SlotId) -> Ran {
        let buffer = self.pool.get_mut(slot);
        let class = buffer.class;
        let start_ns = self.clock.now_ns();
        turned_to_request(start_ns);
        let waited_ns = start_ns.saturating_sub(buffer.arrived_ns);
        self.tally.class(class).begins(waited_ns);
        let response = handle(&*self.service, buffer, self.worker, CallMode::default());
        let end_ns = self.clock.now_ns().max(start_ns);
        let cpu_ns = end_ns - start_ns;
        self.respond(slot, response, cpu_ns, end_ns);
        Ran {
            class,
            span_ns: start_ns..end_ns,
            cpu_ns,
        }
    }

    /// Sends what the handler, which took `cpu_ns`, made of the request.
    #[inline]
    pub(crate) fn respond(
        &mut self,
        slot: &mut SlotId,
        response: Response,
        cpu_ns: u64,
        now_ns: u64,
    ) {
        let buffer = self.pool.get_mut(slot);
        let queue = self.queue.as_ref();
        let queue = queue.filter(|_| Flag::from_bits(buffer.buffer_mut()[1]).has_queue());
        write_header(buffer, response.status, cpu_ns, response.payload_bytes);
        if let Some(queue) = queue {
            let length = buffer.payload().len();
            let length = queue.tell(buffer.buffer_mut(), length);
            buffer.set_len(length);
        }
        if response.panicked {
            self.tally.panics.add(1);
        }
        let (class, arrived_ns) = (buffer.class, buffer.arrived_ns);
        self.tally.class(class).feedback.add(response.feedback);
        if self.tx.send(&self.pool, slot, now_ns).is_err() {
            self.tally.unsent.add(1);
        }
        if let Some(journal) = &mut self.journal {
            journal.write(JournalEntry {
                arrived_ns,
                class,
                cpu_ns,
                sojourn_ns: now_ns.saturating_sub(arrived_ns),
            });
        }
    }

    /// Counts that a worker takes the request up at this time, ns.
    #[inline]
    pub(crate) fn begins(&self, slot: &SlotId, now_ns: u64) {
        let (class, arrived_ns) = self.describe(slot);
        let waited_ns = now_ns.saturating_sub(arrived_ns);
        self.tally.class(class).begins(waited_ns);
    }

    /// Answers a request that there is no stack for as shed.
    #[cold]
    pub(crate) fn refuse(&mut self, mut slot: SlotId, now_ns: u64) -> SlotId {
        let buffer = self.pool.get_mut(&mut slot);
        self.tally.class(buffer.class).shed(ShedCause::NoStack);
        write_header(buffer, Status::Shed, 0, 0);
        if self.tx.send(&self.pool, &mut slot, now_ns).is_err() {
            self.tally.unsent.add(1);
        }
        slot
    }

    /// Counts a request that was run.
    #[inline]
    pub(crate) fn count(&self, ran: &Ran) {
        self.tally.class(ran.class).answers(ran.cpu_ns);
    }
}
