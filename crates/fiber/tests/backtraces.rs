//! A profiler stops a thread at any instruction and walks its stack. These tests stop it at every instruction of a switch, by the processor's trap flag,
//! and walk each time: to the function that runs the fiber, or to the start of the thread that the fiber owns, and inside the fiber to its body too.

#![expect(
    unsafe_code,
    reason = "a handler that walks the stack, and fibers that are resumed"
)]

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

mod common;

use common::traps::trap;
use headway_fiber::{
    Attached, Fiber, LeftStrand, NoPreempt, SendFiber, Stacks, Strand, StrandKind, Turn,
    checkpoint, yield_now,
};

/// The bytes of each fiber's stack: the handler walks on it.
const STACK_BYTES: usize = 256 << 10;
/// More frames than any walk of these tests has.
const ENDLESS: usize = 200;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(ip: *mut c_void) -> *mut c_void;
}

/// What the walks of the one thread saw that is stepped. Not in a variable of the thread: a fiber may have its own.
struct Walks {
    /// The function that each walk must reach, but for those that end in the thread that a fiber owns.
    outer: AtomicUsize,
    /// The outermost function of such a thread; 0 where no fiber owns one.
    thread_start: AtomicUsize,
    /// The function that is only reached from inside of a fiber.
    body: AtomicUsize,
    walks: AtomicU32,
    with_body: AtomicU32,
    /// The instruction at which the first walk did not arrive.
    lost: AtomicUsize,
}

static WALKS: Walks = Walks {
    outer: AtomicUsize::new(0),
    thread_start: AtomicUsize::new(0),
    body: AtomicUsize::new(0),
    walks: AtomicU32::new(0),
    with_body: AtomicU32::new(0),
    lost: AtomicUsize::new(0),
};

/// The functions of one walk.
struct Walk {
    frames: usize,
    found_outer: bool,
    found_body: bool,
    last: usize,
}

impl Walk {
    const BEGIN: Self = Self {
        frames: 0,
        found_outer: false,
        found_body: false,
        last: 0,
    };

    fn go(mut self) -> Self {
        // SAFETY: walks this thread's stack.
        unsafe { _Unwind_Backtrace(step, (&raw mut self).cast()) };
        self
    }

    fn arrived(&self) -> bool {
        let thread_start = WALKS.thread_start.load(Relaxed);
        let in_own_thread = thread_start != 0 && self.last == thread_start;
        self.frames < ENDLESS && (self.found_outer || in_own_thread)
    }
}

/// The outermost function of a thread.
fn thread_start() -> usize {
    let walk = std::thread::spawn(|| Walk::BEGIN.go());
    walk.join().unwrap().last
}

extern "C" fn step(frame: *mut c_void, data: *mut c_void) -> c_int {
    const NO_REASON: c_int = 0;
    const END_OF_STACK: c_int = 5;
    // SAFETY: called by the unwinder for a `Walk` of `trapped`.
    let (walk, at) = unsafe { (&mut *data.cast::<Walk>(), _Unwind_GetIP(frame)) };
    // SAFETY: any address. One less, since a call may be a function's last instruction.
    let function =
        unsafe { _Unwind_FindEnclosingFunction(at.wrapping_sub(1) as *mut c_void) } as usize;
    walk.found_outer |= function == WALKS.outer.load(Relaxed);
    walk.found_body |= function == WALKS.body.load(Relaxed);
    if function != 0 {
        walk.last = function;
    }
    walk.frames += 1;
    if walk.frames < ENDLESS {
        NO_REASON
    } else {
        END_OF_STACK
    }
}

extern "C" fn trapped(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let walk = Walk::BEGIN.go();
    // SAFETY: the context is that of the signal.
    let at = unsafe {
        (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] as usize
    };
    WALKS.walks.fetch_add(1, Relaxed);
    WALKS
        .with_body
        .fetch_add(u32::from(walk.found_body), Relaxed);
    if !walk.arrived() && WALKS.lost.load(Relaxed) == 0 {
        WALKS.lost.store(at, Relaxed);
    }
}

/// Runs `outer` with traps, which calls `body` in fibers. Walks in fibers that own a thread may end at its `thread_start`. Returns how many walks there were, and how many
/// found the body.
fn stepped(outer: fn(), body: *const (), thread_start: usize) -> (u32, u32) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a handler of the type that the flags say.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut());
    }
    WALKS.outer.store(outer as *const () as usize, Relaxed);
    WALKS.body.store(body as usize, Relaxed);
    WALKS.thread_start.store(thread_start, Relaxed);
    WALKS.walks.store(0, Relaxed);
    WALKS.with_body.store(0, Relaxed);
    WALKS.lost.store(0, Relaxed);
    outer();
    assert_eq!(
        WALKS.lost.load(Relaxed),
        0,
        "the walk from this instruction on did not reach {outer:?}"
    );
    (WALKS.walks.load(Relaxed), WALKS.with_body.load(Relaxed))
}

fn stacks() -> Stacks {
    Stacks::new(STACK_BYTES, 2).expect("there is memory for two stacks")
}

