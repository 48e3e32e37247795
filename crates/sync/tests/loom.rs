//! Every interleaving of the parts that threads share, within loom's bounds.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p headway-sync --release --test loom`
#![cfg(loom)]

use headway_sync::leader::Leadership;
use headway_sync::park::{Parker, announce};
use headway_sync::park_token::ParkToken;
use headway_sync::ring::{Consumer, Producer, ring};
use headway_sync::run_queue::{RunQueueMemory, run_queue};
use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

#[path = "loom/rescue.rs"]
mod rescue;

/// A model that switches threads where they could have gone on at most so often: few bugs need more than two
/// (Musuvathi and Qadeer, PLDI 2007).
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model
}

/// Words arrive in order, once, unaltered, through a ring so small that laps and fullness matter.
fn words_cross_in_order(capacity: usize, words: u64) {
    bounded(3).check(move || {
        let (mut producer, mut consumer) = ring(capacity);
        let sender = thread::spawn(move || {
            for word in 1..=words {
                while producer.push(word).is_err() {
                    thread::yield_now();
                }
            }
        });
        for expected in 1..=words {
            let word = loop {
                match consumer.pop() {
                    Some(word) => break word,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(word, expected);
        }
        assert!(consumer.is_empty());
        sender.join().unwrap();
    });
}

#[test]
fn a_ring_of_one() {
    words_cross_in_order(1, 3);
}

#[test]
fn a_ring_of_two() {
    words_cross_in_order(2, 5);
}

/// The ring's words carry ownership: what was written before a push is seen after the pop, and what the consumer
/// did before its pop, by the producer that reuses the place.
#[test]
fn a_word_hands_over_what_it_stands_for() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(1);
        let buffer = Arc::new(loom::cell::UnsafeCell::new(0));
        let (mut back, mut returned) = ring(1);
        let shared = Arc::clone(&buffer);
        let worker = thread::spawn(move || {
            for _ in 0..2 {
                while consumer.is_empty() {
                    thread::yield_now();
                }
                consumer.pop();
                shared.with_mut(write_next);
                back.push(1).unwrap();
            }
        });
        for _ in 0..2 {
            buffer.with_mut(write_next);
            producer.push(1).unwrap();
            while returned.pop().is_none() {
                thread::yield_now();
            }
        }
        worker.join().unwrap();
    });
}

/// loom itself reports accesses that are not ordered; the value is of no interest.
fn write_next(value: *mut i32) {
    assert!(!value.is_null());
}

/// A sleeper that is woken after its work was stored never sleeps on it. (loom reports the deadlock.)
#[test]
fn no_wake_is_lost() {
    bounded(3).check(|| {
        let parker = Arc::new(Parker::new());
        let (mut producer, mut consumer) = ring(2);
        let own = Arc::clone(&parker);
        let sleeper = thread::spawn(move || {
            let mut taken = 0;
            while taken < 2 {
                match consumer.pop() {
                    Some(_) => taken += 1,
                    None => own.park_unless(|| !consumer.is_empty()),
                }
            }
        });
        for word in 0..2 {
            producer.push(word).unwrap();
            announce();
            parker.wake();
        }
        sleeper.join().unwrap();
    });
}

/// A dispatcher as small as can be: requests to be had, one worker's ring each.
struct Source {
    /// loom checks that leaders' accesses are ordered.
    touched: loom::cell::UnsafeCell<i32>,
    left: usize,
    rings: Vec<Producer>,
    next: usize,
}

impl Source {
    /// Hands out one request, to the workers in turn; to whom.
    fn step(&mut self) -> Option<usize> {
        self.touched.with_mut(write_next);
        self.left = self.left.checked_sub(1)?;
        let worker = self.next;
        self.next = (worker + 1) % self.rings.len();
        self.rings[worker].push(1).unwrap();
        Some(worker)
    }
}

