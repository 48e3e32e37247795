//! The macro's code belongs to no thread. A marked loop resumes on any thread, reads the word of the thread that runs it, and continues to count.
#![expect(unsafe_code, reason = "a fiber that changes threads")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use headway_fiber::{Attached, Fiber, SendFiber, Stacks, Turn};
use headway_macros::preemptible;

const ROUNDS: u64 = 4000;
const EVERY: u64 = 4;

#[preemptible(every = 4, crate = headway_fiber)]
fn counts(rounds: &AtomicU64) {
    for _ in 0..ROUNDS {
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

type Traveller = SendFiber<Arc<AtomicU64>>;

/// Resumes the fiber. No test calls it in a thread-local variable's destructor, where [`Fiber::resume`] is unsound.
fn resume<J>(fiber: &mut Fiber<J>) -> Turn<J> {
    // SAFETY: no destructor of a thread-local variable calls this.
    unsafe { fiber.resume() }
}

/// Runs the fiber until its next checkpoint and passes it on, every time it comes; how often it yielded here.
fn hop(rounds: &AtomicU64, arrivals: Receiver<Traveller>, onwards: Sender<Traveller>) -> u64 {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut turns = 0;
    for traveller in arrivals {
        let mut fiber = traveller.into_inner();
        attached.begin(turns + 1);
        flag.raise(turns + 1); // This thread's word alone: the other's is down.
        let before = rounds.load(Ordering::Relaxed);
        let turn = resume(&mut fiber);
        let went = rounds.load(Ordering::Relaxed) - before;
        if !matches!(turn, Turn::Yielded) {
            break;
        }
        turns += 1;
        assert!(
            went == EVERY || before == 0,
            "{went} rounds from one thread to the next"
        );
        // SAFETY: its code holds nothing of a thread: an Arc, an iterator, and a count.
        if onwards.send(unsafe { fiber.migratable() }).is_err() {
            unreachable!("the other thread waits");
        }
    }
    drop(onwards); // The other thread waits for no more.
    turns
}

#[test]
fn a_counted_loop_changes_threads_at_every_checkpoint() {
    let rounds = Arc::new(AtomicU64::new(0));
    let stacks = Stacks::new(64 << 10, 1).expect("there is memory for a stack");
    let mut fiber = Fiber::new(stacks.take().unwrap(), |rounds: &mut Arc<AtomicU64>| {
        counts(rounds);
    });
    {
        let attached = Attached::new();
        attached.begin(1);
        attached.flag().raise(1);
        let turn = fiber.run(Arc::clone(&rounds), 0);
        assert!(matches!(turn, Turn::Yielded), "at its entry");
    }
    let ((to_first, at_first), (to_second, at_second)) = (channel(), channel());
    // SAFETY: as above.
    to_first.send(unsafe { fiber.migratable() }).ok().unwrap();
    let counted = &*rounds;
    let turns: u64 = thread::scope(|scope| {
        let first = scope.spawn(move || hop(counted, at_first, to_second));
        let second = scope.spawn(move || hop(counted, at_second, to_first));
        first.join().unwrap() + second.join().unwrap()
    });
    assert_eq!(rounds.load(Ordering::Relaxed), ROUNDS);
    assert_eq!(turns, ROUNDS / EVERY);
}
