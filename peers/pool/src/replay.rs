//! Arrivals that are replayed: the tail of slowdowns where short and long jobs share two workers.
//!
//! As in `make bench-peers` no pool has a core for a generator: its own threads submit what is due. Headway's poll between slices and while they have no
//! job ([`PoolBuilder::poll_with`](headway_pool::PoolBuilder::poll_with)); rayon's and Tokio's have a feeder, a job or task that is always ready and makes
//! way, which comes to the same where jobs run in their order. A job spins for its service time; its latency counts from the intended arrival until the
//! future of its result wakes who awaits it, and is ready.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use anyhow::{Result, ensure};
use headway_machine::Clock;
use headway_policy::Rng;
use tokio::sync::oneshot;

use crate::contender::{Contender, Kind, Pending};

/// Offered load, of all workers.
const LOAD: f64 = 0.7;

/// During which jobs arrive.
pub(crate) const SPAN_NS: f64 = 1e9;

/// Until the first arrival: the kernel may start all threads of a pool on one core, and parts those that spin some tens of milliseconds later.
pub(crate) const SPREAD_NS: u64 = 200_000_000;

/// The share of first arrivals that are not measured.
const WARM_UP: f64 = 0.1;

/// Two kinds of jobs.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) short_ns: u64,
    pub(crate) long_ns: u64,
    pub(crate) long_share: f64,
}

/// A job that arrives so long after the first one may, ns.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) at_ns: u64,
    pub(crate) service_ns: u64,
    pub(crate) is_long: bool,
}

/// A round's arrivals, and when each job ended.
pub(crate) struct Replay {
    clock: Clock,
    start_ns: u64,
    arrivals: Vec<Arrival>,
    next: AtomicUsize,
    ended: AtomicUsize,
    latencies_ns: Vec<AtomicU64>,
}

impl Mix {
    /// The arrivals of a round, the same for all contenders.
    pub(crate) fn arrivals(self, workers: usize, round: usize) -> Vec<Arrival> {
        let mix = self;
        let mean_ns =
            mix.short_ns as f64 * (1.0 - mix.long_share) + mix.long_ns as f64 * mix.long_share;
        let between_ns = mean_ns / (LOAD * workers as f64);
        let mut rng = Rng::new(1 + round as u64);
        let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut at_ns = 0.0;
        let mut arrivals = Vec::new();
        while at_ns < SPAN_NS {
            at_ns -= between_ns * (1.0 - uniform()).ln();
            let is_long = uniform() < mix.long_share;
            let service_ns = if is_long { mix.long_ns } else { mix.short_ns };
            arrivals.push(Arrival {
                at_ns: at_ns as u64,
                service_ns,
                is_long,
            });
        }
        arrivals
    }
}

impl Replay {
    fn of(arrivals: Vec<Arrival>) -> Arc<Self> {
        let clock = Clock::global();
        Arc::new(Self {
            clock,
            start_ns: clock.now_ns() + SPREAD_NS,
            latencies_ns: arrivals.iter().map(|_| AtomicU64::new(0)).collect(),
            arrivals,
            next: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        })
    }

    /// Whether every arrival was taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.arrivals.len()
    }

    /// Whether an arrival is due that nobody took.
    fn is_due(&self) -> bool {
        let next = self.arrivals.get(self.next.load(Ordering::Relaxed));
        next.is_some_and(|next| self.clock.now_ns() >= self.start_ns + next.at_ns)
    }

    /// Takes the next arrival that is due: its number, and whether it is a long one.
    pub(crate) fn claim_due(&self) -> Option<(usize, bool)> {
        loop {
            let index = self.next.load(Ordering::Relaxed);
            let arrival = self.arrivals.get(index)?;
            if self.clock.now_ns() < self.start_ns + arrival.at_ns {
                return None;
            }
            let claim =
                self.next
                    .compare_exchange(index, index + 1, Ordering::Relaxed, Ordering::Relaxed);
            if claim.is_ok() {
                return Some((index, arrival.is_long));
            }
        }
    }

    /// Serves an arrival. `checkpoint` is called in each turn of the loop; time in which others ran there is no service.
    pub(crate) fn serve(&self, index: usize, checkpoint: impl Fn()) {
        let work = self.clock.ticks_in(self.arrivals[index].service_ns);
        let (mut done, mut last) = (0, self.clock.ticks());
        let mut pauses = headway_fiber::suspensions();
        while done < work {
            checkpoint();
            let now = self.clock.ticks();
            let seen = headway_fiber::suspensions();
            if seen == pauses {
                done += now.wrapping_sub(last);
            }
            (pauses, last) = (seen, now);
        }
    }

    /// Who awaits an arrival has its result.
    fn ended(&self, index: usize) {
        let ended_ns = self.clock.now_ns();
        let latency_ns = ended_ns.saturating_sub(self.start_ns + self.arrivals[index].at_ns);
        self.latencies_ns[index].store(latency_ns.max(1), Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Release);
    }
}

