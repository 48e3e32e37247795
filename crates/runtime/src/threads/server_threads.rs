//! Starting the server's threads: named, pinned where that helps, watched for their end.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headway_machine::thread::{PinError, pin_current};
use headway_machine::{Clock, Topology};
use headway_policy::WorkerId;
use headway_sync::Guarded;
use headway_sync::world::Announced;

use crate::error::StartError;
use crate::request::executor::ThreadSetup;
use crate::request::panics::{Panicked, catch};
use crate::threads::control::{ServerControl, ServerPhase};

/// Whether threads are bound to cores.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Pin {
    /// One core per thread if there are enough, else not at all.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// To these cores, in the order dispatcher (if it has a thread), worker 0, worker 1, …; of several dispatchers each is followed by its own workers.
    Cores(Vec<usize>),
}

/// The cores that the threads are pinned to, or why they are not pinned.
pub(crate) enum Pinning {
    Cores { cores: Vec<usize>, insist: bool },
    Unpinned { why: String },
}

impl Pinning {
    /// Refuses fewer named cores than threads.
    pub(crate) fn check(pin: &Pin, threads: usize) -> Result<(), StartError> {
        match pin {
            Pin::Cores(cores) if cores.len() < threads => Err(StartError::TooFewCores {
                threads,
                cores: cores.len(),
            }),
            _ => Ok(()),
        }
    }

    /// Chooses cores for `threads` threads.
    pub(crate) fn choose(pin: &Pin, threads: usize) -> Result<Self, StartError> {
        Self::check(pin, threads)?;
        match pin {
            Pin::Off => Ok(Self::unpinned("as asked".to_owned())),
            Pin::Cores(cores) => Ok(Self::Cores {
                cores: cores.clone(),
                insist: true,
            }),
            Pin::Auto => Ok(Self::automatic(threads)),
        }
    }

    /// Somebody else places the threads.
    pub(crate) fn by_arbiter() -> Self {
        Self::unpinned("an arbiter places them".to_owned())
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
                    Self::unpinned(format!(
                        "{threads} threads share {have} cores; expect latencies to suffer"
                    ))
                }
            }
            Err(error) => Self::unpinned(error.to_string()),
        }
    }

    fn unpinned(why: String) -> Self {
        Self::Unpinned { why }
    }
}

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a thread reports once it has tried to pin itself and to set up.
struct ThreadStart {
    pinned: Result<(), PinError>,
    ready: Result<(), StartError>,
}

impl ThreadStart {
    /// Pins the calling thread and sets it up.
    fn of(name: &str, core: Option<usize>, setup: Option<ThreadSetup>) -> Self {
        let pinned = core.map_or(Ok(()), pin_current);
        let core = core.filter(|_| pinned.is_ok());
        let ready = match catch(|| setup.map_or(Ok(()), |setup| setup(core))) {
            Ok(ready) => ready,
            Err(Panicked) => Err("it panicked; its message says why".into()),
        };
        Self {
            pinned,
            ready: ready.map_err(|source| StartError::Setup {
                name: name.to_owned(),
                source,
            }),
        }
    }
}

/// For each worker, pinned to the core of its place in `cores`: the worker on a core that shares its execution units.
fn siblings_among(cores: &[usize], topology: &Topology) -> Vec<Option<WorkerId>> {
    let shares = |core: usize, other: usize| {
        let mut known = topology.cores().iter();
        core != other && known.any(|c| c.id == core && c.siblings.contains(&other))
    };
    cores
        .iter()
        .map(|&core| cores.iter().position(|&other| shares(core, other)))
        .map(|place| place.map(|worker| WorkerId(worker as u16)))
        .collect()
}

/// What a thread of the server does, from its setup to its end.
pub(crate) type ThreadBody = Box<dyn FnOnce() + Send>;

/// The threads of one server.
pub(crate) struct ServerThreads {
    pinning: Pinning,
    handles: Vec<JoinHandle<Result<(), Panicked>>>,
    reports: Arc<Reports>,
}

impl ServerThreads {
    pub(crate) fn new(pinning: Pinning) -> Self {
        Self {
            pinning,
            handles: Vec::new(),
            reports: Arc::default(),
        }
    }

    /// For each of the `workers` threads after the first `before`: who of them is on the other hyper-thread of its core. Nobody where threads
    /// are not pinned or the machine does not say.
    pub(crate) fn siblings(&self, before: usize, workers: usize) -> Vec<Option<WorkerId>> {
        let (Pinning::Cores { cores, .. }, Ok(topology)) = (&self.pinning, Topology::read("/sys"))
        else {
            return vec![None; workers];
        };
        let own: Vec<usize> = cores.iter().copied().skip(before).take(workers).collect();
        siblings_among(&own, &topology)
    }