#[inline(never)]
fn yields(turns: &mut u32) {
    for _ in 0..3 {
        *turns += 1;
        yield_now();
    }
    black_box(turns);
}

#[inline(never)]
fn runs_one_that_yields() {
    let mut fiber = Fiber::new(stacks().take().unwrap(), |turns: &mut u32| yields(turns));
    trap(true);
    let mut turn = fiber.run(0, 0);
    while turn == Turn::Yielded {
        // SAFETY: no destructor of a thread-local variable calls this.
        turn = unsafe { fiber.resume() };
    }
    // A second job on the same stack.
    black_box(fiber.run(0, 0));
    trap(false);
    assert_eq!(turn, Turn::Finished(3));
    // SAFETY: as above; only Rust's frames.
    drop(unsafe { fiber.unwind() });
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a walk under a sanitizer also meets its runtime"
)]
fn a_walk_arrives_from_every_instruction_of_a_yield() {
    let (walks, with_body) = stepped(runs_one_that_yields, yields as *const (), 0);
    assert!(
        with_body > 100 && walks > with_body,
        "{with_body} of {walks}"
    );
}

#[inline(never)]
fn runs_one_that_owns_a_thread() {
    let stacks = Stacks::of_donors(STACK_BYTES, 1).expect("a thread can be made");
    let attached = Attached::new();
    let flag = attached.flag();
    let body = |turns: &mut u32| {
        yields(turns);
        meets_probes(turns);
    };
    let Ok(mut fiber) = SendFiber::owning_thread_state(stacks.take().unwrap(), body) else {
        unreachable!("the stack is a donor's")
    };
    trap(true);
    let mut turn = fiber.run(0, 0);
    for epoch in 1..=6 {
        attached.begin_on(&fiber, epoch);
        flag.raise(epoch);
        turn = fiber.resume();
    }
    trap(false);
    drop(flag);
    assert_eq!(turn, Turn::Finished(6));
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a walk under a sanitizer also meets its runtime"
)]
fn a_walk_arrives_from_every_instruction_where_threads_states_change_hands() {
    for body in [yields as *const (), meets_probes as *const ()] {
        let (walks, with_body) = stepped(runs_one_that_owns_a_thread, body, thread_start());
        assert!(
            with_body > 100 && walks > with_body,
            "{with_body} of {walks}"
        );
    }
}

#[inline(never)]
fn meets_probes(turns: &mut u32) {
    for _ in 0..3 {
        *turns += 1;
        checkpoint();
    }
    black_box(turns);
}

#[inline(never)]
fn runs_one_that_is_asked() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |turns: &mut u32| {
        meets_probes(turns);
    });
    attached.begin(1);
    flag.raise(1);
    trap(true);
    let mut turn = fiber.run(0, 0);
    for epoch in 2..4 {
        attached.begin(epoch);
        flag.raise(epoch);
        // SAFETY: no destructor of a thread-local variable calls this.
        turn = unsafe { fiber.resume() };
    }
    attached.begin(4);
    // SAFETY: as above.
    let last = unsafe { fiber.resume() };
    trap(false);
    assert_eq!((turn, last), (Turn::Yielded, Turn::Finished(3)));
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a walk under a sanitizer also meets its runtime"
)]
fn a_walk_arrives_from_every_instruction_of_an_interruption() {
    let (walks, with_body) = stepped(runs_one_that_is_asked, meets_probes as *const (), 0);
    assert!(
        with_body > 100 && walks > with_body,
        "{with_body} of {walks}"
    );
}

static KIND: StrandKind<()> = StrandKind::new();

/// Suspends the strand that runs, and runs the other one.
#[inline(never)]
fn takes_turns(me: Strand<()>, other: Strand<()>) {
    for _ in 0..2 {
        let section = NoPreempt::enter();
        // SAFETY: `me` runs, in one section; the other is armed or suspended.
        unsafe { me.switch_to(other) };
        drop(section);
    }
    black_box(me);
}

#[inline(never)]
fn runs_two_strands() {
    let stacks = stacks();
    let strand = || Strand::new(&KIND, stacks.take().unwrap(), ());
    let (first, second) = (strand(), strand());
    // The first one ends in favour of the second.
    // SAFETY: both are idle.
    unsafe {
        first.arm::<(), _>(move |me| {
            takes_turns(me, second);
            mem::forget(NoPreempt::enter());
            Some(second)
        });
        second.arm::<(), _>(move |me| {
            takes_turns(me, first);
            mem::forget(NoPreempt::enter());
            None
        });
    }
    trap(true);
    // SAFETY: armed, and no fiber runs here.
    let left = unsafe { first.run() };
    trap(false);
    assert!(
        matches!(left, LeftStrand::Finished(it) if it == second),
        "{left:?}"
    );
    // SAFETY: both are idle, and these are their last uses.
    unsafe { drop((first.destroy(), second.destroy())) };
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a walk under a sanitizer also meets its runtime"
)]
fn a_walk_arrives_from_every_instruction_of_a_direct_switch() {
    let (walks, with_body) = stepped(runs_two_strands, takes_turns as *const (), 0);
    assert!(
        with_body > 100 && walks > with_body,
        "{with_body} of {walks}"
    );
}
