//! The contract of workers that help themselves from queues, into which the network or nobody places requests at once.

use crate::PlainQueues;
use headway_policy::server::role::{Backlog, Dispatch, Ingress, Local, Next, Owner, Queues};
use headway_policy::{ClassId, Job, JobId, Rng, WorkerId};

/// Workers of the server.
pub const WORKERS: usize = 5;
/// Requests that a queue has room for.
const MOST: usize = 512;
/// How often workers that promise nothing may look in vain before requests count as lost.
const PATIENCE: usize = 1_000;

/// What happens to the server.
#[derive(Clone, Copy, Debug)]
pub enum QueueEvent {
    /// A request of this flow arrives.
    Arrive {
        /// The hash of its flow.
        flow: u32,
    },
    /// A worker that has nothing to do looks, and runs what it takes to its end.
    Look {
        /// The worker, below [`WORKERS`].
        worker: usize,
    },
}

/// Random events that depend on `seed` alone.
pub fn events(seed: u64, count: usize) -> impl Iterator<Item = QueueEvent> {
    let mut rng = Rng::new(seed);
    (0..count).map(move |_| match rng.below(2) {
        0 => QueueEvent::Arrive {
            flow: rng.next_u64() as u32,
        },
        _ => QueueEvent::Look {
            worker: rng.below(WORKERS),
        },
    })
}

/// What workers promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerPromises {
    /// Each runs only what lies in its own queue, in its order.
    pub own_queue_in_order: bool,
    /// None idles while its own queue has a request.
    pub finds_its_own: bool,
    /// None idles while a request lies anywhere.
    pub finds_all: bool,
}

/// Plays events to an ingress and to locals, and checks every step.
pub struct WorkersContract<I, L> {
    ingress: I,
    locals: Vec<L>,
    promises: WorkerPromises,
    queues: PlainQueues,
    jobs: Vec<Job>,
    /// Into whose queue each request was placed; none lies in the first shared queue.
    home: Vec<Option<usize>>,
    ran: Vec<bool>,
    now_ns: u64,
}

impl<I: Ingress, L: Local> WorkersContract<I, L> {
    /// Of an ingress and [`WORKERS`] locals; there are `shared` shared queues.
    ///
    /// # Panics
    /// Where a dispatcher carries the ingress out.
    #[must_use]
    pub fn new(ingress: I, locals: Vec<L>, shared: usize, promises: WorkerPromises) -> Self {
        assert!(
            I::OWNER != Owner::Dispatcher,
            "requests lie in queues at once"
        );
        Self {
            ingress,
            locals,
            promises,
            queues: PlainQueues::with_shared(WORKERS, shared, MOST),
            jobs: Vec::new(),
            home: Vec::new(),
            ran: Vec::new(),
            now_ns: 0,
        }
    }

    /// Plays one event.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn play(&mut self, event: QueueEvent) -> Result<(), String> {
        self.now_ns += 1;
        match event {
            QueueEvent::Arrive { flow } => self.arrive(flow),
            QueueEvent::Look { worker } => self.look(worker),
        }
    }

    /// Lets every worker look until nothing waits: then each request has run.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn drain(&mut self) -> Result<(), String> {
        for _ in 0..PATIENCE {
            if self.waiting() == 0 {
                break;
            }
            for worker in 0..WORKERS {
                self.look(worker)?;
            }
        }
        match self.ran.iter().position(|&ran| !ran) {
            None => Ok(()),
            Some(lost) => Err(format!("request {lost} never ran")),
        }
    }

    fn arrive(&mut self, flow: u32) -> Result<(), String> {
        let id = JobId(self.ran.len() as u32);
        let job = Job {
            flow,
            ..Job::new(id, ClassId(0), self.now_ns)
        };
        if self.ingress.arrived(self.now_ns, job).is_err() {
            return Err(format!(
                "request {} was shed although no queue is full",
                id.0
            ));
        }
        self.jobs.push(job);
        self.ran.push(false);
        if I::OWNER == Owner::Nobody {
            self.home.push(None);
            self.queues.push_shared(0, id);
            return Ok(());
        }
        let Some(Dispatch { worker, job }) = self.ingress.poll(self.now_ns) else {
            return Err(format!(
                "request {} was not placed at once, as the network does",
                id.0
            ));
        };
        if job != id {
            return Err(format!("request {} does not wait", job.0));
        }
        self.home.push(Some(worker.index()));
        self.queues.deliver(worker, job);
        Ok(())
    }

    fn waiting(&self) -> usize {
        let own = (0..WORKERS as u16).map(|worker| self.queues.len(WorkerId(worker)));
        own.sum::<usize>() + self.queues.shared_len()
    }

    fn look(&mut self, worker: usize) -> Result<(), String> {
        self.queues.me = worker;
        match self.locals[worker].next(self.now_ns, &mut self.queues) {
            Next::Run { job, .. } => self.run(worker, job),
            Next::Retry => Ok(()),
            Next::Idle => {
                let own = self.queues.len(WorkerId(worker as u16));
                if self.promises.finds_its_own && own > 0 {
                    return Err(format!(
                        "worker {worker} idles beside its own {own} requests"
                    ));
                }
                let all = self.waiting();
                if self.promises.finds_all && all > 0 {
                    return Err(format!(
                        "worker {worker} idles while {all} requests wait, and it promised to be work-conserving"
                    ));
                }
                Ok(())
            }
        }
    }

    fn run(&mut self, worker: usize, job: JobId) -> Result<(), String> {
        if std::mem::replace(&mut self.ran[job.index()], true) {
            return Err(format!("request {} ran twice", job.0));
        }
        if self.promises.own_queue_in_order {
            let home = self.home[job.index()];
            if home != Some(worker) {
                return Err(format!("request {} left its queue", job.0));
            }
            let older = (0..job.index()).find(|&it| self.home[it] == home && !self.ran[it]);
            if let Some(older) = older {
                return Err(format!("request {older} was overtaken in its queue"));
            }
        }
        let finished = self.jobs[job.index()];
        self.locals[worker].finished(self.now_ns, &finished, 1, &mut self.queues);
        Ok(())
    }
}
