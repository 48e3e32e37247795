//! Pools and jobs that a seed draws.

use headway_policy::Rng;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{NAMES, ServerSpec};
use headway_pool::{
    ClassCounts, ClassOptions, JobFuture, JoinError, Pool, PoolLayout, blocking, cancelled,
    checkpoint,
};
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::common::LIMIT;

const CLASSES: [&str; 3] = ["short", "long", "share"];

fn below(rng: &mut Rng, bound: u64) -> u64 {
    rng.next_u64() % bound
}

fn draw_pool(rng: &mut Rng) -> Pool {
    let policy = NAMES[below(rng, NAMES.len() as u64) as usize];
    let mut options = [const { None }; 3].map(|_: Option<()>| ClassOptions::new());
    options[1] = ClassOptions::new().mean(Duration::from_micros(100));
    options[2] = ClassOptions::new().workers_at_most(1);
    for class in &mut options {
        if below(rng, 4) == 0 {
            *class = class.clone().queue_limit(1 + below(rng, 20) as usize);
        }
        if below(rng, 8) == 0 {
            *class = class
                .clone()
                .begin_within(Duration::from_micros(below(rng, 200)));
        }
        if below(rng, 8) == 0 {
            *class = class
                .clone()
                .slo(Duration::from_micros(50 + below(rng, 500)));
        }
    }
    let spec: ServerSpec = policy.parse().expect("a name of the registry");
    let may_be_dedicated = spec.facts().owner == Owner::Dispatcher;
    let layout = if may_be_dedicated && below(rng, 2) == 0 {
        PoolLayout::Dedicated
    } else {
        PoolLayout::Inline
    };
    let builder = Pool::builder()
        .policy(policy)
        .layout(layout)
        .workers(1 + below(rng, 3) as usize)
        .capacity(1 + below(rng, 200) as usize)
        .blocking_threads(below(rng, 3) as usize)
        .learn_classes(below(rng, 4) as usize);
    let builder = CLASSES
        .iter()
        .zip(options)
        .fold(builder, |builder, (name, options)| {
            builder.class(name, options)
        });
    builder
        .build()
        .unwrap_or_else(|error| panic!("{policy}: {error}"))
}

/// The ends that the owners of jobs saw.
#[derive(Default)]
struct Seen {
    accepted: AtomicUsize,
    ends: Mutex<ClassCounts>,
}

impl Seen {
    fn end(&self, result: &Result<(), JoinError>) {
        let mut ends = self.ends.lock().unwrap();
        match result {
            Ok(()) => ends.done += 1,
            Err(JoinError::Panic(_)) => ends.panicked += 1,
            Err(JoinError::Cancelled) => ends.cancelled += 1,
            Err(JoinError::Shed(_)) => ends.shed += 1,
            Err(JoinError::Abandoned) => ends.abandoned += 1,
            Err(error) => panic!("no end of an accepted job: {error}"),
        }
    }
}

/// Closures and futures of jobs that were not dropped yet.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// How many closures and futures of jobs are there still.
pub(crate) fn alive() -> usize {
    ALIVE.load(Ordering::SeqCst)
}

/// Part of what a job captures.
struct Tracked;

