//! The contract of an ingress that a dispatcher carries out.

use headway_policy::server::role::{Dispatch, Ingress};
use headway_policy::server::systems::Promises;
use headway_policy::{BitSet, ClassId, Job, JobId, Order, Rng, Shape, WorkerId};
use std::collections::VecDeque;

/// Workers of the server.
pub const WORKERS: usize = 6;
/// Declared classes; the class of this number is UNKNOWN.
pub const CLASSES: usize = 4;
/// Requests that a queue holds.
const QUEUE_LIMIT: usize = 5;
/// Time between two events, ns.
const STEP_NS: u64 = 100;

/// What happens to the server.
#[derive(Clone, Copy, Debug)]
pub enum ServerEvent {
    /// A request of this class arrives.
    Arrive {
        /// Its class; [`CLASSES`] is UNKNOWN.
        class: u16,
        /// The hash of its flow.
        flow: u32,
    },
    /// The n-th busy worker finishes.
    Finish {
        /// Counted among the busy, and around.
        nth: usize,
        /// What the request took of the worker's time.
        cpu_ns: u64,
    },
    /// A worker leaves, or comes back.
    Toggle {
        /// The worker, below [`WORKERS`].
        worker: u16,
    },
}

/// Random events that depend on `seed` alone: arrivals and ends in turn, here and there a worker that leaves or comes.
pub fn events(seed: u64, count: usize) -> impl Iterator<Item = ServerEvent> {
    let mut rng = Rng::new(seed);
    (0..count).map(move |_| match rng.below(11) {
        0..5 => ServerEvent::Arrive {
            class: rng.below(CLASSES + 1) as u16,
            flow: rng.next_u64() as u32,
        },
        5..10 => ServerEvent::Finish {
            nth: rng.below(WORKERS),
            cpu_ns: 1 + rng.below(1_000_000) as u64,
        },
        _ => ServerEvent::Toggle {
            worker: rng.below(WORKERS) as u16,
        },
    })
}

/// The server that the policy is built for: classes from 1 µs to 500 µs, short queues.
#[must_use]
pub fn shape() -> Shape {
    let mut shape = Shape::new(WORKERS)
        .class(1_000, 0.4)
        .class(1_500, 0.3)
        .class(50_000, 0.2)
        .class(500_000, 0.1);
    shape.queue_limit = QUEUE_LIMIT;
    shape
}

/// Plays events to an ingress as an engine whose workers run one request at a time, and checks every step.
pub struct DispatcherContract<I> {
    ingress: I,
    promises: Promises,
    depth: usize,
    now_ns: u64,
    next_id: u32,
    present: BitSet,
    /// Per worker, what it was handed and has not finished.
    held: Vec<VecDeque<JobId>>,
    /// Admitted and waiting, per class, in order.
    waiting: Vec<VecDeque<JobId>>,
    class_of: Vec<u16>,
    done: Vec<bool>,
}

