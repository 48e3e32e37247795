//! Starting the server's threads: named, pinned where that helps, watched for their end.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headway_machine::Topology;
use headway_machine::thread::{PinError, pin_current};

use crate::control::{Control, Phase};
use crate::error::StartError;
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

/// The threads of one server.
pub(crate) struct Crew {
    seats: Seats,
    threads: Vec<JoinHandle<()>>,
    exits: Arc<Exits>,
    /// For threads to come; none once all are there.
    arrivals: Option<Sender<Arrival>>,
    arrived: Receiver<Arrival>,
}

impl Crew {
    pub(crate) fn new(seats: Seats) -> Self {
        let (arrivals, arrived) = channel();
        Self {
            seats,
            threads: Vec::new(),
            exits: Arc::default(),
            arrivals: Some(arrivals),
            arrived,
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
        let guard = Guard {
            exits: Arc::clone(&self.exits),
            control: Arc::clone(control),
        };
        let arrivals = self.arrivals.clone();
        let thread_name = name.clone();
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let _guard = guard;
                let seated = core.map_or(Ok(()), pin_current);
                let core = core.filter(|_| seated.is_ok());
                let ready = setup.map_or(Ok(()), |setup| {
                    setup(core).map_err(|source| StartError::Setup {
                        name: thread_name,
                        source,
                    })
                });
                let is_ready = ready.is_ok();
                if let Some(arrivals) = arrivals {
                    // The starter may have given up already.
                    let _ = arrivals.send(Arrival { seated, ready });
                }
                if is_ready {
                    body();
                }
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
        // The loop then ends without a thread that panicked; that it did is found out when it is joined.
        self.arrivals = None;
        let mut unpinned = None;
        for Arrival { seated, ready } in &self.arrived {
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
        self.exits.wait_for(self.threads.len(), deadline)
    }

    /// Joins the threads that have ended; names those that have not, and those that panicked.
    pub(crate) fn join_ended(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut stuck, mut crashed) = (Vec::new(), Vec::new());
        for thread in self.threads.drain(..) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if !exited(&thread) {
                stuck.push(name);
            } else if thread.join().is_err() {
                crashed.push(name);
            }
        }
        (stuck, crashed)
    }
}

/// A thread that has reported its exit has a few more instructions to go.
fn exited(thread: &JoinHandle<()>) -> bool {
    let patience = Instant::now() + Duration::from_secs(1);
    while !thread.is_finished() && Instant::now() < patience {
        std::thread::yield_now();
    }
    thread.is_finished()
}

/// Counts threads that have ended.
#[derive(Default)]
struct Exits {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Exits {
    fn wait_for(&self, threads: usize, deadline: Option<Instant>) -> bool {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count < threads {
            count =
                match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                    Some(Duration::ZERO) => return false,
                    Some(left) => {
                        let waited = self.changed.wait_timeout(count, left);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => {
                        let waited = self.changed.wait(count);
                        waited.unwrap_or_else(PoisonError::into_inner)
                    }
                };
        }
        true
    }
}

/// Lives on a thread's stack and reports its end, however it comes.
struct Guard {
    exits: Arc<Exits>,
    control: Arc<Control>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.control.advance(Phase::Stopped);
        }
        *self
            .exits
            .count
            .lock()
            .unwrap_or_else(PoisonError::into_inner) += 1;
        self.exits.changed.notify_all();
    }
}
