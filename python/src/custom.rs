//! A policy in Python: its three roles, called by the simulator's engine.
//!
//! Each call takes the interpreter's lock, so such a policy is some hundred times slower than one of the registry. What a role decides is checked
//! as it decides it: it may dispatch only a request that waits, each once, to a worker with room. The first fault ends the run, which then gives
//! that exception.

use crate::errors::HeadwayError;
use crate::interrupt::RunFlags;
use crate::views::{JobView, QueuesView};
use headway_policy::server::role::{
    Backlog, Dispatch, Ingress, Local, Monitor, Next, Owner, Polling, Preempt, PreemptionDecision,
    Queues, Shed, Slicing, Steal, WithoutAssignment, WithoutDispatcherWork, WithoutFeedback,
    WithoutHearing, WithoutInspection, WithoutTicks,
};
use headway_policy::{Job, JobId, WorkerId};
use pyo3::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a run's roles.
pub(crate) struct Fault {
    first: Mutex<Option<PyErr>>,
    cutoff: Arc<AtomicBool>,
    /// Set by the first exception, and by Ctrl-C.
    is_set: Arc<AtomicBool>,
    waiting: AtomicUsize,
}

impl Fault {
    pub(crate) fn new(end: &RunFlags) -> Arc<Self> {
        Arc::new(Self {
            first: Mutex::new(None),
            cutoff: Arc::clone(&end.cutoff),
            is_set: Arc::clone(&end.stopped),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Keeps the exception and ends the run.
    fn set(&self, error: PyErr) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.is_set.store(true, Ordering::Relaxed);
        self.cutoff.store(true, Ordering::Relaxed);
    }

    /// Requests that the ingress accepted and has not dispatched.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.take()
    }
}

/// A role's object, and the methods that it overrides.
pub(crate) struct Role {
    object: Py<PyAny>,
    heard: HashSet<String>,
    fault: Arc<Fault>,
}

impl Role {
    /// Of an object of one of the package's base classes.
    pub(crate) fn new(object: &Bound<'_, PyAny>, fault: &Arc<Fault>) -> PyResult<Self> {
        Ok(Self {
            heard: object.getattr("overridden")?.call0()?.extract()?,
            object: object.clone().unbind(),
            fault: Arc::clone(fault),
        })
    }

    /// Calls a method that is overridden; `None` where it is not, or after a fault.
    fn ask<T>(
        &self,
        method: &str,
        ask: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if !self.heard.contains(method) || self.fault.is_set.load(Ordering::Relaxed) {
            return None;
        }
        Python::attach(|py| {
            let answer = ask(self.object.bind(py));
            answer.map_err(|error| self.fault.set(error)).ok()
        })
    }

    fn refuse(&self, why: String) {
        self.fault.set(HeadwayError::new_err(why));
    }
}

/// The exception of an answer that is none of the method's.
fn wrong(method: &str, gives: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let given = given
        .repr()
        .map_or_else(|_| "that".into(), |it| it.to_string());
    HeadwayError::new_err(format!("{method}: gives {gives}, not {given}"))
}

/// A span that a role gives, no longer than virtual time: later is never, and sums do not overflow.
fn clamped(ns: u64) -> u64 {
    const LONGEST_NS: u64 = 1 << 54;
    ns.min(LONGEST_NS)
}

/// A worker of a decision, if there is such a worker.
fn worker_at(role: &Role, what: &str, worker: usize, workers: usize) -> Option<WorkerId> {
    if worker < workers {
        return Some(WorkerId(worker as u16));
    }
    role.refuse(format!(
        "{what}: there is no worker {worker}, only 0 to {}",
        workers - 1
    ));
    None
}

/// An ingress in Python, under a dispatcher or, where it steers, of the network.
pub(crate) struct PyIngress<const STEERS: bool> {
    role: Role,
    queue_limit: usize,
    depth: usize,
    /// Accepted and not dispatched.
    waiting: HashMap<JobId, Job>,
    /// By worker: requests that it holds.
    held: Vec<usize>,
}

impl<const STEERS: bool> PyIngress<STEERS> {
    pub(crate) fn new(role: Role, workers: usize, depth: usize, queue_limit: usize) -> Self {
        Self {
            role,
            queue_limit,
            depth,
            waiting: HashMap::new(),
            held: vec![0; workers],
        }
    }

