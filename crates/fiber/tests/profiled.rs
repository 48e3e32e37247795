//! A sampling profiler beside fibers that switch all the time: a signal stops a worker at any instruction, several thousand times a second, and its handler walks the stack.
//! Every walk arrives at the start of a thread: through the worker's loop, or in a fiber with a thread's state of its own at that thread's.
#![expect(unsafe_code, reason = "a handler that walks the stack")]

mod common;

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::signals::{SignalTimer, handle};
use headway_fiber::{Attached, Fiber, SendFiber, Stacks, Turn, checkpoint, yield_now};

const STACK_BYTES: usize = 256 << 10;
const FIBERS: usize = 8;
const WORKERS: usize = 2;
/// Between two samples of a worker.
const INTERVAL_NS: i64 = 97_000;
const SAMPLES: u64 = 6_000;
/// More frames than any walk here has.
const ENDLESS: usize = 200;
/// No test waits longer.
const LIMIT: Duration = Duration::from_secs(60);

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(ip: *mut c_void) -> *mut c_void;
}

/// The outermost function of a thread, and whether fibers have threads of their own.
static THREAD_START: AtomicUsize = AtomicUsize::new(0);
static OWNS_THREADS: AtomicBool = AtomicBool::new(false);
/// Walks; those that did not arrive or had no end; those that met a fiber's body.
static WALKS: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static WITH_BODY: AtomicU64 = AtomicU64::new(0);
/// Walks that met a body twice: a frame of another fiber's was taken for one of this one's.
static MIXED: AtomicU64 = AtomicU64::new(0);

struct Walk {
    frames: usize,
    loops: u32,
    bodies: u32,
    last: usize,
}

impl Walk {
    /// Of the calling thread's stack.
    fn go() -> Self {
        let mut walk = Self {
            frames: 0,
            loops: 0,
            bodies: 0,
            last: 0,
        };
        // SAFETY: walks this thread's stack.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        walk
    }

    fn arrived(&self) -> bool {
        let in_own_thread = OWNS_THREADS.load(Relaxed) && self.loops == 0 && self.bodies < 2;
        let at_start = self.last == THREAD_START.load(Relaxed) && self.frames < ENDLESS;
        at_start && (self.loops == 1 || in_own_thread)
    }
}

extern "C" fn step(frame: *mut c_void, data: *mut c_void) -> c_int {
    const NO_REASON: c_int = 0;
    const END_OF_STACK: c_int = 5;
    // SAFETY: called by the unwinder for a `Walk`.
    let (walk, at) = unsafe { (&mut *data.cast::<Walk>(), _Unwind_GetIP(frame)) };
    // SAFETY: any address. One less, since a call may be a function's last instruction.
    let function =
        unsafe { _Unwind_FindEnclosingFunction(at.wrapping_sub(1) as *mut c_void) } as usize;
    walk.loops += u32::from(function == runs_fibers as *const () as usize);
    walk.bodies += u32::from(function == switches as *const () as usize);
    walk.frames += 1;
    if function != 0 {
        walk.last = function;
    }
    if walk.frames < ENDLESS {
        NO_REASON
    } else {
        END_OF_STACK
    }
}

extern "C" fn samples(_: c_int) {
    let walk = Walk::go();
    WALKS.fetch_add(1, Relaxed);
    LOST.fetch_add(u64::from(!walk.arrived()), Relaxed);
    WITH_BODY.fetch_add(u64::from(walk.bodies > 0), Relaxed);
    MIXED.fetch_add(u64::from(walk.bodies > 1), Relaxed);
}

/// The body: it is asked to yield, and yields by itself.
#[inline(never)]
fn switches(rounds: &mut u32) {
    for round in 0..*rounds {
        checkpoint();
        if round % 3 == 0 {
            yield_now();
        }
        black_box(round);
    }
}

/// One worker's loop, under samples.
#[inline(never)]
fn runs_fibers(
    give: &mpsc::Sender<SendFiber<u32>>,
    take: &Mutex<mpsc::Receiver<SendFiber<u32>>>,
    enough: u64,
) {
    let attached = Attached::new();
    let flag = attached.flag();
    let timer = SignalTimer::of_this_thread(libc::SIGPROF, INTERVAL_NS);
    let (mut epoch, begun) = (0, Instant::now());
    while WALKS.load(Relaxed) < enough {
        assert!(begun.elapsed() < LIMIT, "samples are taken");
        let next = take.lock().unwrap().try_recv();
        let Ok(mut fiber) = next else {
            thread::yield_now();
            continue;
        };
        for _ in 0..20 {
            epoch += 1;
            attached.begin_on(&fiber, epoch);
            flag.raise(epoch);
            let turn = if fiber.is_suspended() {
                fiber.resume()
            } else {
                fiber.run(100, 0)
            };
            black_box(matches!(turn, Turn::Yielded));
        }
        attached.begin(epoch + 1);
        epoch += 1;
        give.send(fiber).unwrap();
    }
    drop(timer);
}

fn all_walks_arrive(stacks: &Stacks, owns_threads: bool) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let walk = thread::spawn(Walk::go).join().unwrap();
    THREAD_START.store(walk.last, Relaxed);
    OWNS_THREADS.store(owns_threads, Relaxed);
    LOST.store(0, Relaxed);
    handle(libc::SIGPROF, samples, libc::SA_RESTART);
    let (give, take) = mpsc::channel();
    for _ in 0..FIBERS {
        let stack = stacks.take().unwrap();
        let fiber = match SendFiber::owning_thread_state(stack, switches) {
            Ok(fiber) => fiber,
            // SAFETY: `switches` keeps nothing of its thread.
            Err(plain) => unsafe { Fiber::new(plain, switches).migratable() },
        };
        give.send(fiber).unwrap();
    }
    let take = Mutex::new(take);
    let (before, with_body) = (WALKS.load(Relaxed), WITH_BODY.load(Relaxed));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (give, take) = (give.clone(), &take);
            scope.spawn(move || runs_fibers(&give, take, before + SAMPLES));
        }
    });
    let counts = (LOST.load(Relaxed), MIXED.load(Relaxed));
    assert_eq!(counts, (0, 0), "of {} walks", WALKS.load(Relaxed) - before);
    assert!(WITH_BODY.load(Relaxed) > with_body, "some began in fibers");
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a walk under a sanitizer also meets its runtime"
)]
fn walks_arrive_from_fibers_that_own_a_threads_state() {
    all_walks_arrive(&Stacks::of_donors(STACK_BYTES, FIBERS).unwrap(), true);
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a walk under a sanitizer also meets its runtime"
)]
fn walks_arrive_from_plain_fibers() {
    all_walks_arrive(&Stacks::new(STACK_BYTES, FIBERS).unwrap(), false);
}