impl Tracked {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Submits one job of a kind that the seed draws; `None` where it was refused.
fn draw_job(rng: &mut Rng, pool: &Pool) -> Option<JobFuture<()>> {
    let class = CLASSES[below(rng, 3) as usize];
    let (spins, handle) = (below(rng, 300), pool.clone());
    let tracked = Tracked::new();
    let held = tracked.clone();
    let work = move || {
        let _held = &held;
        (0..spins).for_each(|_| std::hint::spin_loop());
    };
    let job = match below(rng, 11) {
        0 => pool.submit(class, move || {
            let _held = &tracked;
            std::panic::panic_any(spins)
        }),
        1 => pool.submit(class, move || {
            let child = handle.submit(class, work);
            let _ = child.wait();
        }),
        2 => pool.submit(class, move || {
            let local = AtomicUsize::new(0);
            let _ = handle.scope(|scope| {
                for _ in 0..3 {
                    let _ = scope.submit(class, || local.fetch_add(1, Ordering::Relaxed));
                }
            });
        }),
        3 => pool.spawn(class, async move {
            let _held = &tracked;
            let mut left = spins % 5;
            poll_fn(move |context| {
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }),
        4 => pool.submit(class, move || blocking(work)),
        5 => pool.submit_cancellable(class, move || {
            let _held = &tracked;
            for _ in 0..spins {
                checkpoint().expect("inside");
            }
        }),
        6 => pool.submit_unclassified(spins % 7, work),
        7 => pool.submit(class, move || handle.submit(class, work).detach()),
        8 => pool.submit(class, move || drop(handle.submit(class, work))),
        9 => pool.spawn(class, async move {
            let _held = &tracked;
            woken_by_a_job(&handle, class).await;
        }),
        _ => pool.submit(class, move || while !cancelled() && spins > 290 {}),
    };
    job.refusal().is_none().then_some(job)
}

/// Sleeps until a job of the pool wakes it. Where that is refused or shed, its waker is dropped, and nobody wakes it before the pool's end.
async fn woken_by_a_job(pool: &Pool, class: &'static str) {
    let mut is_woken = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_woken, true) {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        pool.submit(class, move || waker.wake()).detach();
        Poll::Pending
    })
    .await;
}

/// Submits so many jobs, cancels, awaits and lets go.
fn submit_all(mut rng: Rng, pool: &Pool, seen: &Seen, jobs: usize) {
    let mut held = Vec::new();
    for _ in 0..jobs {
        let Some(job) = draw_job(&mut rng, pool) else {
            continue;
        };
        seen.accepted.fetch_add(1, Ordering::SeqCst);
        match below(&mut rng, 6) {
            0 => drop(job),
            1 => job.detach(),
            _ => held.push(job),
        }
        if below(&mut rng, 20) == 0 {
            let at = below(&mut rng, held.len().max(1) as u64) as usize;
            held.drain(..at.min(held.len())).for_each(drop);
        }
    }
    // A job that runs until it is cancelled has nobody who would cancel it but the pool's end.
    for job in held {
        seen.end(&job.wait());
    }
}

/// A pool that the seed draws, two threads that submit so many jobs each, and its end at a moment that the seed draws. Returns how many jobs it accepted.
pub(crate) fn live_through(seed: u64, jobs: usize) -> u64 {
    let mut rng = Rng::new(seed);
    let pool = draw_pool(&mut rng);
    let (seen, over) = (Seen::default(), AtomicBool::new(false));
    let rngs = [(); 2].map(|()| Rng::new(rng.next_u64()));
    let patience = Duration::from_micros(below(&mut rng, 20_000));
    std::thread::scope(|threads| {
        let watches = threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for class in pool.stats().classes {
                    assert!(class.counts.add_up(), "{class:?}");
                }
            }
        });
        let submit: Vec<_> = rngs
            .into_iter()
            .map(|rng| threads.spawn(|| submit_all(rng, &pool, &seen, jobs)))
            .collect();
        std::thread::sleep(patience);
        let _ = pool.shutdown(patience);
        submit.into_iter().for_each(|thread| thread.join().unwrap());
        // Every accepted job had an end, so a pool that has ended has none left but those that run still.
        pool.wait_idle().unwrap();
        over.store(true, Ordering::Relaxed);
        watches.join().unwrap();
    });
    let counts = pool.stats().total();
    let ends = seen.ends.lock().unwrap();
    assert!(counts.add_up(), "{counts:?}");
    assert_eq!((counts.waiting, counts.running, counts.asleep), (0, 0, 0));
    assert!(counts.submitted as usize >= seen.accepted.load(Ordering::SeqCst));
    for (counted, awaited) in [
        (counts.done, ends.done),
        (counts.panicked, ends.panicked),
        (counts.cancelled, ends.cancelled),
        (counts.shed, ends.shed),
        (counts.abandoned, ends.abandoned),
    ] {
        assert!(counted >= awaited, "{counts:?}: {ends:?}");
    }
    counts.submitted
}

/// Jobs panic by the hundred, and each would print.
pub(crate) fn be_quiet_about_drawn_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<u64>().is_none() {
            hook(info);
        }
    }));
}

/// Runs a seed's life within the limit, and names the seed if it fails or hangs.
pub(crate) fn in_time(seed: u64, life: impl FnOnce() -> u64 + Send + 'static) -> u64 {
    let (done, ended) = std::sync::mpsc::channel();
    let lives = std::thread::spawn(move || {
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
        let _ = done.send(lived.ok());
    });
    let lived = ended.recv_timeout(LIMIT * 2);
    let how = if lived.is_err() { "hangs" } else { "failed" };
    let Ok(Some(submitted)) = lived else {
        panic!("{how}: HEADWAY_POOL_SEED={seed} cargo test -p headway-pool --test pool counts");
    };
    lives.join().expect("it sent how it ended");
    submitted
}
