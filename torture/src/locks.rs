//! Locks held where a request is interrupted, and what is made once.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

use crate::ways;
use crate::ways::{Section, expect, work};

ways![
    mutex,
    mutex_that_is_poisoned,
    readers_and_writer,
    condition,
    channel,
    rendezvous,
    barrier,
    scoped_threads,
    once,
    once_that_panics,
    once_lock,
    lazy_lock,
    lazy_locks_of_their_own,
    stream_lock,
    line,
    parking_lot_mutex,
    parking_lot_reentrant_mutex,
    parking_lot_condition,
];

fn mutex(_: u64) {
    static LOCK: Mutex<()> = Mutex::new(());
    static SECTION: Section = Section::new();
    let _held = LOCK.lock();
    SECTION.visit();
}

/// Whether a thread panics is asked when a lock is taken and when it is let go.
fn mutex_that_is_poisoned(seed: u64) {
    static LOCK: Mutex<()> = Mutex::new(());
    if seed.is_multiple_of(3) {
        let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(work(seed))));
        expect(caught.is_err());
    }
    let held = LOCK.lock();
    expect(held.is_ok());
    work(seed);
}

fn readers_and_writer(seed: u64) {
    static LOCK: RwLock<u64> = RwLock::new(0);
    static SECTION: Section = Section::new();
    if let Ok(mut number) = LOCK.write() {
        SECTION.visit();
        *number = seed;
    }
    let read = LOCK.read();
    work(seed);
    expect(read.is_ok_and(|number| *number > 0));
}

fn condition(seed: u64) {
    static TOKENS: Mutex<u64> = Mutex::new(0);
    static GIVEN: Condvar = Condvar::new();
    if let Ok(mut tokens) = TOKENS.lock() {
        *tokens += 1;
        work(seed);
    }
    GIVEN.notify_one();
    work(seed);
    let tokens = TOKENS
        .lock()
        .and_then(|tokens| GIVEN.wait_while(tokens, |tokens| *tokens == 0));
    work(seed);
    expect(tokens.is_ok_and(|mut tokens| {
        *tokens -= 1;
        true
    }));
}

fn channel(seed: u64) {
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || {
        (0..4).try_for_each(|number| {
            work(seed);
            sender.send(seed + number)
        })
    });
    for number in 0..4 {
        work(seed);
        expect(receiver.recv_timeout(Duration::from_secs(60)) == Ok(seed + number));
    }
    expect(other.join().is_ok());
}

fn rendezvous(seed: u64) {
    let (sender, receiver) = mpsc::sync_channel(0);
    let other = thread::spawn(move || {
        work(seed);
        sender.send(seed)
    });
    work(seed);
    expect(receiver.recv() == Ok(seed));
    expect(other.join().is_ok_and(|sent| sent.is_ok()));
}

fn barrier(seed: u64) {
    let both = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            work(seed);
            both.wait()
        });
        work(seed);
        both.wait();
    });
}

fn scoped_threads(seed: u64) {
    let mut sums = [0; 2];
    thread::scope(|scope| {
        for sum in &mut sums {
            scope.spawn(move || *sum = work(seed));
        }
        work(seed);
    });
    expect(sums[0] == sums[1]);
}

fn once(seed: u64) {
    static ONCE: Once = Once::new();
    static TIMES: AtomicU64 = AtomicU64::new(0);
    ONCE.call_once(|| {
        work(5);
        TIMES.fetch_add(1, Ordering::Relaxed);
    });
    work(seed);
    expect(TIMES.load(Ordering::Relaxed) == 1);
}

fn once_that_panics(seed: u64) {
    let once = Once::new();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        once.call_once(|| {
            work(seed);
            std::panic::resume_unwind(Box::new(seed))
        })
    }));
    expect(caught.is_err());
    work(seed);
    once.call_once_force(|state| {
        work(seed);
        expect(state.is_poisoned())
    });
    expect(once.is_completed());
}

fn once_lock(seed: u64) {
    static CELLS: [OnceLock<u64>; 64] = [const { OnceLock::new() }; 64];
    let cell = &CELLS[(seed % 64) as usize];
    let number = *cell.get_or_init(|| {
        work(seed);
        seed % 64
    });
    expect(number == seed % 64);
}

fn lazy_lock(seed: u64) {
    static TABLE: LazyLock<Vec<u64>> = LazyLock::new(|| {
        (0..64)
            .map(|number| {
                work(number);
                number
            })
            .collect()
    });
    work(seed);
    expect(TABLE[(seed % 64) as usize] == seed % 64);
}

fn lazy_locks_of_their_own(seed: u64) {
    let lazy = LazyLock::new(|| {
        work(seed);
        vec![seed; 8]
    });
    thread::scope(|scope| {
        scope.spawn(|| expect(lazy[3] == seed));
        work(seed);
        expect(lazy[5] == seed);
    });
}

/// Its own thread may take this lock again.
fn stream_lock(_: u64) {
    static SECTION: Section = Section::new();
    let _line = io::stderr().lock();
    let again = io::stderr().lock();
    SECTION.visit();
    drop(again);
}

/// A line that goes out in pieces.
fn line(seed: u64) {
    static SECTION: Section = Section::new();
    let mut lines = io::stdout().lock();
    SECTION.visit();
    expect(write!(lines, "").is_ok());
    work(seed);
    expect(lines.flush().is_ok());
}

fn parking_lot_mutex(seed: u64) {
    static LOCK: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    static SECTION: Section = Section::new();
    let _held = LOCK.lock();
    SECTION.visit();
    work(seed);
}

fn parking_lot_reentrant_mutex(seed: u64) {
    static LOCK: parking_lot::ReentrantMutex<()> = parking_lot::ReentrantMutex::new(());
    static SECTION: Section = Section::new();
    let _held = LOCK.lock();
    work(seed);
    let _again = LOCK.lock();
    SECTION.visit();
}

fn parking_lot_condition(seed: u64) {
    static TOKENS: parking_lot::Mutex<u64> = parking_lot::Mutex::new(0);
    static GIVEN: parking_lot::Condvar = parking_lot::Condvar::new();
    *TOKENS.lock() += 1;
    work(seed);
    GIVEN.notify_one();
    let mut tokens = TOKENS.lock();
    GIVEN.wait_while(&mut tokens, |tokens| *tokens == 0);
    work(seed);
    *tokens -= 1;
}
