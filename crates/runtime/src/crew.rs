//! Starting the server's threads: named, pinned where that helps, watched for their end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headway_machine::Topology;
use headway_machine::thread::{PinError, pin_current};

use crate::control::{Control, Phase};
use crate::error::StartError;
use crate::panics::{Panicked, catch};
use crate::service::SetupFailure;

/// Whether threads are bound to cores.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Pin {
    /// One core per thread if there are enough, else not at all.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// To these cores, in the order dispatcher (if it has a thread), worker 0, worker 1, …
    Cores(Vec<usize>),
}

/// The cores for the threads to come, or why there are none.
pub(crate) enum Seats {
    Cores { cores: Vec<usize>, insist: bool },
    Anywhere { why: String },
}

impl Seats {
    /// Chooses cores for `threads` threads.
    pub(crate) fn choose(pin: &Pin, threads: usize) -> Result<Self, StartError> {
        match pin {
            Pin::Off => Ok(Self::anywhere("as asked".to_owned())),
            Pin::Cores(cores) if cores.len() < threads => Err(StartError::TooFewCores {
                threads,
                cores: cores.len(),
            }),
            Pin::Cores(cores) => Ok(Self::Cores {
                cores: cores.clone(),
                insist: true,
            }),
            Pin::Auto => Ok(Self::automatic(threads)),
        }
    }

    fn automatic(threads: usize) -> Self {
        match Topology::read("/sys") {
            Ok(topology) => {
                let cores = topology.pinning_order();
                if cores.len() >= threads {
                    Self::Cores {
                        cores,
                        insist: false,
                    }
                } else {
                    let have = cores.len();
                    Self::anywhere(format!(
                        "{threads} threads share {have} cores; expect latencies to suffer"
                    ))
                }
            }
            Err(error) => Self::anywhere(error.to_string()),
        }
    }

    fn anywhere(why: String) -> Self {
        Self::Anywhere { why }
    }
}

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a thread does on its seat before the server counts on it; it is told the core, if it is pinned to one.
pub(crate) type Setup = Box<dyn FnOnce(Option<usize>) -> Result<(), SetupFailure> + Send>;

/// What a thread says when it has sat down and set up.
struct Arrival {
    seated: Result<(), PinError>,
    ready: Result<(), StartError>,
}

impl Arrival {
    /// Pins the calling thread and sets it up.
    fn of(name: &str, core: Option<usize>, setup: Option<Setup>) -> Self {
        let seated = core.map_or(Ok(()), pin_current);
        let core = core.filter(|_| seated.is_ok());
        let set_up = || setup.map_or(Ok(()), |setup| setup(core));
        let ready = match catch(set_up) {
            Ok(ready) => ready,
            Err(Panicked) => Err("it panicked; its message says why".into()),
        };
        let failed = |source| StartError::Setup {
            name: name.to_owned(),
            source,
        };
        Self {
            seated,
            ready: ready.map_err(failed),
        }
    }
}

/// The threads of one server.
pub(crate) struct Crew {
    seats: Seats,
    threads: Vec<JoinHandle<Result<(), Panicked>>>,
    reports: Arc<Reports>,
}

impl Crew {
    pub(crate) fn new(seats: Seats) -> Self {
        Self {
            seats,
            threads: Vec::new(),
            reports: Arc::default(),
        }
    }

    /// Starts a thread on the next seat. If it panics, the server gives up: a server that lacks a part would
    /// hang instead.
    pub(crate) fn spawn(
        &mut self,
        name: String,
        control: &Arc<Control>,
        setup: Option<Setup>,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let core = match &self.seats {
            Seats::Cores { cores, .. } => cores.get(self.threads.len()).copied(),
            Seats::Anywhere { .. } => None,
        };
        let (reports, control) = (Arc::clone(&self.reports), Arc::clone(control));
        let thread_name = name.clone();
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let arrival = Arrival::of(&thread_name, core, setup);
                let is_ready = arrival.ready.is_ok();
                reports.change(|counts| counts.arrivals.push(arrival));
                let ended = if is_ready { catch(body) } else { Ok(()) };
                if ended.is_err() {
                    control.advance(Phase::Stopped);
                }
                reports.change(|counts| counts.ended += 1);
                ended
            })
            .map_err(|source| StartError::Thread { name, source })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits until all threads have tried to sit down and to set up.
    ///
    /// # Errors
    /// When a thread could not be pinned to a core that was asked for, or not be set up.
    pub(crate) fn settle(&mut self) -> Result<(), StartError> {
        let threads = self.threads.len();
        let mut unpinned = None;
        for Arrival { seated, ready } in self.reports.arrivals(threads) {
            ready?;
            unpinned = seated.err().or(unpinned);
        }
        match (unpinned, &self.seats) {
            (Some(error), Seats::Cores { insist: true, .. }) => Err(StartError::Pin(error)),
            (Some(error), _) => {
                self.seats = Seats::anywhere(error.to_string());
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Why threads are not pinned, if they are not.
    pub(crate) fn unpinned(&self) -> Option<&str> {
        match &self.seats {
            Seats::Anywhere { why } => Some(why),
            Seats::Cores { .. } => None,
        }
    }

    /// Waits for the threads' end, at most until `deadline`; whether all have ended.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        self.reports.wait_for_ends(self.threads.len(), deadline)
    }

    /// Joins the threads that have ended; names those that have not, and those that panicked.
    pub(crate) fn join_ended(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut stuck, mut crashed) = (Vec::new(), Vec::new());
        for thread in self.threads.drain(..) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if !exited(&thread) {
                stuck.push(name);
            } else if !matches!(thread.join(), Ok(Ok(()))) {
                crashed.push(name);
            }
        }
        (stuck, crashed)
    }
}

/// A thread that has reported its exit has a few more instructions to go.
fn exited<T>(thread: &JoinHandle<T>) -> bool {
    let patience = Instant::now() + Duration::from_secs(1);
    while !thread.is_finished() && Instant::now() < patience {
        std::thread::yield_now();
    }
    thread.is_finished()
}

/// What the threads tell whoever starts and stops them.
#[derive(Default)]
struct Reports {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    /// Of threads that have tried to set up.
    arrivals: Vec<Arrival>,
    /// Threads that have ended.
    ended: usize,
}

impl Reports {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for the arrivals of this many threads.
    fn arrivals(&self, threads: usize) -> Vec<Arrival> {
        let arrived = self
            .changed
            .wait_while(self.lock(), |counts| counts.arrivals.len() < threads);
        let mut counts = arrived.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut counts.arrivals)
    }

    /// Waits for the end of this many threads, at most until `deadline`; whether they have ended.
    fn wait_for_ends(&self, threads: usize, deadline: Option<Instant>) -> bool {
        let mut counts = self.lock();
        while counts.ended < threads {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            counts = match left {
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    let waited = self.changed.wait_timeout(counts, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.changed.wait(counts);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        true
    }
}