    fn tell_waiting(&self) {
        let waiting = self.waiting.len();
        self.role.fault.waiting.store(waiting, Ordering::Relaxed);
    }

    /// The decision, if it is one that can be.
    fn checked(&mut self, worker: usize, job: u32) -> Option<Dispatch> {
        let at = worker_at(&self.role, "poll", worker, self.held.len())?;
        if self.held[worker] >= self.depth {
            let held = self.held[worker];
            self.role.refuse(format!(
                "poll: worker {worker} holds {held} requests, which is its depth"
            ));
            return None;
        }
        let id = JobId(job);
        if self.waiting.remove(&id).is_none() {
            self.role
                .refuse(format!("poll: request {job} does not wait"));
            return None;
        }
        self.held[worker] += 1;
        self.tell_waiting();
        Some(Dispatch {
            worker: at,
            job: id,
        })
    }
}

impl<const STEERS: bool> Ingress for PyIngress<STEERS> {
    const OWNER: Owner = if STEERS {
        Owner::Steering
    } else {
        Owner::Dispatcher
    };

    fn arrived(&mut self, now_ns: u64, job: Job) -> Result<(), Shed> {
        if self.waiting.len() >= self.queue_limit {
            return Err(Shed);
        }
        let accepts = self.role.ask("arrived", |role| {
            let given = role.call_method1("arrived", (now_ns, JobView(job)))?;
            let accepts = given.extract::<Option<bool>>();
            let accepts = accepts.map_err(|_| wrong("arrived", "True, False or None", &given))?;
            Ok(accepts.unwrap_or(true))
        });
        if accepts != Some(true) {
            return Err(Shed);
        }
        self.waiting.insert(job.id, job);
        self.tell_waiting();
        Ok(())
    }

    fn poll(&mut self, now_ns: u64) -> Option<Dispatch> {
        if self.waiting.is_empty() {
            return None;
        }
        let decided = self.role.ask("poll", |role| {
            let given = role.call_method1("poll", (now_ns,))?;
            let decided = given.extract::<Option<(usize, u32)>>();
            decided.map_err(|_| wrong("poll", "a worker and a request's id, or None", &given))
        });
        let (worker, job) = decided??;
        self.checked(worker, job)
    }

    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: Job) {
        let held = &mut self.held[worker.index()];
        *held = held.saturating_sub(1);
        self.waiting.insert(job.id, job);
        self.tell_waiting();
        self.role.ask("yielded", |role| {
            let given = (now_ns, worker.index(), JobView(job));
            role.call_method1("yielded", given).map(drop)
        });
    }

    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: JobId, cpu_ns: u64) {
        let held = &mut self.held[worker.index()];
        *held = held.saturating_sub(1);
        self.role.ask("finished", |role| {
            let given = (now_ns, worker.index(), job.0, cpu_ns);
            role.call_method1("finished", given).map(drop)
        });
    }

    fn worker_added(&mut self, now_ns: u64, worker: WorkerId) {
        self.role.ask("worker_added", |role| {
            let given = (now_ns, worker.index());
            role.call_method1("worker_added", given).map(drop)
        });
    }

    fn worker_removed(&mut self, now_ns: u64, worker: WorkerId) {
        self.role.ask("worker_removed", |role| {
            let given = (now_ns, worker.index());
            role.call_method1("worker_removed", given).map(drop)
        });
    }

    fn grow(&mut self, _capacity: usize) {}

    fn adopt(&mut self, _fresh: &Self) {}

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn wants(&self, worker: WorkerId) -> bool {
        let wants = || {
            self.role.ask("wants", |role| {
                let given = role.call_method1("wants", (worker.index(),))?;
                let wants = given.extract::<bool>();
                wants.map_err(|_| wrong("wants", "True or False", &given))
            })
        };
        !self.waiting.is_empty() && wants().unwrap_or(true)
    }
}