    /// Starts a thread, on the next core where threads are pinned. If it panics, the server gives up: a server that lacks a part would
    /// hang instead. The body is boxed: what starts a thread is compiled once, not for each engine under each policy.
    pub(crate) fn spawn(
        &mut self,
        name: String,
        control: &Arc<ServerControl>,
        setup: Option<ThreadSetup>,
        body: ThreadBody,
    ) -> Result<(), StartError> {
        let core = match &self.pinning {
            Pinning::Cores { cores, .. } => cores.get(self.handles.len()).copied(),
            Pinning::Unpinned { .. } => None,
        };
        let (reports, control) = (Arc::clone(&self.reports), Arc::clone(control));
        let thread_name = name.clone();
        let announced = Announced::of(&name);
        let handle = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let _in_world = announced.map(Announced::begin);
                let started = ThreadStart::of(&thread_name, core, setup);
                let is_ready = started.ready.is_ok();
                reports.change(|counts| counts.started.push(started));
                let ended = if is_ready { catch(body) } else { Ok(()) };
                if ended.is_err() {
                    control.advance(ServerPhase::Stopped);
                }
                reports.change(|counts| counts.ended += 1);
                ended
            })
            .map_err(|source| StartError::Thread { name, source })?;
        self.handles.push(handle);
        Ok(())
    }

    /// Waits until all threads have tried to pin themselves and to set up.
    ///
    /// # Errors
    /// When a thread could not be pinned to a core that was asked for, or not be set up.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let threads = self.handles.len();
        let mut unpinned = None;
        for ThreadStart { pinned, ready } in self.reports.wait_for_starts(threads) {
            ready?;
            unpinned = pinned.err().or(unpinned);
        }
        match (unpinned, &self.pinning) {
            (Some(error), Pinning::Cores { insist: true, .. }) => Err(StartError::Pin(error)),
            (Some(error), _) => {
                self.pinning = Pinning::unpinned(error.to_string());
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Why threads are not pinned, if they are not.
    pub(crate) fn unpinned(&self) -> Option<&str> {
        match &self.pinning {
            Pinning::Unpinned { why } => Some(why),
            Pinning::Cores { .. } => None,
        }
    }

    /// Waits for the threads' end, at most until `deadline_ns` by this clock, for ever where that is `u64::MAX`; whether all have ended.
    pub(crate) fn wait(&self, clock: Clock, deadline_ns: u64) -> bool {
        let threads = self.handles.len();
        self.reports.wait_for_ends(threads, clock, deadline_ns)
    }

    /// Joins the threads that have ended.
    pub(crate) fn join_ended(&mut self) -> Failed {
        let mut failed = Failed::default();
        for handle in self.handles.drain(..) {
            let name = handle.thread().name().unwrap_or_default().to_owned();
            if !exited(&handle) {
                failed.stuck.push(name);
            } else if !matches!(handle.join(), Ok(Ok(()))) {
                failed.crashed.push(name);
            }
        }
        failed
    }
}

/// The threads that did not end as they should, by name.
#[derive(Default)]
pub(crate) struct Failed {
    /// Still running.
    pub(crate) stuck: Vec<String>,
    /// Panicked.
    pub(crate) crashed: Vec<String>,
}

/// A thread that has reported its exit has a few more instructions to go.
fn exited<T>(thread: &JoinHandle<T>) -> bool {
    let deadline = Instant::now() + Duration::from_secs(1);
    while !thread.is_finished() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    thread.is_finished()
}

/// What the threads report to the one that starts and stops them.
#[derive(Default)]
struct Reports(Guarded<ThreadCounts>);

#[derive(Default)]
struct ThreadCounts {
    /// By the threads that have tried to set up.
    started: Vec<ThreadStart>,
    /// Threads that have ended.
    ended: usize,
}

impl Reports {
    fn change(&self, change: impl FnOnce(&mut ThreadCounts)) {
        change(&mut self.0.lock());
        self.0.notify_all();
    }

    /// Waits until this many threads have tried to set up.
    fn wait_for_starts(&self, threads: usize) -> Vec<ThreadStart> {
        let counts = self.0.lock();
        let mut counts = self
            .0
            .wait_while(counts, |counts| counts.started.len() < threads);
        std::mem::take(&mut counts.started)
    }

    /// Waits for the end of this many threads, at most until `deadline_ns`; whether they have ended.
    fn wait_for_ends(&self, threads: usize, clock: Clock, deadline_ns: u64) -> bool {
        let mut counts = self.0.lock();
        while counts.ended < threads {
            if deadline_ns == u64::MAX {
                counts = self.0.wait(counts);
                continue;
            }
            // The clock is read without the lock, since a world's may let another thread run.
            drop(counts);
            let left_ns = deadline_ns.saturating_sub(clock.now_ns());
            counts = self.0.lock();
            if counts.ended < threads {
                if left_ns == 0 {
                    return false;
                }
                counts = self.0.wait_for(counts, Duration::from_nanos(left_ns));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cores 0 and 2 are hyper-threads of one physical core, 1 and 3 of another.
    fn two_by_two() -> Topology {
        let sysfs = tempfile::tempdir().unwrap();
        let cpus = sysfs.path().join("devices/system/cpu");
        for core in 0..4 {
            let topology = cpus.join(format!("cpu{core}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            let siblings = format!("{},{}", core % 2, core % 2 + 2);
            std::fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        std::fs::write(cpus.join("online"), "0-3").unwrap();
        Topology::read_allowed(sysfs.path(), &[0, 1, 2, 3]).unwrap()
    }

    #[test]
    fn workers_on_one_physical_core_are_siblings() {
        let siblings = |cores: &[usize]| siblings_among(cores, &two_by_two());
        let [zero, one, two] = [0, 1, 2].map(|worker| Some(WorkerId(worker)));
        assert_eq!(siblings(&[0, 1, 2]), [two, None, zero]);
        assert_eq!(siblings(&[3, 1]), [one, zero]);
        assert_eq!(siblings(&[0, 1]), [None, None]);
        assert_eq!(siblings(&[0, 9]), [None, None], "a core that is unknown");
    }
}
