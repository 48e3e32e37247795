//! Sends a load and waits for the replies.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::client::{Gauge, Harvest, run_on_one_thread, run_on_two_threads};
use crate::error::LoadError;
use crate::ledger::Departures;
use crate::load::{Load, Threads};
use crate::plan::SendPlan;
use crate::port::ClientPort;
use crate::report::{FinishedLoad, LoadReport};
use crate::sender::Sending;
use crate::socket::ClientSocket;

/// Highest rate at which one thread that sleeps between requests sends on time.
const ONE_THREAD_MAX_RPS: f64 = 20_000.0;

/// Time for the threads to start before the first request is due.
const LEAD_NS: u64 = 2_000_000;

/// A reply may take this many times the longest service time before it counts as lost.
const TIMEOUT_SERVICES: u64 = 10;

/// Interval between reports of progress to the caller.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Requests that will be sent.
    pub planned: u64,
    /// Requests sent so far.
    pub sent: u64,
    /// Of these, the ones answered.
    pub answered: u64,
}

impl Load {
    /// Sends the load and waits for the replies. Meanwhile `progress` is called ten times a second,
    /// on the calling thread; when it breaks, the run ends early, and the report covers the
    /// requests sent so far.
    ///
    /// # Errors
    /// [`LoadError`] when nothing could be sent. A server that does not answer is no error: its
    /// requests are lost.
    ///
    /// # Panics
    /// When the workload fails its check, the rate is not a finite number above 0, or the body is
    /// longer than its buffer.
    pub fn run(
        &self,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<LoadReport, LoadError> {
        if !(0.0..1.0).contains(&self.warm_up) {
            let fraction = self.warm_up;
            return Err(LoadError::WarmUp { fraction });
        }
        let plan = SendPlan::draw(self)?;
        let socket = ClientSocket::open(self.target, self.replies_of)?;
        let departures = Departures::new(plan.requests.len());
        let clock = self.clock;
        let run = Sending {
            plan: &plan.requests,
            departures: &departures,
            port: &socket,
            clock,
            start_ns: clock.now_ns() + LEAD_NS,
        };
        let gauge = Gauge::default();
        let harvest = thread::scope(|scope| {
            let caller = thread::current();
            let (gauge, plan) = (&gauge, &plan);
            let client = scope.spawn(move || {
                let harvest = self.send(run, gauge, plan);
                caller.unpark();
                harvest
            });
            watch(run, gauge, &client, &mut progress);
            client.join()
        });
        let harvest = harvest.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(FinishedLoad::new(self, &plan, run, harvest).report())
    }

    fn send<'a, P: ClientPort>(
        &'a self,
        run: Sending<'a, P>,
        gauge: &'a Gauge,
        plan: &SendPlan,
    ) -> Harvest<'a, P>
    where
        P::In: Send,
    {
        let two = match self.threads {
            Threads::Auto => plan.rate_rps() > ONE_THREAD_MAX_RPS,
            Threads::One => false,
            Threads::Two => true,
        };
        let timeout_ns = plan.longest_service_ns().saturating_mul(TIMEOUT_SERVICES);
        let timeout_ns = self.timeout_ns.max(timeout_ns);
        let client = if two {
            run_on_two_threads
        } else {
            run_on_one_thread
        };
        client(run, &self.body, gauge, timeout_ns)
    }
}

/// Tells the caller of progress until the client is done.
fn watch<P: ClientPort, T>(
    run: Sending<'_, P>,
    gauge: &Gauge,
    client: &ScopedJoinHandle<'_, T>,
    progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
) {
    while !client.is_finished() {
        thread::park_timeout(PROGRESS_INTERVAL);
        let now = Progress {
            planned: run.plan.len() as u64,
            sent: run.departures.count(),
            answered: gauge.answered.load(Ordering::Relaxed),
        };
        if progress(&now).is_break() {
            run.departures.stop();
        }
    }
}