/// The protocol of `leader`, as the workers follow it; ends when all requests have been run.
fn work(
    me: usize,
    mut ring: Consumer,
    shared: &Leadership<Source>,
    run: &AtomicUsize,
    requests: usize,
) {
    let all_run = || run.load(Ordering::Acquire) == requests;
    while !all_run() {
        if ring.pop().is_some() {
            run.fetch_add(1, Ordering::AcqRel);
            continue;
        }
        let lead = shared
            .try_lead()
            .or_else(|| shared.follow(me, || !ring.is_empty() || all_run()));
        let Some(mut lead) = lead else { continue };
        // With nothing left to hand out a leader would sleep at the receive queue; here it resigns and looks again.
        while let Some(worker) = lead.step() {
            if worker == me {
                break;
            }
            announce();
            shared.wake(worker);
        }
        let idle = ring.is_empty() && !all_run();
        shared.resign(lead);
        if idle {
            thread::yield_now();
        }
    }
    shared.wake_all();
}

/// Every request is run though workers park: a worker that resigns leaves no request behind.
fn requests_are_all_run(requests: usize, preemptions: usize) {
    bounded(preemptions).check(move || {
        let (rings, mut ends): (Vec<_>, Vec<_>) = (0..2).map(|_| ring(requests)).unzip();
        let source = Source {
            touched: loom::cell::UnsafeCell::new(0),
            left: requests,
            rings,
            next: 0,
        };
        let shared = Arc::new(Leadership::new(source, 2));
        let run = Arc::new(AtomicUsize::new(0));
        let other_end = ends.pop().unwrap();
        let other = thread::spawn({
            let (shared, run) = (Arc::clone(&shared), Arc::clone(&run));
            move || work(1, other_end, &shared, &run, requests)
        });
        work(0, ends.pop().unwrap(), &shared, &run, requests);
        other.join().unwrap();
        assert_eq!(run.load(Ordering::Acquire), requests);
    });
}

#[test]
fn leadership_is_handed_over() {
    requests_are_all_run(1, 3);
    requests_are_all_run(2, 2);
}

/// A worker parks while the leader leaves to run a request for ever: somebody must still lead, or the second request
/// would wait until the first one's end.
#[test]
fn a_leader_that_leaves_wakes_a_follower() {
    loom::model(|| {
        let shared = Arc::new(Leadership::new(0usize, 2));
        let follower = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                loop {
                    if let Some(mut lead) = shared.try_lead().or_else(|| shared.follow(1, || false))
                    {
                        *lead += 1;
                        break;
                    }
                }
            }
        });
        if let Some(lead) = shared.try_lead() {
            shared.resign(lead);
        }
        // From here on the first worker does nothing any more.
        follower.join().unwrap();
        assert_eq!(*shared.try_lead().unwrap(), 1);
    });
}

/// Requests that wait outside, and the queue from which workers help themselves.
struct Outside {
    /// loom checks that leaders' accesses are ordered.
    touched: loom::cell::UnsafeCell<i32>,
    left: usize,
    /// Requests that a poll brings.
    at_once: usize,
}

/// The protocol of `unplaced`, as the workers follow it: a leader moves a request that came into the shared queue, of which `waiting` is the
/// length. No request ends before all have begun, so that a worker that sleeps while one waits is found out.
fn help_yourself(
    me: usize,
    shared: &Leadership<Outside>,
    waiting: &AtomicUsize,
    begun: &AtomicUsize,
    requests: usize,
) {
    let all_begun = || begun.load(Ordering::Acquire) == requests;
    let take = |count: usize| count.checked_sub(1);
    let mut owes_lead = false;
    while !all_begun() {
        if waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
        {
            let leaves_work = waiting.load(Ordering::Acquire) > 0;
            if leaves_work || std::mem::take(&mut owes_lead) && !shared.is_led() {
                announce();
                shared.wake_follower();
            }
            begun.fetch_add(1, Ordering::AcqRel);
            while !all_begun() {
                thread::yield_now();
            }
            break;
        }
        let lead = shared
            .try_lead()
            .or_else(|| shared.follow(me, || waiting.load(Ordering::Acquire) > 0 || all_begun()));
        owes_lead = lead.is_none();
        let Some(mut lead) = lead else { continue };
        lead.touched.with_mut(write_next);
        let came = lead.left.min(lead.at_once);
        lead.left -= came;
        waiting.fetch_add(came, Ordering::AcqRel);
        shared.resign(lead);
        if came == 0 && !all_begun() {
            // A leader would sleep at the receive queue.
            thread::yield_now();
        }
    }
    shared.wake_all();
}

