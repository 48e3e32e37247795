//! Jobs that are interrupted keep what a thread has: variables, locks, guards.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use headway_pool::{ClassOptions, JobFuture, JoinError, Pool, checkpoint};

use crate::common::{Gate, skips, until};

/// A pool under a policy that interrupts, without any promise.
fn pool(policy: &str, workers: usize) -> Pool {
    let builder = Pool::builder().policy(policy).workers(workers);
    let builder = builder.class("short", ClassOptions::new().mean(Duration::from_micros(1)));
    let hours = ClassOptions::new().mean(Duration::from_secs(3_600));
    builder.class("long", hours).build().unwrap()
}

/// Spins at checkpoints until the condition holds.
#[track_caller]
fn spin_until(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || {
        checkpoint().unwrap();
        holds()
    });
}

/// Runs `within` in long jobs that interrupt one another until each was interrupted, and a short one among them.
fn interleaved(policy: &str, workers: usize, within: fn(usize, &dyn Fn())) {
    let pool = pool(policy, workers);
    let begun = Arc::new(AtomicUsize::new(0));
    let shorts = Arc::new(AtomicUsize::new(0));
    let jobs: Vec<_> = (0..4)
        .map(|at| {
            let (begun, shorts) = (Arc::clone(&begun), Arc::clone(&shorts));
            pool.submit("long", move || {
                within(at, &|| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    spin_until("shorts have run", || shorts.load(Ordering::SeqCst) > 8);
                });
            })
        })
        .collect();
    until("one has begun", || begun.load(Ordering::SeqCst) > 0);
    for _ in 0..9 {
        let shorts = Arc::clone(&shorts);
        let short = move || {
            within(100, &|| {
                shorts.fetch_add(1, Ordering::SeqCst);
            });
        };
        pool.submit("short", short).wait().unwrap();
    }
    jobs.into_iter().for_each(|job| job.wait().unwrap());
    assert!(pool.stats().interruptions > 0, "{policy}");
    assert_eq!(pool.stats().without_fiber, 0);
    assert!(pool.stats().total().add_up());
}

/// Under these a long job is interrupted on however few workers.
const POLICIES: [&str; 5] = ["srpt", "tiny-quanta", "shinjuku-sq", "mlfq", "tardis"];

#[test]
fn a_borrow_of_a_thread_local_variable_outlasts_an_interruption() {
    if skips("a_borrow_of_a_thread_local_variable_outlasts_an_interruption") {
        return;
    }
    thread_local! {
        static OWN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }
    for policy in POLICIES {
        interleaved(policy, 1, |at, interrupted| {
            OWN.with_borrow_mut(|own| {
                own.push(at);
                interrupted();
                assert_eq!(own.pop(), Some(at));
            });
        });
    }
}

#[test]
fn errno_is_the_jobs_own() {
    if skips("errno_is_the_jobs_own") {
        return;
    }
    for policy in POLICIES {
        interleaved(policy, 2, |at, interrupted| {
            own_thread::set(at as i32);
            interrupted();
            assert_eq!(own_thread::get(), at as i32);
        });
    }
}

/// `errno`, as the C library has it, and the kernel's number of the thread.
mod own_thread {
    #![expect(unsafe_code, reason = "of the calling thread")]

    /// The thread of the kernel that asks.
    pub(super) fn number() -> i32 {
        // SAFETY: always valid to ask.
        unsafe { libc::gettid() }
    }

    pub(super) fn set(value: i32) {
        // SAFETY: the calling thread's.
        unsafe { *libc::__errno_location() = value };
    }

    pub(super) fn get() -> i32 {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() }
    }
}

#[test]
fn a_runtime_that_was_entered_is_entered_still() {
    if skips("a_runtime_that_was_entered_is_entered_still") {
        return;
    }
    static RUNTIMES: LazyLock<Vec<tokio::runtime::Runtime>> = LazyLock::new(|| {
        let runtime = || tokio::runtime::Builder::new_current_thread().build();
        (0..2).map(|_| runtime().unwrap()).collect()
    });
    for policy in POLICIES {
        interleaved(policy, 2, |at, interrupted| {
            if at % 2 == 1 {
                interrupted();
                assert!(
                    tokio::runtime::Handle::try_current().is_err(),
                    "none is entered"
                );
                return;
            }
            let runtime = &RUNTIMES[at / 2 % 2];
            let _entered = runtime.enter();
            interrupted();
            let current = tokio::runtime::Handle::current();
            assert_eq!(current.id(), runtime.handle().id());
        });
    }
}

