//! Requests that are interrupted have what a thread has: handlers written for threads work, also those that hold a lock meanwhile.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use headway_fiber::yield_now;
use headway_policy::Resume;
use headway_runtime::{Call, Layout, Server, Stats, checkpoint, on_own_thread};

use super::common::{
    Client, FOREVER, ServeOnLoopback, is_steered, laid_out, play, replay, wait_until,
};
use super::{alone, builder, in_both_layouts};

const REQUESTS: u64 = 200;
/// Policies that interrupt, with and without a dispatcher, and whose workers go on with what others began.
const POLICIES: [&str; 5] = [
    "tiny-quanta,q=5us",
    "concord,q=5us",
    "srpt",
    "synergy,q=5us,longs=hints",
    "tardis,q=5us",
];

/// Serves so many requests by the handler, and checks that all are answered.
fn serve(
    policy: &'static str,
    layout: Layout,
    workers: usize,
    handler: impl Fn(&mut Call<'_>) + Send + Sync + 'static,
) -> Stats {
    serve_with(policy, layout, workers, usize::MAX, handler)
}

/// The same, with so many threads at most that lend requests their state.
fn serve_with(
    policy: &'static str,
    layout: Layout,
    workers: usize,
    most_lent_threads: usize,
    handler: impl Fn(&mut Call<'_>) + Send + Sync + 'static,
) -> Stats {
    let queues = if is_steered(policy) { workers } else { 1 };
    let (datapath, control) = replay(queues, REQUESTS as u32, 20_000, [0, 0]);
    let server = builder(policy, workers, layout)
        .resume(match policy {
            "srpt" => Resume::OwnWorker,
            _ => Resume::Anywhere,
        })
        .most_lent_threads(most_lent_threads)
        .service(handler)
        .datapath(datapath)
        .start()
        .unwrap_or_else(|error| panic!("{policy}, {layout:?}: {error}"));
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(
        (stats.answered, stats.panics),
        (stats.received, 0),
        "{policy}, {layout:?}, {workers} workers: {stats:?}"
    );
    stats
}

fn under_every_policy(run: impl Fn(&'static str, Layout, usize) -> Stats) {
    let _alone = alone();
    let mut interrupted = 0;
    for (policy, layout) in in_both_layouts(POLICIES) {
        for workers in [1, 2] {
            interrupted += run(policy, layout, workers).preemptions;
        }
    }
    assert!(interrupted > 0, "nobody was interrupted");
}

fn work() {
    for _ in 0..300 {
        for _ in 0..20 {
            std::hint::spin_loop();
        }
        checkpoint();
    }
}

#[test]
fn a_lock_may_be_held_where_a_request_is_interrupted() {
    under_every_policy(|policy, layout, workers| {
        let sum = Arc::new(Mutex::new(0));
        let shared = Arc::clone(&sum);
        let stats = serve(policy, layout, workers, move |_: &mut Call<'_>| {
            let mut sum = shared.lock().unwrap();
            let before = *sum;
            work();
            *sum = before + 1;
        });
        assert_eq!(*sum.lock().unwrap(), stats.answered, "{policy}");
        stats
    });
}

/// Its worker may sleep in wait for it: nobody else sends it on.
#[test]
fn the_holder_of_a_lock_may_yield_at_home() {
    under_every_policy(|policy, layout, workers| {
        let lock = Arc::new(Mutex::new(0));
        let shared = Arc::clone(&lock);
        let stats = serve(policy, layout, workers, move |_: &mut Call<'_>| {
            let mut held = shared.lock().unwrap();
            work();
            for _ in 0..4 {
                yield_now();
            }
            *held += 1;
        });
        assert_eq!(*lock.lock().unwrap(), stats.answered, "{policy}");
        stats
    });
}

#[test]
fn a_value_that_is_made_once_is_made_once() {
    under_every_policy(|policy, layout, workers| {
        let made = Arc::new((OnceLock::new(), AtomicU64::new(0)));
        let shared = Arc::clone(&made);
        let stats = serve(policy, layout, workers, move |_: &mut Call<'_>| {
            let (value, times) = &*shared;
            let value = value.get_or_init(|| {
                work();
                times.fetch_add(1, Ordering::Relaxed) + 7
            });
            assert_eq!(*value, 7);
            work();
        });
        assert_eq!(made.1.load(Ordering::Relaxed), 1, "{policy}");
        stats
    });
}

#[test]
fn thread_local_variables_are_the_requests_own() {
    thread_local! {
        static OWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);
    under_every_policy(|policy, layout, workers| {
        serve(policy, layout, workers, |_: &mut Call<'_>| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            NUMBER.set(number);
            // Borrowed over the interruptions.
            OWN.with_borrow_mut(|own| {
                own.clear();
                for _ in 0..10 {
                    own.push(number);
                    work();
                }
                assert!(own.iter().all(|entry| *entry == number));
            });
            assert_eq!(NUMBER.get(), number);
        })
    });
}