impl<I: Ingress> DispatcherContract<I> {
    /// Of an ingress that was built for [`shape`]; `depth` is the number of requests that a worker may hold.
    #[must_use]
    pub fn new(ingress: I, depth: usize, promises: Promises) -> Self {
        Self {
            ingress,
            promises,
            depth,
            now_ns: 0,
            next_id: 0,
            present: BitSet::range(0, WORKERS),
            held: vec![VecDeque::new(); WORKERS],
            waiting: vec![VecDeque::new(); CLASSES + 1],
            class_of: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Plays one event.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn play(&mut self, event: ServerEvent) -> Result<(), String> {
        self.now_ns += STEP_NS;
        match event {
            ServerEvent::Arrive { class, flow } => self.arrive(class, flow)?,
            ServerEvent::Finish { nth, cpu_ns } => self.finish(nth, cpu_ns)?,
            ServerEvent::Toggle { worker } => self.toggle(worker),
        }
        self.dispatch_all()
    }

    /// Brings all workers back and lets them finish: then everything that was admitted is done.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn drain(&mut self) -> Result<(), String> {
        for worker in 0..WORKERS as u16 {
            if !self.present.contains(usize::from(worker)) {
                self.toggle(worker);
            }
        }
        self.dispatch_all()?;
        while self.held.iter().any(|held| !held.is_empty()) {
            self.now_ns += STEP_NS;
            self.finish(0, 1_000)?;
            self.dispatch_all()?;
        }
        let lost = self.total_waiting();
        ensure(lost == 0, || {
            format!("{lost} requests were accepted and never dispatched")
        })
    }

    fn total_waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    fn arrive(&mut self, class: u16, flow: u32) -> Result<(), String> {
        let id = JobId(self.next_id);
        self.next_id += 1;
        self.class_of.push(class);
        self.done.push(false);
        let job = Job {
            flow,
            ..Job::new(id, ClassId(class), self.now_ns)
        };
        let own = self.waiting[usize::from(class)].len();
        let queued = if self.promises.bound_per_class {
            own
        } else {
            self.total_waiting()
        };
        let accepted = self.ingress.arrived(self.now_ns, job).is_ok();
        ensure(accepted || queued >= QUEUE_LIMIT, || {
            format!("request {} was shed although no queue is full", id.0)
        })?;
        ensure(!accepted || queued < QUEUE_LIMIT, || {
            format!("request {} was accepted by a full queue", id.0)
        })?;
        if accepted {
            self.waiting[usize::from(class)].push_back(id);
        }
        Ok(())
    }

    fn finish(&mut self, nth: usize, cpu_ns: u64) -> Result<(), String> {
        let busy: Vec<usize> = (0..WORKERS).filter(|&w| !self.held[w].is_empty()).collect();
        let Some(&worker) = busy.get(nth % busy.len().max(1)) else {
            return Ok(());
        };
        let job = self.held[worker].pop_front().expect("it is busy");
        ensure(!self.done[job.index()], || {
            format!("request {} ran twice", job.0)
        })?;
        self.done[job.index()] = true;
        self.ingress
            .finished(self.now_ns, WorkerId(worker as u16), job, cpu_ns);
        Ok(())
    }

    /// The last worker stays.
    fn toggle(&mut self, worker: u16) {
        let index = usize::from(worker);
        if !self.present.contains(index) {
            self.present.insert(index);
            self.ingress.worker_added(self.now_ns, WorkerId(worker));
        } else if self.present.len() > 1 {
            self.present.remove(index);
            self.ingress.worker_removed(self.now_ns, WorkerId(worker));
        }
    }

    fn dispatch_all(&mut self) -> Result<(), String> {
        while let Some(dispatch) = self.ingress.poll(self.now_ns) {
            self.dispatch(dispatch)?;
        }
        let total = self.total_waiting();
        let said = self.ingress.waiting();
        ensure(said == total, || {
            format!("{total} requests wait, and it counts {said}")
        })?;
        let idle = self.present.iter().find(|&w| self.held[w].is_empty());
        let idles = idle.filter(|_| self.promises.work_conserving && total > 0);
        idles.map_or(Ok(()), |worker| {
            Err(format!(
                "worker {worker} idles while {total} requests wait, and it promised to be work-conserving"
            ))
        })
    }

    fn dispatch(&mut self, Dispatch { worker, job }: Dispatch) -> Result<(), String> {
        let (w, class) = (worker.index(), usize::from(self.class_of[job.index()]));
        ensure(self.present.contains(w), || {
            format!("it used worker {w}, which is gone")
        })?;
        ensure(self.held[w].len() < self.depth, || {
            format!("worker {w} holds {} requests already", self.depth)
        })?;
        let place = self.waiting[class].iter().position(|&waits| waits == job);
        ensure(place.is_some(), || {
            format!("request {} does not wait", job.0)
        })?;
        ensure(place == Some(0) || !self.promises.fcfs_in_class, || {
            format!(
                "request {} overtook one of its class, and it promised first come, first served",
                job.0
            )
        })?;
        self.waiting[class].remove(place.unwrap_or_default());
        self.follows_the_plan(w, class)?;
        self.held[w].push_back(job);
        Ok(())
    }

    fn follows_the_plan(&self, w: usize, class: usize) -> Result<(), String> {
        let Some(plan) = self.ingress.plan() else {
            return Ok(());
        };
        let id = ClassId(class as u16);
        let allowed = plan.reserved(id).union(plan.stealable(id));
        ensure(allowed.contains(w), || {
            format!("{id:?} ran outside reserved ∪ stealable")
        })?;
        let spillway = self.present.iter().last();
        ensure(class != CLASSES || Some(w) == spillway, || {
            "UNKNOWN ran beside the spillway".into()
        })?;
        if plan.order == Order::Rank {
            let shorter = plan.ranked().iter().take_while(|&&c| c != id);
            for &c in shorter.filter(|c| !self.waiting[c.index()].is_empty()) {
                let open = plan.reserved(c).union(plan.stealable(c));
                ensure(!open.contains(w), || {
                    format!("shorter class {c:?} was passed over")
                })?;
            }
        }
        Ok(())
    }
}

/// Fails with a sentence where the promise does not hold.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