/// The 99th percentile of all jobs' slowdowns, latency over service time.
///
/// # Errors
/// When the pool does not start, or leaves jobs without an end.
pub(crate) fn p99_slowdown(kind: Kind, workers: usize, mix: Mix, round: usize) -> Result<f64> {
    let replay = Replay::of(mix.arrivals(workers, round));
    let polled = Arc::new(OnceLock::new());
    let pool = {
        let polled = Arc::clone(&polled);
        kind.start_with(workers, |builder| builder.poll_with(move || poll(&polled)))?
    };
    let pool = Arc::new(pool);
    let _ = polled.set((Arc::downgrade(&pool), Arc::clone(&replay)));
    feed(&pool, &replay);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while replay.ended.load(Ordering::Acquire) < replay.arrivals.len() {
        ensure!(
            std::time::Instant::now() < deadline,
            "{} leaves jobs without an end",
            kind.name()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let latencies_ns = replay.latencies_ns.iter();
    let latencies_ns: Vec<u64> = latencies_ns
        .map(|latency_ns| latency_ns.load(Ordering::Relaxed))
        .collect();
    Ok(p99(&replay.arrivals, &latencies_ns))
}

/// The 99th percentile of slowdowns, without the first arrivals.
pub(crate) fn p99(arrivals: &[Arrival], latencies_ns: &[u64]) -> f64 {
    let measured = arrivals.iter().zip(latencies_ns);
    let mut slowdowns: Vec<f64> = measured
        .skip((arrivals.len() as f64 * WARM_UP) as usize)
        .map(|(arrival, latency_ns)| *latency_ns as f64 / arrival.service_ns as f64)
        .collect();
    slowdowns.sort_by(f64::total_cmp);
    slowdowns[slowdowns.len() * 99 / 100]
}

/// Who awaits the result of an arrival: a task without an executor, which is polled where it is woken.
struct Awaiter {
    replay: Arc<Replay>,
    index: usize,
    result: Mutex<Option<Pending>>,
}

impl Awaiter {
    fn follow(replay: &Arc<Replay>, index: usize, result: Pending) {
        let awaiter = Self {
            replay: Arc::clone(replay),
            index,
            result: Mutex::new(Some(result)),
        };
        Arc::new(awaiter).wake();
    }
}

impl Wake for Awaiter {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut context = Context::from_waker(&waker);
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pending) = &mut *result
            && Pin::new(pending).poll(&mut context).is_ready()
        {
            *result = None;
            self.replay.ended(self.index);
        }
    }
}

/// What a worker of Headway's sees to between slices.
fn poll(polled: &OnceLock<(Weak<Contender>, Arc<Replay>)>) {
    let Some((pool, replay)) = polled.get() else {
        return;
    };
    if !replay.is_due() {
        return;
    }
    let Some(pool) = pool.upgrade() else { return };
    while let Some((index, is_long)) = replay.claim_due() {
        let served = Arc::clone(replay);
        let job = pool.submit(is_long, move || served.serve(index, interruptible));
        Awaiter::follow(replay, index, job);
    }
}

/// Starts the feeder of a pool that has one.
fn feed(pool: &Contender, replay: &Arc<Replay>) {
    let replay = Arc::clone(replay);
    match pool {
        // Its workers poll.
        Contender::Headway { .. } => {}
        Contender::Rayon(pool) => {
            pool.spawn_broadcast(move |_| {
                while !replay.is_taken() {
                    while let Some((index, _)) = replay.claim_due() {
                        let served = Arc::clone(&replay);
                        let (sender, receiver) = oneshot::channel();
                        rayon::spawn_fifo(move || {
                            served.serve(index, || ());
                            let _ = sender.send(());
                        });
                        Awaiter::follow(&replay, index, Pending::Oneshot(receiver));
                    }
                    rayon::yield_now();
                }
            });
        }
        Contender::Tokio(runtime) => {
            runtime.spawn(async move {
                while !replay.is_taken() {
                    while let Some((index, _)) = replay.claim_due() {
                        let served = Arc::clone(&replay);
                        let task = tokio::spawn(async move { served.serve(index, || ()) });
                        Awaiter::follow(&replay, index, Pending::task(task));
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
        // Its feeder is a task of the runtime, beside the blocking threads.
        Contender::SpawnBlocking(runtime) => {
            runtime.spawn(async move {
                while !replay.is_taken() {
                    while let Some((index, _)) = replay.claim_due() {
                        let served = Arc::clone(&replay);
                        let task = tokio::task::spawn_blocking(move || served.serve(index, || ()));
                        Awaiter::follow(&replay, index, Pending::task(task));
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
    }
}

/// A checkpoint of a pool's; in a pool that does not interrupt it costs a few ns.
fn interruptible() {
    let _ = headway_pool::checkpoint();
}