/// A request is begun while the other runs, whether both come at once or one after the other.
#[test]
fn workers_that_help_themselves_leave_nothing_behind() {
    for at_once in [1, 2] {
        bounded(2).check(move || {
            let outside = Outside {
                touched: loom::cell::UnsafeCell::new(0),
                left: 2,
                at_once,
            };
            let shared = Arc::new(Leadership::new(outside, 2));
            let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let other = thread::spawn({
                let (shared, counts) = (Arc::clone(&shared), Arc::clone(&counts));
                move || help_yourself(1, &shared, &counts.0, &counts.1, 2)
            });
            help_yourself(0, &shared, &counts.0, &counts.1, 2);
            other.join().unwrap();
            assert_eq!(counts.0.load(Ordering::Acquire), 0);
        });
    }
}

/// Words of a run queue go to its owner or to a thief, each once, while laps and fullness matter.
#[test]
fn a_run_queue_is_shared_with_a_thief() {
    bounded(3).check(|| {
        let (mut owner, thief) = run_queue(2, true);
        let thieving = thread::spawn(move || {
            let (mut own, _) = run_queue(2, true);
            let mut words = Vec::new();
            for _ in 0..2 {
                thief.steal(2, &mut own);
                words.extend(std::iter::from_fn(|| own.pop()));
            }
            words
        });
        let mut words = Vec::new();
        for word in 1..=3 {
            while owner.push(word).is_err() {
                words.extend(owner.pop());
            }
        }
        words.extend(owner.pop());
        let stolen = thieving.join().unwrap();
        words.extend(std::iter::from_fn(|| owner.pop()));
        words.extend(stolen);
        words.sort_unstable();
        assert_eq!(words, [1, 2, 3]);
    });
}

/// A run queue whose counters others read, as those of kthreads are.
#[derive(Default)]
struct CountedQueue {
    words: [AtomicU64; 4],
    head: AtomicU64,
    tail: AtomicU64,
}

impl CountedQueue {
    fn memory(&self) -> RunQueueMemory<'_> {
        RunQueueMemory {
            words: &self.words,
            head: &self.head,
            tail: &self.tail,
        }
    }
}

#[test]
fn each_thread_in_a_run_queue_is_taken_once_by_its_owner_or_a_thief() {
    bounded(3).check(|| {
        let own = Arc::new(CountedQueue::default());
        // The queue wraps: its places are reused while the thief reads.
        let count = own.words.len() + 1;
        let taken = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect::<Vec<_>>());
        let take = |taken: &[AtomicUsize], word: u64| {
            taken[word as usize].fetch_add(1, Ordering::Relaxed);
        };
        let thief = thread::spawn({
            let (own, taken) = (Arc::clone(&own), Arc::clone(&taken));
            move || {
                let stolen = CountedQueue::default();
                own.memory().steal(2, stolen.memory());
                while let Some(word) = stolen.memory().pop(true) {
                    take(&taken, word);
                }
            }
        });
        for word in 0..count as u64 {
            while own.memory().push(word).is_err() {
                if let Some(first) = own.memory().pop(true) {
                    take(&taken, first);
                }
            }
        }
        thief.join().unwrap();
        while let Some(word) = own.memory().pop(true) {
            take(&taken, word);
        }
        for times in &*taken {
            assert_eq!(times.load(Ordering::Relaxed), 1);
        }
    });
}

/// The non-atomic data of a request: a buffer, a suspended fiber. loom checks that accesses are ordered.
struct Place(loom::cell::UnsafeCell<i32>);

