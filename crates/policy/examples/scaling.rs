//! One request's decisions on a server of many workers, so often that an instruction counter can tell what one takes.
//!
//! `scaling POLICY WORKERS REQUESTS` keeps all workers busy and makes every decision of `REQUESTS` requests. Under a policy with a
//! dispatcher these are arrival, placement, a check of all timers and completion. Without one they are the worker's choice, its timer and
//! completion. It prints nothing: the cost of one request is the difference of two instruction counts, divided by the difference in
//! requests (`scaling.py` beside this).

use headway_contract::PlainQueues;
use headway_policy::server::role::{Dispatch, Ingress, Local, Monitor, Next, Owner, Unplaced};
use headway_policy::server::systems::{self, System, VisitInstance};
use headway_policy::{ClassId, Job, JobId, Shape, WorkerId};
use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

/// Between two requests.
const GAP_NS: u64 = 100;
/// Of a request: short enough for one slice.
const SERVICE_NS: u64 = 1_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [policy, workers, requests] = &arguments[..] else {
        eprintln!("usage: scaling POLICY WORKERS REQUESTS");
        return ExitCode::from(2);
    };
    match decide(policy, workers, requests) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scaling: {error}");
            ExitCode::from(2)
        }
    }
}

fn decide(policy: &str, workers: &str, requests: &str) -> Result<(), Box<dyn Error>> {
    let (workers, requests) = (workers.parse()?, requests.parse()?);
    let mut shape = Shape::new(workers)
        .class(SERVICE_NS, 0.99)
        .class(100 * SERVICE_NS, 0.01);
    shape.job_capacity = slots(workers);
    systems::with(&policy.parse()?, &shape, Decide { requests })?;
    Ok(())
}

/// Requests in the server at once, at most.
fn slots(workers: usize) -> usize {
    4 * workers + 64
}

struct Decide {
    requests: u32,
}

impl VisitInstance for Decide {
    type Output = ();

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, system: System<I, L, M>) {
        match I::OWNER {
            Owner::Dispatcher => dispatched(system, self.requests),
            Owner::Steering => steered(system, self.requests),
            Owner::Nobody => panic!("neither a dispatcher nor queues of workers"),
        }
    }
}

fn job(index: u32, slots: usize, now_ns: u64) -> Job {
    Job::new(JobId(index % slots as u32), ClassId(0), now_ns)
}

/// A dispatcher's decisions: each turn takes one request in, looks at all timers, and hears of one completion.
fn dispatched<I: Ingress, L: Local, M: Monitor>(mut system: System<I, L, M>, requests: u32) {
    let workers = system.locals.len();
    let (slots, queues) = (slots(workers), PlainQueues::new(workers, 0));
    let mut running: VecDeque<(WorkerId, JobId)> = VecDeque::with_capacity(slots);
    for index in 0..requests {
        let (now_ns, epoch) = (u64::from(index) * GAP_NS, u64::from(index));
        let arrived = job(index, slots, now_ns);
        let _ = system.ingress.arrived(now_ns, arrived);
        while let Some(Dispatch { worker, job: id }) = system.ingress.poll(now_ns) {
            let placed = Job { id, ..arrived };
            let monitor = &mut system.monitor;
            black_box(monitor.started(now_ns, worker, &placed, epoch, &queues));
            running.push_back((worker, id));
        }
        black_box(system.monitor.poll(now_ns, &system.ingress, &queues));
        if running.len() >= workers {
            let (worker, id) = running
                .pop_front()
                .expect("as many run as there are workers");
            system.monitor.stopped(now_ns, worker, epoch);
            system.ingress.finished(now_ns, worker, id, SERVICE_NS);
        }
    }
}

/// The workers' decisions, each for itself: one of them in turn takes its next request, has it timed, and finishes it.
fn steered<I: Ingress, L: Local, M: Monitor>(mut system: System<I, L, M>, requests: u32) {
    let workers = system.locals.len();
    let slots = slots(workers);
    let mut queues = PlainQueues::new(workers, 8);
    let mut monitors: Vec<M> = (0..workers).map(|_| system.monitor.clone()).collect();
    for index in 0..requests {
        let (now_ns, me) = (u64::from(index) * GAP_NS, index as usize % workers);
        let worker = WorkerId(me as u16);
        let arrived = job(index, slots, now_ns);
        queues.deliver(worker, arrived.id);
        queues.me = me;
        let Next::Run { job, .. } = system.locals[me].next(now_ns, &mut queues) else {
            panic!("a worker runs what is in its queue");
        };
        let job = Job { id: job, ..arrived };
        black_box(monitors[me].started(now_ns, worker, &job, u64::from(index), &queues));
        black_box(monitors[me].expired(now_ns, worker, &Unplaced, &queues));
        monitors[me].stopped(now_ns, worker, u64::from(index));
        system.locals[me].finished(now_ns, &job, SERVICE_NS, &mut queues);
    }
}
