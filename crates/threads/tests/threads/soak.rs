//! Runtimes of random shape: their cores come and go while their threads perform random operations of every kind.
//!
//! `make soak` does a million operations, `make test` a tenth of that. A failure prints the seed: `HEADWAY_SOAK_ONLY=SEED cargo test -p headway-threads --test threads soak`
//! does the same operations again.

use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use headway_fiber::checkpoint;
use headway_kthread::CoreSource;
use headway_threads::{
    Condvar, Mutex, ReadCell, Receiver, Semaphore, Sender, channel, park_timeout, sleep, spawn,
    unparker, yield_now,
};

use crate::source::TestSource;

/// Operations without `HEADWAY_SOAK`.
const OPERATIONS: u64 = 20_000;
/// The seed of the first runtime.
const SEED: u64 = 0x5eed;
/// The operations of each thread.
const EACH: u64 = 100;
const PERMITS: usize = 2;

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}

/// The shared state of a runtime's threads.
struct World {
    count: Mutex<u64>,
    changed: Condvar,
    semaphore: Semaphore,
    inside: AtomicUsize,
    sender: Sender<u64>,
    receiver: Receiver<u64>,
    sent: AtomicU64,
    received: AtomicU64,
    lent: ReadCell<Arc<AtomicBool>>,
}

impl World {
    fn new(room: usize) -> World {
        let (sender, receiver) = channel(room);
        World {
            count: Mutex::new(0),
            changed: Condvar::new(),
            semaphore: Semaphore::new(PERMITS),
            inside: AtomicUsize::new(0),
            sender,
            receiver,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            lent: ReadCell::new(Arc::new(AtomicBool::new(true))),
        }
    }
}

/// Computes, with probes.
fn compute(draws: &mut Draws) {
    for step in 0..draws.below(5_000) {
        black_box(step);
        checkpoint();
    }
}

/// Performs a random operation. None waits for ever, whatever the other threads do.
fn operate(world: &Arc<World>, draws: &mut Draws) {
    match draws.below(10) {
        0 => yield_now(),
        1 => compute(draws),
        2 => count(world, draws),
        3 => children(draws),
        4 => sleep(Duration::from_micros(draws.below(50))),
        5 => {
            let me = unparker();
            let other = spawn(move || me.unpark());
            park_timeout(Duration::from_micros(draws.below(100)));
            other.join().expect("it does not panic");
        }
        6 => world
            .lent
            .read(|lent| assert!(lent.load(Ordering::Acquire))),
        7 => {
            let old = world.lent.replace(Arc::new(AtomicBool::new(true)));
            old.store(false, Ordering::Release);
        }
        8 => send_and_receive(world, draws.below(1_000)),
        _ => {
            world.semaphore.acquire();
            assert!(world.inside.fetch_add(1, Ordering::AcqRel) < PERMITS);
            compute(draws);
            world.inside.fetch_sub(1, Ordering::AcqRel);
            world.semaphore.release();
        }
    }
}

/// Counts, or waits a little for a thread that counts.
fn count(world: &World, draws: &mut Draws) {
    let mut count = world.count.lock();
    if draws.below(4) == 0 {
        let wait = Duration::from_micros(draws.below(100));
        (count, _) = world.changed.wait_timeout(count, wait);
    }
    let before = *count;
    compute(draws);
    *count = before + 1;
    drop(count);
    world.changed.notify_one();
}

fn children(draws: &mut Draws) {
    let number = draws.below(100);
    let child = spawn(move || {
        yield_now();
        if number.is_multiple_of(7) {
            resume_unwind(Box::new(number));
        }
        number + 1
    });
    match child.join() {
        Ok(result) => assert_eq!(result, number + 1),
        Err(panic) => assert_eq!(panic.downcast_ref(), Some(&number)),
    }
}

/// Each thread receives as often as one of its children sends, so no receive waits for ever.
fn send_and_receive(world: &Arc<World>, number: u64) {
    let sends = Arc::clone(world);
    let child = spawn(move || {
        sends.sent.fetch_add(number, Ordering::Relaxed);
        sends.sender.send(number).expect("somebody receives");
    });
    let received = world.receiver.recv().expect("somebody sends");
    world.received.fetch_add(received, Ordering::Relaxed);
    child.join().expect("it does not panic");
}

/// Runs one runtime. Returns its numbers of operations and of cores given back.
fn trial(seed: u64) -> (u64, u64) {
    let mut draws = Draws(seed);
    let kthreads = 1 + draws.below(4) as usize;
    let source = TestSource::new(kthreads);
    let builder = source.runtime();
    let slice = Duration::from_micros(2 + draws.below(50));
    let runtime = builder.slice(slice).start().expect("kthreads");
    let world = Arc::new(World::new(1 + draws.below(4) as usize));
    let threads = 4 + draws.below(20);
    let ended = AtomicBool::new(false);
    let counted = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut draws = Draws(!seed);
            while !ended.load(Ordering::Acquire) {
                source
                    .orders(draws.below(kthreads as u64) as usize)
                    .revoke();
                thread::sleep(Duration::from_micros(100 + draws.below(400)));
            }
        });
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let (world, counted) = (Arc::clone(&world), Arc::clone(&counted));
                let mut draws = Draws(seed.wrapping_mul(1_000) + thread);
                runtime.spawn(move || {
                    for _ in 0..EACH {
                        operate(&world, &mut draws);
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for handle in handles {
            handle.join().expect("no thread panics");
        }
        ended.store(true, Ordering::Release);
    });
    let sent = world.sent.load(Ordering::Relaxed);
    assert_eq!(sent, world.received.load(Ordering::Relaxed));
    assert_eq!(counted.load(Ordering::Relaxed), threads * EACH);
    assert!((0..PERMITS).all(|_| world.semaphore.try_acquire()));
    (threads * EACH, source.left())
}

/// Prints how to repeat a failed test.
struct NamesSeed(u64);

impl Drop for NamesSeed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "repeat it: HEADWAY_SOAK_ONLY={} cargo test -p headway-threads --test threads soak",
                self.0
            );
        }
    }
}

#[test]
fn soak_of_threads_whose_cores_come_and_go() {
    let number = |name| {
        let text: Option<String> = std::env::var(name).ok();
        text.map(|text| text.parse::<u64>().expect("a whole number"))
    };
    let only = number("HEADWAY_SOAK_ONLY");
    let wanted = number("HEADWAY_SOAK").unwrap_or(OPERATIONS);
    let (mut done, mut left) = (0, 0);
    for seed in only.unwrap_or(SEED).. {
        let _seed = NamesSeed(seed);
        let (operations, leaves) = trial(seed);
        done += operations;
        left += leaves;
        if done >= wanted || only.is_some() {
            break;
        }
    }
    println!("{done} operations, cores given back {left} times");
    assert!(left > 0, "no core was ever taken");
}