/// Notes each span that is entered under another than the job's own.
struct Spans {
    next: AtomicUsize,
    wrong: &'static AtomicUsize,
}

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static EXPECTED: Cell<u64> = const { Cell::new(0) };
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) as u64 + 1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    /// The log's line is under the span that was entered last on what the log takes for the thread.
    fn event(&self, _: &tracing::Event<'_>) {
        let last = ENTERED.with_borrow(|entered| entered.last().copied());
        let is_own = last == Some(EXPECTED.get()) && ENTERED.with_borrow(Vec::len) == 1;
        self.wrong
            .fetch_add(usize::from(!is_own), Ordering::Relaxed);
    }
    fn enter(&self, span: &tracing::span::Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }
    fn exit(&self, span: &tracing::span::Id) {
        let left = ENTERED.with_borrow_mut(Vec::pop);
        self.wrong.fetch_add(
            usize::from(left != Some(span.into_u64())),
            Ordering::Relaxed,
        );
    }
}

#[test]
fn spans_of_one_job_never_name_another() {
    if skips("spans_of_one_job_never_name_another") {
        return;
    }
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    let spans = Spans {
        next: AtomicUsize::new(0),
        wrong: &WRONG,
    };
    tracing::subscriber::set_global_default(spans).unwrap();
    for policy in POLICIES {
        interleaved(policy, 2, |at, interrupted| {
            let span = tracing::info_span!("job", at);
            let _entered = span.enter();
            EXPECTED.set(span.id().unwrap().into_u64());
            tracing::info!("begins");
            interrupted();
            EXPECTED.set(span.id().unwrap().into_u64());
            tracing::info!("ends");
        });
    }
    assert_eq!(WRONG.load(Ordering::Relaxed), 0);
}

/// A job is interrupted while it holds the lock, and the next one wants it: on one worker only a rescue helps.
#[test]
fn a_mutex_over_a_checkpoint_costs_a_rescue() {
    if skips("a_mutex_over_a_checkpoint_costs_a_rescue") {
        return;
    }
    for (policy, workers) in [("srpt", 1), ("srpt", 2), ("tiny-quanta", 1)] {
        let pool = pool(policy, workers);
        let (lock, held, wanted) = (
            Arc::new(Mutex::new(0)),
            Gate::default(),
            Arc::new(AtomicUsize::new(0)),
        );
        let holder = {
            let (lock, held, wanted) = (Arc::clone(&lock), held.clone(), Arc::clone(&wanted));
            pool.submit("long", move || {
                let mut value = lock.lock().unwrap();
                held.open();
                spin_until("all workers want the lock", || {
                    wanted.load(Ordering::SeqCst) >= workers
                });
                *value += 1;
            })
        };
        held.wait();
        let want: Vec<_> = (0..workers)
            .map(|_| {
                let (lock, wanted) = (Arc::clone(&lock), Arc::clone(&wanted));
                pool.submit("short", move || {
                    wanted.fetch_add(1, Ordering::SeqCst);
                    *lock.lock().unwrap() += 1;
                })
            })
            .collect();
        want.into_iter().for_each(|job| job.wait().unwrap());
        holder.wait().unwrap();
        assert_eq!(*lock.lock().unwrap(), 1 + workers, "{policy}");
        assert!(pool.stats().total().add_up());
    }
}

/// One worker that sleeps for a lock can be helped by nobody but its holder's own thread.
#[test]
fn the_only_worker_that_sleeps_is_rescued() {
    if skips("the_only_worker_that_sleeps_is_rescued") {
        return;
    }
    static VALUE: LazyLock<usize> = LazyLock::new(|| {
        BEGUN.store(true, Ordering::SeqCst);
        spin_until("another wants the value", || WANTED.load(Ordering::SeqCst));
        7
    });
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static WANTED: AtomicBool = AtomicBool::new(false);
    let pool = pool("srpt", 1);
    let first = pool.submit("long", || *VALUE);
    until("the value is being made", || BEGUN.load(Ordering::SeqCst));
    let second = pool.submit("short", || {
        WANTED.store(true, Ordering::SeqCst);
        *VALUE
    });
    assert_eq!((second.wait().unwrap(), first.wait().unwrap()), (7, 7));
    assert!(pool.stats().rescued > 0);
    assert!(pool.stats().total().add_up());
}

