//! Lives through many worlds, and says how to repeat one in which something did not hold.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headway_machine::Topology;
use headway_machine::thread::pin_current;
use headway_policy::server::systems::ServerSpec;
use nix::time::{ClockId, clock_gettime};

use crate::engine::{WorldEngine, WorldReplay, describe, live_watched};
use crate::scenario::Faults;
use crate::scheduler::WorldProgress;
use crate::verdict::WorldVerdict;

/// How often a world is looked at from outside.
const LOOK: Duration = Duration::from_millis(500);

/// A world without a turn for so long, in which the process used a processor for so long: one of its threads spins.
const SPINS: Duration = Duration::from_secs(10);

/// A world without a turn for so long: one of its threads sleeps, however busy the machine is.
const SLEEPS: Duration = Duration::from_secs(300);

/// Which worlds to live through.
#[derive(Clone, Debug)]
pub struct WorldSearch {
    /// A world each.
    pub seeds: Range<u64>,
    /// What lives in them.
    pub engine: WorldEngine,
    /// What goes wrong in them, where it is a server.
    pub faults: Faults,
    /// The policy of all worlds, in place of one that each seed chooses.
    pub policy: Option<ServerSpec>,
    /// Whether to live through each world twice, and to compare the two to the bit.
    pub twice: bool,
    /// When to stop, however many worlds are left.
    pub until: Option<Instant>,
    /// Worlds at a time, each on a core of its own.
    pub side_by_side: usize,
}

/// A search in which nothing was amiss.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    /// Worlds lived through.
    pub worlds: u64,
    /// How often a thread made way for another, in all of them.
    pub turns: u64,
}

/// A world in which something did not hold.
#[derive(Debug)]
pub struct AmissWorld {
    replay: WorldReplay,
    verdict: WorldVerdict,
}

impl fmt::Display for AmissWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.replay.seed, self.verdict.scenario)?;
        for fault in self.verdict.faults.iter().take(20) {
            writeln!(f, "  {fault}")?;
        }
        write!(f, "  again: {}", self.replay)
    }
}

impl WorldSearch {
    /// Lives through the worlds.
    ///
    /// # Errors
    /// [`AmissWorld`]: the first world, in time, in which something did not hold.
    ///
    /// # Panics
    /// Never. Where a thread gets stuck outside of the world's sight the process ends, after a line that says in which world.
    pub fn run(&self) -> Result<Searched, Box<AmissWorld>> {
        let next = AtomicU64::new(self.seeds.start);
        let (worlds, turns) = (AtomicU64::new(0), AtomicU64::new(0));
        let (found, stop) = (Mutex::new(None), AtomicBool::new(false));
        let cores = Topology::read("/sys").map(|topology| topology.pinning_order());
        let cores = cores.unwrap_or_default();
        thread::scope(|scope| {
            for place in 0..self.side_by_side.max(1) {
                let core = cores.get(place % cores.len().max(1)).copied();
                let (next, worlds, turns, found, stop) = (&next, &worlds, &turns, &found, &stop);
                scope.spawn(move || {
                    // The world's threads inherit the core: they take turns anyway, and a turn that stays on its core is cheap.
                    let _ = core.map(pin_current);
                    while !stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.seeds.end
                            || self.until.is_some_and(|until| Instant::now() > until)
                        {
                            break;
                        }
                        let verdict = self.live(seed);
                        worlds.fetch_add(1, Ordering::Relaxed);
                        turns.fetch_add(verdict.turns, Ordering::Relaxed);
                        if !verdict.faults.is_empty() {
                            stop.store(true, Ordering::Relaxed);
                            let replay = self.replay(seed);
                            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                            found.get_or_insert(AmissWorld { replay, verdict });
                        }
                    }
                });
            }
        });
        match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(found) => Err(Box::new(found)),
            None => Ok(Searched {
                worlds: worlds.into_inner(),
                turns: turns.into_inner(),
            }),
        }
    }

    fn live(&self, seed: u64) -> WorldVerdict {
        let progress = WorldProgress::default();
        let _watch = watch(self.replay(seed), progress.clone());
        let policy = self.policy.as_ref();
        let live = || live_watched(self.engine, seed, self.faults, policy, &progress);
        let mut verdict = live();
        if self.twice {
            let again = live();
            if again.fingerprint != verdict.fingerprint {
                let fault = "the same seed went another way the second time";
                verdict.faults.push(fault.to_owned());
            }
        }
        verdict
    }

    fn replay(&self, seed: u64) -> WorldReplay {
        WorldReplay {
            seed,
            engine: self.engine,
            faults: self.faults,
            policy: self.policy.clone(),
        }
    }
}

/// Ends the process, and says in which world it was, unless the value is dropped in time.
fn watch(replay: WorldReplay, progress: WorldProgress) -> Sender<()> {
    let (ended, end) = channel();
    let scenario = describe(
        replay.engine,
        replay.seed,
        replay.faults,
        replay.policy.as_ref(),
    );
    thread::spawn(move || {
        let mut seen = (progress.turns(), Instant::now(), process_cpu());
        let why = loop {
            if end.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let (turns, since, used) = seen;
            if progress.turns() != turns {
                seen = (progress.turns(), Instant::now(), process_cpu());
            } else if since.elapsed() > SPINS && process_cpu() - used > SPINS {
                break "a thread spins without looking at the clock";
            } else if since.elapsed() > SLEEPS {
                break "a thread sleeps where no world sees it";
            }
        };
        println!(
            "seed {}: {scenario}\n  {why}\n  again: {replay}",
            replay.seed
        );
        std::process::exit(1);
    });
    ended
}

/// How long the process has used a processor.
fn process_cpu() -> Duration {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    used.map_or(Duration::ZERO, Duration::from)
}

/// Keeps panics that scenarios ask for off standard error. Any other panic in a world's thread is reported there.
pub fn silence_expected_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let owned = panic.payload().downcast_ref::<String>();
        let borrowed = panic.payload().downcast_ref::<&str>().copied();
        let message = owned.map(String::as_str).or(borrowed);
        if !message.is_some_and(|message| message.contains(crate::network::PANIC)) {
            report(panic);
        }
    }));
}
