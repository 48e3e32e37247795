//! The thread that tells the kernel the cores of programs, so that the arbiter need not wait for it.

use super::group::ProgramGroup;
use crate::futex;
use headway_policy::host::ConfinePace;
use nix::sched::CpuSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The interval between two counts of a program's threads.
const COUNT_INTERVAL: Duration = Duration::from_millis(50);
/// The longest pause after changes: until the next count.
const REST_MAX: Duration = COUNT_INTERVAL;
/// The longest sleep without a program.
const NO_GROUPS: Duration = Duration::from_secs(3600);
const BITS: usize = 64;
const WORDS: usize = 1024 / BITS;

/// The thread, and the groups that it serves.
#[derive(Debug)]
pub struct Confiner {
    shared: Arc<ConfinerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ConfinerState {
    groups: Mutex<Vec<Arc<ConfinedGroup>>>,
    wakes: AtomicU32,
    /// Changes with each end, of a group or of the thread.
    ended: AtomicU32,
    ends: AtomicBool,
}

#[derive(Debug)]
struct ConfinedGroup {
    group: ProgramGroup,
    /// Where its threads go at its end.
    home: CpuSet,
    /// The cores that it is to have, a bit each. A reader that meets a writer reads them again, since the writer wakes it last.
    cores: [AtomicU64; WORDS],
    told: Mutex<ToldCores>,
    ends: AtomicBool,
    threads: AtomicUsize,
}

/// What the kernel was told. Only the thread uses it.
#[derive(Debug, Default)]
struct ToldCores {
    cores: CpuSet,
    /// Since when the group is to have fewer.
    narrower_since: Option<Instant>,
}

/// The arbiter's side of a program's group. When it is dropped, the program's processes return to where they came from.
#[derive(Debug)]
pub struct GroupHandle {
    group: Arc<ConfinedGroup>,
    shared: Arc<ConfinerState>,
}

impl Confiner {
    /// Starts the thread.
    ///
    /// # Errors
    /// As the system.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(ConfinerState::default());
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("hw-confine".into());
        let thread = thread.spawn(move || own.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Serves a group from now on. At its end its threads return to the cores `home`.
    pub fn serve(&self, group: ProgramGroup, home: CpuSet) -> GroupHandle {
        let group = Arc::new(ConfinedGroup {
            threads: AtomicUsize::new(group.threads()),
            group,
            home,
            cores: [const { AtomicU64::new(0) }; WORDS],
            told: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        self.shared.lock().push(Arc::clone(&group));
        GroupHandle {
            group,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Confiner {
    /// Waits until the groups of all dropped handles have ended.
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.shared.wake_for_end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl GroupHandle {
    /// Has every thread of the group confined to these cores soon. Takes the same time for any number of threads.
    pub fn confine(&self, cores: &CpuSet) {
        let mut changed = false;
        for (index, word) in self.group.cores.iter().enumerate() {
            let bits = (0..BITS).filter(|bit| cores.is_set(index * BITS + bit) == Ok(true));
            let bits = bits.fold(0, |bits, bit| bits | 1 << bit);
            changed |= word.swap(bits, Ordering::Relaxed) != bits;
        }
        if changed {
            futex::wake(&self.shared.wakes);
        }
    }

    /// The number of its threads, when they were last counted.
    pub fn threads(&self) -> usize {
        self.group.threads.load(Ordering::Relaxed)
    }
}

impl Drop for GroupHandle {
    fn drop(&mut self) {
        self.group.ends.store(true, Ordering::Release);
        self.shared.wake_for_end();
    }
}

impl ConfinerState {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ConfinedGroup>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_for_end(&self) {
        futex::wake(&self.ended);
        futex::wake(&self.wakes);
    }

    fn run(&self) {
        let mut counted = Instant::now();
        loop {
            let seen = self.wakes.load(Ordering::Acquire);
            let ended = self.ended.load(Ordering::Acquire);
            let ends = self.ends.load(Ordering::Acquire);
            let groups = self.lock().clone();
            let (over, groups): (Vec<_>, Vec<_>) = groups
                .into_iter()
                .partition(|one| ends || one.ends.load(Ordering::Acquire));
            let begun = Instant::now();
            let counts = counted.elapsed() >= COUNT_INTERVAL;
            if counts {
                counted = begun;
            }
            groups.iter().for_each(|one| one.serve(counts, begun));
            let took_ns = begun.elapsed().as_nanos() as u64;
            over.iter().for_each(|one| one.group.end(&one.home));
            if ends {
                return;
            }
            let is_over =
                |one: &Arc<ConfinedGroup>| over.iter().any(|other| Arc::ptr_eq(one, other));
            self.lock().retain(|one| !is_over(one));
            let rest = Duration::from_nanos(ConfinePace::rest_ns(took_ns));
            futex::wait(&self.ended, ended, rest.min(REST_MAX));
            let most = if groups.is_empty() {
                NO_GROUPS
            } else if groups.iter().any(|one| one.is_wide()) {
                Duration::from_nanos(ConfinePace::NARROWS_AFTER_NS)
            } else {
                COUNT_INTERVAL
            };
            futex::wait(&self.wakes, seen, most);
        }
    }
}

impl ConfinedGroup {
    fn serve(&self, counts: bool, now: Instant) {
        self.tell(now);
        if counts {
            self.threads.store(self.group.threads(), Ordering::Relaxed);
        }
    }

    /// Tells the kernel the cores, more of them at once, and fewer once they were gone for a while.
    fn tell(&self, now: Instant) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self.wanted();
        let both = union(&told.cores, &wanted);
        let is_wider = both != told.cores;
        if is_wider {
            // Cores that went away stay out of the group's reach; the next change names others.
            let _ = self.group.confine(&both);
            told.cores = both;
        }
        if told.cores == wanted {
            told.narrower_since = None;
            return;
        }
        let since = *told.narrower_since.get_or_insert(now);
        let gone_ns = now.duration_since(since).as_nanos() as u64;
        if ConfinePace::narrows(gone_ns) {
            let _ = self.group.confine(&wanted);
            *told = ToldCores {
                cores: wanted,
                narrower_since: None,
            };
        }
    }

    fn wanted(&self) -> CpuSet {
        let mut cores = CpuSet::new();
        for core in 0..WORDS * BITS {
            if self.cores[core / BITS].load(Ordering::Relaxed) >> (core % BITS) & 1 == 1 {
                let _ = cores.set(core);
            }
        }
        cores
    }

    /// Whether the kernel has cores to take back.
    fn is_wide(&self) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.narrower_since.is_some()
    }
}

fn union(some: &CpuSet, others: &CpuSet) -> CpuSet {
    let mut both = *some;
    for core in (0..CpuSet::count()).filter(|&core| others.is_set(core) == Ok(true)) {
        let _ = both.set(core);
    }
    both
}