#[test]
fn a_lock_that_its_own_thread_may_take_again_is_not_taken_by_another_request() {
    static INSIDE: AtomicBool = AtomicBool::new(false);
    under_every_policy(|policy, layout, workers| {
        serve(policy, layout, workers, |_: &mut Call<'_>| {
            let _line = std::io::stderr().lock();
            let again = std::io::stderr().lock();
            assert!(!INSIDE.swap(true, Ordering::Relaxed), "a line of its own");
            work();
            INSIDE.store(false, Ordering::Relaxed);
            drop(again);
        })
    });
}

/// A static that is first used by requests, all at once, and takes long to make.
#[test]
fn a_lazy_static_is_waited_for() {
    static TABLE: LazyLock<u64> = LazyLock::new(|| {
        for _ in 0..50 {
            work();
        }
        7
    });
    let _alone = alone();
    serve("concord,q=5us", Layout::Inline, 2, |_: &mut Call<'_>| {
        assert_eq!(*TABLE, 7);
    });
}

/// What is called in the request's own thread is called in another than the worker's, and the request goes on afterwards.
#[test]
fn a_call_may_go_to_the_requests_own_thread() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    under_every_policy(|policy, layout, workers| {
        serve(policy, layout, workers, |_: &mut Call<'_>| {
            work();
            let me = std::thread::current().id();
            // By the kernel's name for it. Where the request was before is not asked: a rescue may have it at home already.
            let own = on_own_thread(|| {
                assert_eq!(std::thread::current().id(), me);
                CALLS.fetch_add(1, Ordering::Relaxed);
                std::fs::read_to_string("/proc/thread-self/comm").expect("/proc is there")
            });
            assert_eq!(own.trim_end(), "headway-donor");
            work();
            let panicked = std::panic::catch_unwind(|| {
                on_own_thread(|| std::panic::resume_unwind(Box::new(7)))
            });
            assert_eq!(*panicked.unwrap_err().downcast::<i32>().unwrap(), 7);
        })
    });
    assert!(CALLS.load(Ordering::Relaxed) >= REQUESTS);
}

/// At the limit of threads a request has no state of its own, so it is not interrupted, whatever it calls and whoever asks: it would find another's.
#[test]
fn a_request_without_a_thread_runs_to_its_end() {
    thread_local!(static INSIDE: Cell<u64> = const { Cell::new(0) });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let _alone = alone();
    for (policy, layout) in in_both_layouts(POLICIES) {
        for most in [0, 1] {
            let stats = serve_with(policy, layout, 2, most, |call: &mut Call<'_>| {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                INSIDE.set(number);
                work();
                yield_now();
                if number.is_multiple_of(3) {
                    call.long(|_| work());
                }
                work();
                assert_eq!(INSIDE.get(), number, "nobody came in between");
                call.reply(b"");
            });
            let without: u64 = stats.classes.iter().map(|class| class.without_thread).sum();
            if most == 0 {
                assert_eq!(stats.preemptions, 0, "{policy}, {layout:?}: {stats:?}");
                assert!(without > 0, "{policy}, {layout:?}: {stats:?}");
            }
        }
    }
}

/// A request at home waits for a lock whose holder is suspended, and comes later by the policy: a worker that goes on asking for the first alone would never run the
/// second.
#[test]
fn a_request_at_home_may_wait_for_one_that_its_policy_has_come_later() {
    let _alone = alone();
    for (policy, layout) in in_both_layouts(["srpt"]) {
        let lock = Arc::new(Mutex::new(()));
        let [is_held, is_wanted]: [Arc<AtomicBool>; 2] = Default::default();
        let inside = (
            Arc::clone(&lock),
            Arc::clone(&is_held),
            Arc::clone(&is_wanted),
        );
        // So long that the other one is shorter at any time.
        let hours = Duration::from_secs(36_000);
        let builder = laid_out(Server::builder(), policy, layout)
            .class("short", Duration::from_nanos(500))
            .class("long", hours);
        let server = builder.workers(1).serving(move |call: &mut Call<'_>| {
            let (lock, is_held, is_wanted) = &inside;
            match call.class().0 {
                1 => {
                    let _held = lock.lock().unwrap();
                    is_held.store(true, Ordering::SeqCst);
                    spin_until(|| is_wanted.load(Ordering::SeqCst));
                }
                _ => on_own_thread(|| {
                    is_wanted.store(true, Ordering::SeqCst);
                    drop(lock.lock().unwrap());
                }),
            }
        });
        let mut client = Client::of(&server);
        client.send(1, 1, b"");
        wait_until("it has the lock", || is_held.load(Ordering::SeqCst));
        client.send(0, 0, b"");
        client.receive();
        client.receive();
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.answered, 2, "{layout:?}: {stats:?}");
    }
}

/// Computes with probes until then.
fn spin_until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + FOREVER;
    while !is_so() && Instant::now() < end {
        checkpoint();
    }
}