/// A job that ended at home had a fiber, of which there are so many: the next one finds it.
#[test]
fn the_fibers_of_rescued_jobs_come_back() {
    if skips("the_fibers_of_rescued_jobs_come_back") {
        return;
    }
    let builder = Pool::builder().policy("tiny-quanta").workers(1);
    let builder = builder.class("long", ClassOptions::new());
    let builder = builder.class("short", ClassOptions::new());
    let pool = builder.begun_at_most(2).build().unwrap();
    for round in 0..4 {
        let lock = Arc::new(Mutex::new(()));
        let (held, wanted) = (Gate::default(), Arc::new(AtomicBool::new(false)));
        let (its, holds, seen) = (Arc::clone(&lock), held.clone(), Arc::clone(&wanted));
        let holder = pool.submit("long", move || {
            let _locked = its.lock().unwrap();
            holds.open();
            spin_until("the lock is wanted", || seen.load(Ordering::SeqCst));
        });
        held.wait();
        let wants = pool.submit("short", move || {
            wanted.store(true, Ordering::SeqCst);
            drop(lock.lock().unwrap());
        });
        wants.wait().unwrap();
        holder.wait().unwrap();
        assert_eq!(pool.stats().without_fiber, 0, "round {round}");
    }
    assert!(pool.stats().rescued > 0);
}

/// Calls the closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The worker drops a result that nobody awaits. The destructor wants a lock that a suspended job holds.
#[test]
fn a_worker_that_sleeps_in_a_results_destructor_is_rescued() {
    if skips("a_worker_that_sleeps_in_a_results_destructor_is_rescued") {
        return;
    }
    static LOCK: Mutex<()> = Mutex::new(());
    static DROPS: AtomicBool = AtomicBool::new(false);
    static DROPPED: AtomicBool = AtomicBool::new(false);
    let pool = pool("srpt", 1);
    let held = Gate::default();
    let holder = {
        let held = held.clone();
        pool.submit("long", move || {
            let _locked = LOCK.lock().unwrap();
            held.open();
            spin_until("the result is dropped", || DROPS.load(Ordering::SeqCst));
        })
    };
    held.wait();
    let drops = || {
        OnDrop(|| {
            DROPS.store(true, Ordering::SeqCst);
            drop(LOCK.lock().unwrap());
            DROPPED.store(true, Ordering::SeqCst);
        })
    };
    pool.submit("short", drops).detach();
    until("the result has gone", || DROPPED.load(Ordering::SeqCst));
    holder.wait().unwrap();
    assert!(pool.stats().rescued > 0);
    assert!(pool.stats().total().add_up());
}

/// Calls the closure.
struct CallingWaker<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for CallingWaker<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Has the closure called once the job has its result.
fn call_once_told(job: &mut JobFuture<()>, call: impl Fn() + Send + Sync + 'static) {
    let waker = Waker::from(Arc::new(CallingWaker(call)));
    let polled = Pin::new(job).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
}

/// Both jobs end at home, and who is woken by the first waits until the second is told.
#[test]
fn a_waker_of_a_rescued_job_may_wait_for_a_rescue() {
    if skips("a_waker_of_a_rescued_job_may_wait_for_a_rescue") {
        return;
    }
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static ASLEEP: AtomicBool = AtomicBool::new(false);
    static WOKEN: AtomicBool = AtomicBool::new(false);
    let pool = pool("tiny-quanta", 1);
    let mut first = pool.submit("long", || {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        spin_until("the worker sleeps", || ASLEEP.load(Ordering::SeqCst));
    });
    let mut second = pool.submit("long", || {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        spin_until("the first is told", || WOKEN.load(Ordering::SeqCst));
    });
    let (first_told, second_told) = (Gate::default(), Gate::default());
    let (told, other) = (first_told.clone(), second_told.clone());
    call_once_told(&mut first, move || {
        WOKEN.store(true, Ordering::SeqCst);
        other.wait();
        told.open();
    });
    call_once_told(&mut second, move || second_told.open());
    until("both have begun", || BEGUN.load(Ordering::SeqCst) == 2);
    let sleeps = pool.submit("short", move || {
        ASLEEP.store(true, Ordering::SeqCst);
        first_told.wait();
    });
    sleeps.wait().unwrap();
    pool.wait_idle().unwrap();
    assert!(pool.stats().rescued > 0);
    assert!(pool.stats().total().add_up());
}

/// The child began and was interrupted; its parent, which its policy prefers, waits for it.
#[test]
fn a_job_that_waits_for_one_that_was_interrupted_ends() {
    if skips("a_job_that_waits_for_one_that_was_interrupted_ends") {
        return;
    }
    for policy in POLICIES {
        let pool = pool(policy, 1);
        let (begun, over) = (Gate::default(), Arc::new(AtomicBool::new(false)));
        let child = {
            let (begun, over) = (begun.clone(), Arc::clone(&over));
            pool.submit("long", move || {
                begun.open();
                spin_until("its parent waits", || over.load(Ordering::SeqCst));
                7
            })
        };
        begun.wait();
        let parent = pool.submit("short", move || {
            over.store(true, Ordering::SeqCst);
            child.wait().unwrap()
        });
        assert_eq!(parent.wait().unwrap(), 7, "{policy}");
        pool.wait_idle().unwrap();
        assert!(pool.stats().total().add_up());
    }
}