impl<const STEERS: bool> WithoutInspection for PyIngress<STEERS> {}
impl<const STEERS: bool> WithoutDispatcherWork for PyIngress<STEERS> {}
impl<const STEERS: bool> WithoutAssignment for PyIngress<STEERS> {}

/// A worker's decisions in Python; without, it takes the head of its queue.
pub(crate) struct PyLocal {
    pub(crate) role: Option<Role>,
    pub(crate) shared_queues: usize,
}

/// Where a worker takes its next request from.
#[derive(FromPyObject)]
struct Take {
    source: String,
    slice_ns: Option<u64>,
    victim: usize,
    at_most: usize,
    queue: usize,
}

impl PyLocal {
    /// Whether it decides nothing: it takes the head of its queue.
    pub(crate) fn takes_the_head(&self) -> bool {
        self.role
            .as_ref()
            .is_none_or(|role| !role.heard.contains("next"))
    }

    /// Carries a decision out; `None` where another's queue had nothing to steal.
    fn taken<Q: Queues>(&self, role: &Role, take: &Take, queues: &mut Q) -> Option<Next> {
        if take.source == "shared" && take.queue >= self.shared_queues {
            role.refuse(format!(
                "next: there is no shared queue {}, only 0 to {}",
                take.queue,
                self.shared_queues - 1
            ));
            return Some(Next::Idle);
        }
        if take.slice_ns == Some(0) {
            role.refuse("next: a slice lasts 1 ns or longer".into());
            return Some(Next::Idle);
        }
        let job = match take.source.as_str() {
            "own" => queues.pop(),
            "shared" => queues.pop_shared(take.queue),
            "steal" => {
                let victim = worker_at(role, "next", take.victim, queues.workers());
                match queues.try_steal(victim?, take.at_most) {
                    Steal::Empty => return None,
                    Steal::Retry => return Some(Next::Retry),
                    Steal::Batch(_) => queues.pop(),
                }
            }
            other => {
                role.refuse(format!("next: '{other}' is neither own, steal nor shared"));
                None
            }
        };
        let slice_ns = take.slice_ns.map(clamped);
        Some(job.map_or(Next::Idle, |job| Next::Run { job, slice_ns }))
    }
}

impl Local for PyLocal {
    const STEALS: bool = true;

    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next {
        let run = |job| Next::Run {
            job,
            slice_ns: None,
        };
        let Some(role) = self
            .role
            .as_ref()
            .filter(|role| role.heard.contains("next"))
        else {
            return queues.pop().map_or(Next::Idle, run);
        };
        // Each worker may be asked in vain once.
        for _ in 0..=queues.workers() {
            let view = QueuesView::of(queues);
            let decided = role.ask("next", |role| {
                let given = role.call_method1("next", (now_ns, view))?;
                let decided = given.extract::<Option<Take>>();
                decided.map_err(|_| wrong("next", "a headway.Take or None", &given))
            });
            let Some(take) = decided.flatten() else {
                return Next::Idle;
            };
            if let Some(next) = self.taken(role, &take, queues) {
                return next;
            }
        }
        Next::Idle
    }

    fn yielded<Q: Queues>(&mut self, now_ns: u64, job: &Job, queues: &mut Q) -> bool {
        let keeps = self.role.as_ref().and_then(|role| {
            role.ask("yielded", |role| {
                let given = (now_ns, JobView(*job), QueuesView::of(queues));
                let given = role.call_method1("yielded", given)?;
                let keeps = given.extract::<bool>();
                keeps.map_err(|_| wrong("yielded", "True or False", &given))
            })
        });
        if keeps == Some(true) {
            queues.push(job.id);
        }
        keeps == Some(true)
    }

    fn finished<Q: Queues>(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, queues: &mut Q) {
        if let Some(role) = &self.role {
            role.ask("finished", |role| {
                let given = (now_ns, JobView(*job), cpu_ns, QueuesView::of(queues));
                role.call_method1("finished", given).map(drop)
            });
        }
    }

    fn adopt(&mut self, _fresh: &Self) {}
}

