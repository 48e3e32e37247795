//! What an arbiter sees of a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::source::TestSource;

/// Without it an application whose only kthread computes would get no second core for the threads that wait.
#[test]
fn threads_from_outside_wait_in_sight_of_the_arbiter() {
    let source = TestSource::new(1);
    let runtime = source.runtime().start().expect("kthreads");
    let (runs, ends) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let computes = runtime.spawn({
        let (runs, ends) = (Arc::clone(&runs), Arc::clone(&ends));
        move || {
            runs.store(true, Ordering::Release);
            while !ends.load(Ordering::Acquire) {
                thread::yield_now();
            }
        }
    });
    while !runs.load(Ordering::Acquire) {
        thread::yield_now();
    }
    let before = source.waiting();
    let others: Vec<_> = (0..3).map(|_| runtime.spawn(|| ())).collect();
    let meanwhile = source.waiting();
    ends.store(true, Ordering::Release);
    for thread in others.into_iter().chain([computes]) {
        thread.join().expect("no panic");
    }
    assert_eq!((before, meanwhile, source.waiting()), (0, 3, 0));
}

#[test]
fn each_kthread_tells_its_source_that_it_ends() {
    let source = TestSource::new(3);
    drop(source.runtime().start().expect("kthreads"));
    assert_eq!(source.exits(), 3);
}