/// A job at home waits for a lock whose holder is suspended, comes later by its policy, and is not at home: a worker that goes on asking for the first alone would
/// never run the second. Which jobs go home is by chance, so this is tried many times.
#[test]
fn a_job_at_home_may_wait_for_one_that_its_policy_has_come_later() {
    if skips("a_job_at_home_may_wait_for_one_that_its_policy_has_come_later") {
        return;
    }
    const CLASSES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
    for _ in 0..40 {
        // Each class is shorter than the one before, so that each job interrupts the last one.
        let builder = Pool::builder().policy("srpt").workers(1);
        let minutes = |left: usize| ClassOptions::new().mean(Duration::from_secs(60 << left));
        let builder = CLASSES
            .iter()
            .enumerate()
            .fold(builder, |builder, (at, name)| {
                builder.class(name, minutes(CLASSES.len() - at))
            });
        let pool = builder.build().unwrap();
        let (held, wanted) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        let over = Arc::new(AtomicBool::new(false));
        let mut suspended: Vec<_> = CLASSES[..6]
            .iter()
            .map(|class| {
                let (begun, over) = (Gate::default(), Arc::clone(&over));
                let (its_begin, lock) = (begun.clone(), Arc::clone(&held));
                let is_holder = *class == CLASSES[0];
                let job = pool.submit(class, move || {
                    let _held = is_holder.then(|| lock.lock().unwrap());
                    its_begin.open();
                    spin_until("it is over", || over.load(Ordering::SeqCst));
                });
                begun.wait();
                job
            })
            .collect();
        let (begun, is_done) = (Gate::default(), Gate::default());
        let (its_begin, its_end, lock) = (begun.clone(), is_done.clone(), Arc::clone(&wanted));
        suspended.push(pool.submit(CLASSES[6], move || {
            let own = lock.lock().unwrap();
            let worker = own_thread::number();
            its_begin.open();
            spin_until("it is at home", || own_thread::number() != worker);
            over.store(true, Ordering::SeqCst);
            drop(own);
            drop(held.lock().unwrap());
            its_end.open();
        }));
        begun.wait();
        let sleeper = pool.submit(CLASSES[7], move || drop(wanted.lock().unwrap()));
        sleeper.wait().unwrap();
        is_done.wait();
        suspended.into_iter().for_each(|job| job.wait().unwrap());
        assert!(pool.stats().total().add_up());
    }
}

#[test]
fn a_job_that_was_interrupted_is_cancelled_or_panics_like_any() {
    if skips("a_job_that_was_interrupted_is_cancelled_or_panics_like_any") {
        return;
    }
    // Not srpt: the first long is short in the end, and the second one, which outlives that, would not be interrupted any more.
    let pool = pool("mlfq", 1);
    let (begun, over) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let cancelled = {
        let begun = begun.clone();
        pool.submit_cancellable("long", move || {
            begun.open();
            loop {
                checkpoint().unwrap();
            }
        })
    };
    begun.wait();
    pool.submit("short", || ()).wait().unwrap();
    drop::<JobFuture<()>>(cancelled);
    let begun = Gate::default();
    let panics = {
        let (begun, over) = (begun.clone(), Arc::clone(&over));
        pool.submit("long", move || {
            begun.open();
            spin_until("it was interrupted", || over.load(Ordering::SeqCst));
            panic!("after it went on");
        })
    };
    begun.wait();
    pool.submit("short", move || over.store(true, Ordering::SeqCst))
        .wait()
        .unwrap();
    let panicked = panics.wait().map(|()| "it returned").unwrap_err();
    assert!(matches!(panicked, JoinError::Panic(_)));
    assert!(panicked.to_string().contains("after it went on"));
    pool.wait_idle().unwrap();
    let counts = pool.stats().total();
    assert_eq!((counts.cancelled, counts.panicked, counts.done), (1, 1, 2));
}

/// Threads of this process that lend jobs their state.
fn lending_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc is there");
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.trim_end() == "headway-donor")
        .count()
}

/// Run by [`the_threads_that_jobs_borrow_are_made_before_there_are_jobs`], in a process without other pools.
#[test]
#[ignore = "it counts the threads of its process"]
fn threads_without_jobs() {
    let pool = pool("mlfq", 2);
    until("each worker has four", || lending_threads() == 8);
    drop(pool);
    until("they have ended", || lending_threads() == 0);
}

/// Where all cores compute, to make one takes milliseconds.
#[test]
fn the_threads_that_jobs_borrow_are_made_before_there_are_jobs() {
    if skips("the_threads_that_jobs_borrow_are_made_before_there_are_jobs") {
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owning::threads_without_jobs", "--ignored"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