impl Slicing for PyLocal {
    const SLICES: bool = true;
    const RENEWS_ALONE: bool = false;

    fn renew<Q: Queues>(&mut self, now_ns: u64, queues: &Q) -> Option<u64> {
        let renewed = self.role.as_ref()?.ask("renew", |role| {
            let given = role.call_method1("renew", (now_ns, QueuesView::of(queues)))?;
            let renewed = given.extract::<Option<u64>>();
            renewed.map_err(|_| wrong("renew", "ns or None", &given))
        });
        renewed.flatten().filter(|ns| *ns > 0).map(clamped)
    }
}

impl WithoutHearing for PyLocal {}

/// A monitor in Python; without, nobody is interrupted.
#[derive(Clone)]
pub(crate) struct PyMonitor {
    role: Option<Arc<Role>>,
    /// The last interruption that it asked for, and when.
    last: Option<(u64, usize, u64)>,
}

impl PyMonitor {
    pub(crate) fn new(role: Option<Role>) -> Self {
        Self {
            role: role.map(Arc::new),
            last: None,
        }
    }
}

impl Monitor for PyMonitor {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = true;

    fn keeps_times(&self) -> bool {
        false
    }

    fn started<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        let after = self.role.as_ref()?.ask("started", |role| {
            let given = (now_ns, worker.index(), JobView(*job), epoch);
            let given = role.call_method1("started", given)?;
            let after = given.extract::<Option<u64>>();
            after.map_err(|_| wrong("started", "ns or None", &given))
        });
        after.flatten().filter(|ns| *ns > 0).map(clamped)
    }

    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        queues: &Q,
    ) -> PreemptionDecision {
        let Some(role) = &self.role else {
            return PreemptionDecision::Leave;
        };
        let wanted = ingress.wants(worker) || queues.len(worker) > 0;
        let decided = role.ask("expired", |role| {
            let given = role.call_method1("expired", (now_ns, worker.index(), wanted))?;
            let decided = given.extract::<Decided>();
            decided.map_err(|_| wrong("expired", "True, ns or None", &given))
        });
        match decided {
            None | Some(Decided::Renew(None)) => PreemptionDecision::Leave,
            Some(Decided::Preempt(false)) => PreemptionDecision::Leave,
            Some(Decided::Preempt(true)) => PreemptionDecision::Preempt,
            Some(Decided::Renew(Some(ns))) => PreemptionDecision::Renew(clamped(ns.max(1))),
        }
    }

    fn stopped(&mut self, now_ns: u64, worker: WorkerId, epoch: u64) {
        if let Some(role) = &self.role {
            role.ask("stopped", |role| {
                let given = (now_ns, worker.index(), epoch);
                role.call_method1("stopped", given).map(drop)
            });
        }
    }

    fn adopt(&mut self, _fresh: &Self) {}
}

/// `True` to interrupt, a number of ns to look again, or none.
#[derive(FromPyObject)]
enum Decided {
    Preempt(bool),
    Renew(Option<u64>),
}

impl Polling for PyMonitor {
    const POLLS: bool = true;

    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        ingress: &I,
        queues: &Q,
    ) -> Option<Preempt> {
        let role = self.role.as_ref()?;
        let waiting = ingress.waiting();
        let decided = role.ask("poll", |role| {
            let given = role.call_method1("poll", (now_ns, waiting))?;
            let decided = given.extract::<Option<(usize, u64)>>();
            decided.map_err(|_| wrong("poll", "a worker and an epoch, or None", &given))
        });
        let (worker, epoch) = decided??;
        let id = worker_at(role, "poll", worker, queues.workers())?;
        // An epoch ends with its interruption, so the second would change nothing, and the next answer be the same.
        if self.last.replace((now_ns, worker, epoch)) == Some((now_ns, worker, epoch)) {
            role.refuse(format!(
                "poll: epoch {epoch} of worker {worker} was to be interrupted twice at {now_ns} ns"
            ));
            return None;
        }
        Some(Preempt { worker: id, epoch })
    }
}

impl WithoutTicks for PyMonitor {}
impl WithoutFeedback for PyMonitor {}
