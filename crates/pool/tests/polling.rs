//! Workers that see to the program's own events.

use std::fs;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use headway_pool::{ClassOptions, JobFuture, Pool, PoolBuilder, SubmitError, checkpoint};

use crate::common::{Gate, skips, until};

/// Events that nobody but the workers takes in.
#[derive(Default)]
struct Events {
    pool: OnceLock<Pool>,
    /// Events that came and were not taken in.
    came: AtomicUsize,
    served: Arc<AtomicUsize>,
    jobs: Mutex<Vec<JobFuture<()>>>,
}

impl Events {
    fn started(builder: PoolBuilder) -> Arc<Self> {
        let events = Arc::new(Self::default());
        let polled = Arc::clone(&events);
        let builder = builder.class("job", ClassOptions::new().mean(Duration::from_micros(1)));
        let pool = builder.poll_with(move || polled.take_in()).build();
        assert!(events.pool.set(pool.unwrap()).is_ok());
        events
    }

    fn pool(&self) -> &Pool {
        self.pool.get().unwrap()
    }

    fn take_in(&self) {
        let take = |came: usize| came.checked_sub(1);
        let Some(pool) = self.pool.get() else { return };
        let (order, none) = (Ordering::SeqCst, Ordering::SeqCst);
        while self.came.fetch_update(order, none, take).is_ok() {
            let served = Arc::clone(&self.served);
            let job = pool.submit("job", move || _ = served.fetch_add(1, Ordering::SeqCst));
            self.jobs.lock().unwrap().push(job);
        }
    }

    fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    /// Ends the pool; the events hold it, and it holds them.
    fn end(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap());
        jobs.into_iter().for_each(|job| job.wait().unwrap());
        self.pool().shutdown(Duration::from_secs(60)).unwrap();
        assert!(self.pool().stats().total().add_up());
    }
}

#[test]
fn workers_without_a_job_take_events_in() {
    for policy in ["darc-stable", "d-fcfs", "work-stealing", "mlfq"] {
        let events = Events::started(Pool::builder().policy(policy).workers(2));
        for round in 1..=3 {
            events.came.fetch_add(100, Ordering::SeqCst);
            until("all were served", || events.served() == 100 * round);
        }
        events.end();
    }
}

/// The only worker runs a job without an end of its own: at its checkpoints it takes events in, and these overtake it.
#[test]
fn a_job_that_can_be_interrupted_does_not_keep_events_waiting() {
    if skips("a_job_that_can_be_interrupted_does_not_keep_events_waiting") {
        return;
    }
    let builder = Pool::builder().policy("srpt,size=profile").workers(1);
    let hours = ClassOptions::new().mean(Duration::from_secs(3_600));
    let events = Events::started(builder.class("long", hours));
    let served = Arc::clone(&events.served);
    let long = events.pool().submit("long", move || {
        until("an event was served meanwhile", || {
            checkpoint().unwrap();
            served.load(Ordering::SeqCst) == 1
        });
    });
    until("it runs", || events.pool().stats().total().running == 1);
    events.came.fetch_add(1, Ordering::SeqCst);
    long.wait().unwrap();
    events.end();
}

/// A job that is taken in is not run by who takes it in, whatever that interrupted: there a long one would be beyond every policy.
#[test]
fn a_poller_that_looks_at_a_result_does_not_run_the_job() {
    if skips("a_poller_that_looks_at_a_result_does_not_run_the_job") {
        return;
    }
    let builder = || {
        let hours = ClassOptions::new().mean(Duration::from_secs(3_600));
        let builder = Pool::builder().policy("srpt,size=profile").workers(1);
        builder.class("long", hours)
    };
    look_from_a_checkpoint(builder());
    #[expect(unsafe_code, reason = "the jobs below hold nothing of their thread")]
    // SAFETY: the locks of the job are tried, and released before its next checkpoint.
    look_from_a_checkpoint(unsafe { builder().plain_fibers() });
}

fn look_from_a_checkpoint(builder: PoolBuilder) {
    let pool = Arc::new(OnceLock::<Pool>::new());
    let looked = Arc::new(Mutex::new(None));
    let (own, seen) = (Arc::clone(&pool), Arc::clone(&looked));
    let poll = move || {
        let (Some(pool), Ok(mut seen)) = (own.get(), seen.try_lock()) else {
            return;
        };
        // Once a job runs, so that this is called at its checkpoint.
        if seen.is_none() && pool.stats().total().running == 1 {
            let mut job = Box::pin(pool.submit("long", || ()));
            let mut context = Context::from_waker(Waker::noop());
            let is_ready = job.as_mut().poll(&mut context).is_ready();
            *seen = Some((is_ready, job));
        }
    };
    assert!(pool.set(builder.poll_with(poll).build().unwrap()).is_ok());
    let pool = pool.get().unwrap();
    let waits = Arc::clone(&looked);
    let outer = pool.submit("long", move || {
        until("the poller has looked", || {
            checkpoint().unwrap();
            waits.try_lock().is_ok_and(|seen| seen.is_some())
        });
    });
    outer.wait().unwrap();
    let (was_ready, _) = looked.lock().unwrap().take().unwrap();
    assert!(!was_ready, "it waits in its class's queue");
    pool.shutdown(Duration::from_secs(60)).unwrap();
}

/// The pool drains though events come all the time: they are refused as those of any thread outside.
#[test]
fn what_is_taken_in_while_the_pool_drains_is_refused() {
    let pool = Arc::new(OnceLock::<Pool>::new());
    let (own, gate) = (Arc::clone(&pool), Gate::default());
    let refused = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&refused);
    let poll = move || {
        let Some(pool) = own.get() else { return };
        if let Err(SubmitError::ShutDown) = pool.try_submit("job", || ()).map(JobFuture::detach) {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    };
    let builder = Pool::builder().workers(2).class("job", ClassOptions::new());
    assert!(pool.set(builder.poll_with(poll).build().unwrap()).is_ok());
    let pool = pool.get().unwrap();
    let opened = gate.clone();
    pool.submit("job", move || gate.wait()).detach();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("events were refused", || refused.load(Ordering::SeqCst) > 0);
            opened.open();
        });
        pool.shutdown(Duration::from_secs(60)).unwrap();
    });
    assert!(pool.stats().total().add_up());
}

#[test]
fn a_poller_that_panics_is_not_called_again_and_the_pool_goes_on() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let builder = Pool::builder().name("panicking").workers(1);
    let builder = builder.class("job", ClassOptions::new());
    let pool = builder.poll_with(move || {
        seen.fetch_add(1, Ordering::SeqCst);
        panic!("of the poller");
    });
    let pool = pool.build().unwrap();
    until("it was called", || calls.load(Ordering::SeqCst) == 1);
    for number in 0..100 {
        assert_eq!(pool.run("job", move || number).unwrap(), number);
    }
    until("the worker sleeps", || sleeps("panicking-0"));
    assert_eq!(pool.run("job", || 100).unwrap(), 100);
    pool.shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// Whether this process has a thread of this name, and that sleeps.
fn sleeps(name: &str) -> bool {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    let said = format!("({name}) S ");
    stats.into_iter().any(|stat| stat.contains(&said))
}

/// What submits holds the pool, and the pool holds it: neither would ever be freed.
#[test]
fn a_pool_that_has_ended_lets_go_of_its_poller() {
    let events = Events::started(Pool::builder().workers(2));
    let polled = Arc::downgrade(&events);
    events.came.fetch_add(1, Ordering::SeqCst);
    until("it was served", || events.served() == 1);
    events.end();
    drop(events);
    assert!(polled.upgrade().is_none());
}
