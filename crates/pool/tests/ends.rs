//! Every job has one end, and every pool.

use headway_pool::{ClassOptions, JoinError, Pool, ShutdownTimeout, cancelled};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Gate, LIMIT, occupy, pool, until};

/// Counts its drops.
struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_panic_reaches_who_awaits_and_the_worker_goes_on() {
    let pool = pool(1);
    let error = pool
        .run("job", || panic!("no {}", "rows"))
        .map(|(): ()| ())
        .unwrap_err();
    assert_eq!(error.to_string(), "the job panicked: no rows");
    // As `?` makes it where errors cross threads.
    let shared: Box<dyn Error + Send + Sync> = error.into();
    let JoinError::Panic(payload) = *shared.downcast().unwrap() else {
        panic!("it ended otherwise");
    };
    let payload = payload.into_inner();
    assert!(payload.is::<String>() || payload.is::<&str>());
    assert_eq!(pool.run("job", || 7).unwrap(), 7);
    let counts = pool.stats().total();
    assert_eq!((counts.done, counts.panicked), (1, 1));
}

#[test]
fn a_destructor_that_panics_harms_its_own_job_only() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let pool = pool(1);
    let gate = occupy(&pool, 1);
    let captured = Panics;
    let shed = pool.submit("job", move || drop(captured));
    drop(shed);
    // Nobody takes the result, so the worker drops it.
    pool.submit("job", || Panics).detach();
    gate.open();
    assert_eq!(pool.run("job", || 7).unwrap(), 7);
    pool.wait_idle().unwrap();
    assert!(pool.stats().total().add_up());
}

#[test]
fn a_shutdown_in_time_ends_everything() {
    let pool = pool(2);
    let sum = Arc::new(AtomicUsize::new(0));
    for _ in 0..1_000 {
        let sum = Arc::clone(&sum);
        pool.submit("job", move || sum.fetch_add(1, Ordering::SeqCst))
            .detach();
    }
    pool.shutdown(LIMIT).unwrap();
    assert_eq!(sum.load(Ordering::SeqCst), 1_000);
    assert_eq!(pool.stats().total().done, 1_000);
}

/// It would wait for itself, for ever where it has no limit, as one of a program that ends by `exit` in a job.
#[test]
fn a_job_that_ends_its_pool_waits_for_nothing() {
    for policy in ["c-fcfs", "srpt"] {
        let pool = Pool::builder().policy(policy).workers(2);
        let pool = pool.class("job", ClassOptions::new()).build().unwrap();
        let own = pool.clone();
        let end = pool.submit("job", move || own.shutdown(Duration::MAX));
        let left = end.wait().unwrap().unwrap_err();
        assert_eq!((left.abandoned, left.running), (0, 1), "{policy}");
        pool.shutdown(Duration::MAX).unwrap();
        assert_eq!(pool.stats().total().done, 1, "{policy}");
    }
}

#[test]
fn a_shutdown_in_vain_abandons_what_waits_and_tells_what_runs() {
    let pool = pool(1);
    let (gate, seen) = (Gate::default(), Gate::default());
    let running = {
        let (gate, seen) = (gate.clone(), seen.clone());
        pool.submit("job", move || {
            seen.open();
            gate.wait();
            cancelled()
        })
    };
    seen.wait();
    let waits = pool.submit("job", || ());
    let left = pool.shutdown(Duration::from_millis(1)).unwrap_err();
    assert_eq!(
        left,
        ShutdownTimeout {
            abandoned: 1,
            running: 1
        }
    );
    assert!(matches!(waits.wait(), Err(JoinError::Abandoned)));
    gate.open();
    assert!(running.wait().unwrap(), "what runs is told");
    let counts = pool.stats().total();
    assert!(
        counts.add_up() && counts.done == 1 && counts.abandoned == 1,
        "{counts:?}"
    );
}

#[test]
fn dropping_the_pool_abandons_what_waits_and_lets_what_runs_end() {
    let pool = pool(1);
    let gate = Gate::default();
    let running = {
        let gate = gate.clone();
        pool.submit("job", move || gate.wait())
    };
    until("it runs", || pool.stats().total().running == 1);
    let dropped = Arc::new(AtomicUsize::new(0));
    let counts = Counts(Arc::clone(&dropped));
    let waits = pool.submit("job", move || drop(counts));
    drop(pool);
    assert!(matches!(waits.wait(), Err(JoinError::Abandoned)));
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "its closure is dropped");
    gate.open();
    running.wait().unwrap();
}

#[test]
fn a_job_may_drop_the_last_handle_of_its_pool() {
    let pool = pool(1);
    let handle = pool.clone();
    let gate = Gate::default();
    let job = {
        let gate = gate.clone();
        pool.submit("job", move || {
            gate.wait();
            drop(handle);
        })
    };
    drop(pool);
    gate.open();
    job.wait().unwrap();
}

#[test]
fn jobs_of_a_pool_that_drains_may_submit_still() {
    let pool = pool(1);
    let (handle, gate) = (pool.clone(), occupy(&pool, 1));
    let parent = pool.submit("job", move || handle.submit("job", || 7).wait());
    let drains = {
        let pool = pool.clone();
        std::thread::spawn(move || pool.shutdown(LIMIT))
    };
    until("it drains", || pool.try_submit("job", || ()).is_err());
    gate.open();
    assert_eq!(parent.wait().unwrap().unwrap(), 7);
    drains.join().unwrap().unwrap();
}

#[test]
fn the_pool_is_idle_when_all_is_done() {
    let pool = pool(2);
    pool.wait_idle().unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let done = Arc::clone(&done);
        pool.submit("job", move || done.fetch_add(1, Ordering::SeqCst))
            .detach();
    }
    pool.wait_idle().unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 100);
}

#[test]
fn workers_are_as_many_as_the_process_may_use() {
    let pool = Pool::builder().build().unwrap();
    let usable = std::thread::available_parallelism().unwrap().get();
    assert_eq!(pool.stats().threads, usable);
}

#[test]
fn either_the_closure_or_what_stands_in_its_place_is_called() {
    let pool = pool(1);
    let gate = occupy(&pool, 1);
    let said = Arc::new(std::sync::Mutex::new(Vec::new()));
    let submit = |name: &'static str| {
        let (ran, unrun) = (Arc::clone(&said), Arc::clone(&said));
        let closure = move || ran.lock().unwrap().push(format!("{name} ran"));
        let otherwise = move |why: &JoinError| unrun.lock().unwrap().push(format!("{name}: {why}"));
        pool.submit_or_else("job", closure, otherwise).unwrap()
    };
    let (first, second, third) = (submit("first"), submit("second"), submit("third"));
    drop(first);
    assert_eq!(*said.lock().unwrap(), ["first: the job was cancelled"]);
    gate.open();
    second.wait().unwrap();
    third.wait().unwrap();
    let gate = occupy(&pool, 1);
    let fourth = submit("fourth");
    pool.shutdown(Duration::ZERO).unwrap_err();
    gate.open();
    let abandoned = fourth.wait().unwrap_err();
    assert_eq!(
        said.lock().unwrap()[1..],
        [
            "second ran".to_owned(),
            "third ran".to_owned(),
            format!("fourth: {abandoned}")
        ]
    );
}