// SAFETY: the thread that has the request's word has its place; that is under test.
#[expect(unsafe_code, reason = "loom's cell stands for one that tokens guard")]
unsafe impl Sync for Place {}

/// A request is interrupted, stolen from the queue of the worker that began it, goes on with the thief, is interrupted there, and stolen
/// back: each worker sees what the other left in the request's place, and nobody else is in it.
#[test]
fn an_interrupted_request_goes_to_a_thief_and_back() {
    bounded(3).check(|| {
        let places: Arc<[Place; 2]> = Arc::new(std::array::from_fn(|_| {
            Place(loom::cell::UnsafeCell::new(0))
        }));
        let (mut mine, my_thief) = run_queue(2, true);
        let (mut theirs, their_thief) = run_queue(2, true);
        let go_on = |places: &[Place; 2], word: u64| places[word as usize].0.with_mut(write_next);
        let other = thread::spawn({
            let places = Arc::clone(&places);
            move || {
                my_thief.steal(2, &mut theirs);
                if let Some(word) = theirs.pop() {
                    go_on(&places, word);
                    // It yields here, behind what else was stolen.
                    theirs.push(word).unwrap();
                }
                theirs
            }
        });
        for word in 0..2 {
            go_on(&places, word);
            mine.push(word).unwrap();
        }
        let mut words = Vec::new();
        their_thief.steal(2, &mut mine);
        while let Some(word) = mine.pop() {
            go_on(&places, word);
            words.push(word);
        }
        let mut theirs = other.join().unwrap();
        while let Some(word) = theirs.pop() {
            go_on(&places, word);
            words.push(word);
        }
        words.sort_unstable();
        assert_eq!(words, [0, 1]);
    });
}

/// The monitor's thread sleeps while the worker does. A worker that wakes says so before it runs anything: what it runs is watched.
#[test]
fn a_monitor_that_sleeps_wakes_with_a_worker() {
    loom::model(|| {
        let (asleep, parker) = (Arc::new(AtomicBool::new(true)), Arc::new(Parker::new()));
        let monitor = thread::spawn({
            let (asleep, parker) = (Arc::clone(&asleep), Arc::clone(&parker));
            move || {
                while asleep.load(Ordering::Relaxed) {
                    parker.park_unless(|| !asleep.load(Ordering::Relaxed));
                }
            }
        });
        asleep.store(false, Ordering::Relaxed);
        announce();
        parker.wake();
        monitor.join().unwrap();
    });
}

/// A flag for which a thread waits until it is made ready.
#[derive(Default)]
struct Readiness {
    ready: Mutex<bool>,
    changed: Condvar,
}

impl Readiness {
    fn wait(&self) {
        let mut ready = self.ready.lock().unwrap();
        while !*ready {
            ready = self.changed.wait(ready).unwrap();
        }
        *ready = false;
    }

    fn make(&self) {
        let before = std::mem::replace(&mut *self.ready.lock().unwrap(), true);
        assert!(!before, "ready twice");
        self.changed.notify_one();
    }

    fn is_made(&self) -> bool {
        *self.ready.lock().unwrap()
    }
}

#[test]
fn a_token_given_while_a_thread_parks_wakes_it_once() {
    bounded(3).check(|| {
        let shared = Arc::new((ParkToken::default(), Readiness::default()));
        let makes_ready = |shared: &(ParkToken, Readiness), does: bool| {
            if does {
                shared.1.make();
            }
        };
        let gives = thread::spawn({
            let shared = Arc::clone(&shared);
            move || makes_ready(&shared, shared.0.give())
        });
        let timer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || makes_ready(&shared, shared.0.times_out())
        });
        // The wait ends even if the timeout comes before it begins, since the token arrives.
        if shared.0.waits() {
            shared.1.wait();
        }
        shared.0.take();
        gives.join().unwrap();
        timer.join().unwrap();
        assert!(!shared.1.is_made(), "nobody waits any more");
    });
}
