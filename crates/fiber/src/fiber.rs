//! Fibers: code that can be suspended anywhere and gone on with later.
#![expect(
    unsafe_code,
    reason = "a fiber's own state lies at the top of its stack"
)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use corosensei::stack::StackPointer;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::control::{Control, Event, State};
use crate::local;
use crate::sanitizer::Shadow;
use crate::stack::{MIN_STACK_BYTES, Stack};

/// How a turn ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<J> {
    /// The body returned; here is the job back. The fiber can take the next one.
    Finished(J),
    /// The fiber was suspended in the middle of the job.
    Yielded,
}

/// A stack and the code that runs on it, one job after another.
///
/// A handle of one word: everything about a fiber lies at the top of its own stack, so making one allocates nothing. It is bound to its
/// thread, since what lies on its stack may be; see [`Fiber::migratable`].
///
/// ```
/// use headway_fiber::{Fiber, Stacks, Turn, yield_now};
///
/// let stacks = Stacks::new(64 << 10, 1)?;
/// let mut fiber = Fiber::new(stacks.take()?, |job: &mut u32| {
///     *job += 1;
///     yield_now();
///     *job += 1;
/// });
/// assert_eq!(fiber.run(40, 0), Turn::Yielded);
/// assert_eq!(fiber.resume(), Turn::Finished(42));
/// assert_eq!(fiber.run(50, 0), Turn::Yielded);
/// assert_eq!(fiber.resume(), Turn::Finished(52));
/// stacks.give(fiber.into_stack());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Threads
/// A fiber goes on in the thread that made it. Only the promise of [`migratable`](Fiber::migratable), which is unsafe, makes one that may be sent:
///
/// ```compile_fail,E0277
/// use headway_fiber::{Fiber, Stacks};
///
/// let stacks = Stacks::new(64 << 10, 1).unwrap();
/// let mut fiber = Fiber::new(stacks.take().unwrap(), |_: &mut ()| {});
/// std::thread::spawn(move || fiber.run((), 0));
/// ```
///
/// # Panics in the body
/// They go on in the caller of [`run`](Fiber::run) or [`resume`](Fiber::resume). The job is dropped and the fiber is spent: its
/// stack can be had back, but it takes no more jobs. Catch them in the body to keep it.
///
/// # Dropping
/// A fiber without a job drops its body and unmaps its stack. One that is suspended is abandoned ([`abandoned`] counts them): its
/// stack with all that lies on it is leaked. It cannot be unwound, for probes stand where no exception may pass, and in C code.
pub struct Fiber<J: 'static> {
    core: NonNull<Core<J>>,
    /// Neither `Send` nor `Sync`.
    bound: PhantomData<*mut J>,
}

/// The top of a fiber's stack.
#[repr(C, align(64))]
struct Core<J> {
    control: Control,
    coroutine: MaybeUninit<Coroutine<(), Event, (), Carved>>,
    /// Initialised while there is a job: while `Suspended`, and during a turn.
    job: MaybeUninit<J>,
}

/// A stack without the part at its top in which the [`Core`] lies.
struct Carved {
    stack: Stack,
    base: usize,
}

// SAFETY: the base is in the usable part, aligned to 64 and more than `MIN_STACK_SIZE` above the limit (checked in `Fiber::new`); the limit
// includes the guard.
unsafe impl corosensei::stack::Stack for Carved {
    #[inline]
    fn base(&self) -> StackPointer {
        StackPointer::new(self.base).expect("inside a mapping")
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        StackPointer::new(self.stack.guard()).expect("inside a mapping")
    }
}

static ABANDONED: AtomicU64 = AtomicU64::new(0);

/// How many fibers of this process were dropped while suspended, their stacks leaked.
pub fn abandoned() -> u64 {
    ABANDONED.load(Ordering::Relaxed)
}

impl<J> Fiber<J> {
    /// A fiber that will run `body` for each job, on `stack`. Nothing runs yet.
    ///
    /// Job and body together must not take more than a quarter of the least stack (this does not compile): box them.
    #[inline]
    pub fn new<F: FnMut(&mut J) + 'static>(stack: Stack, body: F) -> Self {
        const {
            assert!(
                align_of::<Core<J>>() == 64,
                "a job's alignment is at most 64"
            );
            assert!(
                size_of::<Core<J>>() + size_of::<F>() <= MIN_STACK_BYTES / 4,
                "job and body fit the stack: box them"
            );
        }
        let base = stack.top() - size_of::<Core<J>>();
        let core = base as *mut Core<J>;
        let control = Control {
            yielder: Cell::new(ptr::null()),
            stack_limit: stack.limit(),
            stack_base: base,
            guard_base: stack.guard(),
            label: Cell::new(0),
            state: Cell::new(State::Idle),
            suspensions: Cell::new(0),
            preempted: Cell::new(false),
            in_handler: Cell::new(false),
            shadow: Shadow::new(stack.limit()..stack.top()),
            body: Cell::new(ptr::null_mut()),
            drop_body: drop_body::<F>,
        };
        let carved = Carved { stack, base };
        let coroutine = Coroutine::with_stack(carved, move |yielder: &Yielder<(), Event>, ()| {
            // SAFETY: runs inside the coroutine that `core` belongs to.
            unsafe { serve(core, body, yielder) };
        });
        // SAFETY: the top of the stack is ours, aligned and large enough (checked above); the coroutine uses what is below `base`.
        let core = unsafe {
            (&raw mut (*core).control).write(control);
            (&raw mut (*core).coroutine).write(MaybeUninit::new(coroutine));
            NonNull::new_unchecked(core)
        };
        Fiber {
            core,
            bound: PhantomData,
        }
    }

    /// Begins a job, and returns when it is done or the fiber is suspended. `label` stands for the job in the report of a
    /// stack overflow: its class.
    ///
    /// Not to be called inside a no-preempt section of the caller's, which would count for the fiber.
    ///
    /// # Panics
    /// The fiber has a job that is not finished, or a panic ended it before. A panic of the body goes on here.
    #[inline]
    pub fn run(&mut self, job: J, label: u64) -> Turn<J> {
        let control = self.control();
        assert!(
            control.state.get() == State::Idle,
            "the fiber is free for a job"
        );
        control.label.set(label);
        // SAFETY: an idle fiber has no job there.
        unsafe { (&raw mut (*self.core.as_ptr()).job).write(MaybeUninit::new(job)) };
        self.turn()
    }

    /// Goes on with the job that was suspended, until it is done or suspended again.
    ///
    /// # Panics
    /// The fiber is not suspended. A panic of the body goes on here.
    #[inline]
    pub fn resume(&mut self) -> Turn<J> {
        assert!(self.is_suspended(), "the fiber was suspended in a job");
        self.turn()
    }

    /// Whether the fiber is in the middle of a job.
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.control().state.get() == State::Suspended
    }

    /// The stack, for another fiber. Drops the body.
    ///
    /// # Panics
    /// The fiber is suspended: what lies on the stack is in use.
    #[inline]
    pub fn into_stack(self) -> Stack {
        assert!(!self.is_suspended(), "nothing is suspended on the stack");
        // SAFETY: not used afterwards.
        unsafe { ManuallyDrop::new(self).close() }
    }

    /// Ends a job that is suspended in a call of [`yield_now`](crate::yield_now), by unwinding the fiber's stack as a panic would (without its
    /// message), and gives the stack back. A fiber without a job is closed as by [`into_stack`](Fiber::into_stack).
    ///
    /// # Errors
    /// The fiber was suspended by a probe or a signal, through which nothing can unwind: here it is again.
    ///
    /// # Safety
    /// All frames between the body and the call of `yield_now` may be unwound: no foreign language's, and none that relies on not being.
    pub unsafe fn unwind(self) -> Result<Stack, Self> {
        if !self.is_suspended() {
            return Ok(self.into_stack());
        }
        if self.control().preempted.get() {
            return Err(self);
        }
        let fiber = ManuallyDrop::new(self);
        let core = fiber.core.as_ptr();
        // SAFETY: initialised by `new`; nothing else runs the fiber. Its job is dropped once, after the frames that borrowed it.
        unsafe {
            let coroutine = (*core).coroutine.assume_init_mut();
            fiber.control().shadow.running(|| coroutine.force_unwind());
            (*core).job.assume_init_drop();
            fiber.control().state.set(State::Spent);
            Ok(fiber.close())
        }
    }

    /// A fiber that may go on in another thread.
    ///
    /// # Safety
    /// While the fiber is suspended, nothing on its stack may belong to a thread: neither values that are not `Send`, nor addresses of
    /// thread-local variables, nor such variables' values that will be used later. Compilers keep such addresses over a
    /// probe, since they know of no yield there; so all code in which a probe may yield must have been compiled with
    /// Headway's pass, which hides them, or use no thread-local variable (`errno` is kept). And the body itself must be `Send`.
    pub unsafe fn migratable(self) -> SendFiber<J>
    where
        J: Send,
    {
        SendFiber(self)
    }

    /// The fiber as one word, for queues of words.
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).core.cast()
    }

    /// The fiber that was made a word.
    ///
    /// # Safety
    /// `word` came from [`Fiber::into_raw`] of the same `J`, and is used once. Where that was in another thread, the promise of
    /// [`Fiber::migratable`] is made for it.
    #[inline]
    pub unsafe fn from_raw(word: NonNull<()>) -> Self {
        Fiber {
            core: word.cast(),
            bound: PhantomData,
        }
    }

    #[inline]
    fn control(&self) -> &Control {
        // SAFETY: the handle's owner is outside the fiber, which is the only other user, and not running.
        unsafe { &(*self.core.as_ptr()).control }
    }

    #[inline]
    fn turn(&mut self) -> Turn<J> {
        let core = self.core.as_ptr();
        let running = Running::enter(core);
        // SAFETY: initialised by `new`. While it runs, the fiber touches its control and its job, not its coroutine.
        let coroutine = unsafe { (*core).coroutine.assume_init_mut() };
        let result = self.control().shadow.running(|| coroutine.resume(()));
        running.leave();
        match result {
            CoroutineResult::Yield(Event::Finished) => {
                self.control().state.set(State::Idle);
                // SAFETY: there was a job; now there is none.
                Turn::Finished(unsafe { (&raw mut (*core).job).read().assume_init() })
            }
            CoroutineResult::Yield(Event::Yielded) => {
                self.control().state.set(State::Suspended);
                Turn::Yielded
            }
            CoroutineResult::Return(()) => unreachable!("a body that is not closing loops"),
        }
    }

    /// Drops the body and frees the stack.
    ///
    /// # Safety
    /// The fiber is not suspended, and the handle is not used afterwards.
    unsafe fn close(&self) -> Stack {
        let (body, drop_body) = (self.control().body.get(), self.control().drop_body);
        // SAFETY: the core lies above what the coroutine uses, and stays until the stack is used anew.
        let mut coroutine = unsafe {
            (&raw const (*self.core.as_ptr()).coroutine)
                .read()
                .assume_init()
        };
        if !coroutine.started() {
            // Drops the body, which has not run yet.
            coroutine.force_unwind();
        } else if !coroutine.done() {
            // SAFETY: it waits in `serve` for a job; nothing on its stack is to be dropped but the body. This saves two switches.
            unsafe {
                coroutine.force_reset();
                drop_body(body);
            }
        }
        self.control().shadow.close();
        coroutine.into_stack().stack
    }
}

impl<J> Drop for Fiber<J> {
    fn drop(&mut self) {
        if self.is_suspended() {
            ABANDONED.fetch_add(1, Ordering::Relaxed);
        } else {
            // SAFETY: not suspended, and this is the end of it.
            drop(unsafe { self.close() });
        }
    }
}

/// The fiber's side: a job each time it is resumed after having finished one.
///
/// # Safety
/// Runs on the fiber whose core this is.
unsafe fn serve<J, F: FnMut(&mut J)>(
    core: *mut Core<J>,
    mut body: F,
    yielder: &Yielder<(), Event>,
) -> ! {
    // SAFETY: the core outlives the coroutine, and outside only `Fiber` touches it, while this is suspended.
    let control = unsafe { &(*core).control };
    let _unwound = control.shadow.arrived();
    control.body.set((&raw mut body).cast());
    control.yielder.set(yielder);
    loop {
        // SAFETY: `run` put a job there before it resumed this, and nobody touches it before `Finished`.
        body(unsafe { (*core).job.assume_init_mut() });
        control.shadow.leaving(|| yielder.suspend(Event::Finished));
    }
}

/// # Safety
/// `body` is an `F` that nobody uses any more.
unsafe fn drop_body<F>(body: *mut ()) {
    // SAFETY: the caller's promise.
    unsafe { body.cast::<F>().drop_in_place() };
}

/// Says to probes which fiber runs, and cleans up when its body panics.
struct Running<J> {
    core: *mut Core<J>,
    outer: *mut Control,
}

impl<J> Running<J> {
    #[inline]
    fn enter(core: *mut Core<J>) -> Self {
        debug_assert_eq!(local::no_preempt(), 0, "a section of the caller's is open");
        let outer = local::fiber();
        // SAFETY: projects, without reading.
        local::set_fiber(unsafe { &raw mut (*core).control });
        Running { core, outer }
    }

    #[inline]
    fn leave(self) {
        local::set_fiber(self.outer);
        mem::forget(self);
    }
}

impl<J> Drop for Running<J> {
    fn drop(&mut self) {
        local::set_fiber(self.outer);
        // SAFETY: the body has been unwound; its job is still there, and dropped here once.
        unsafe {
            (*self.core).control.state.set(State::Spent);
            (*self.core).job.assume_init_drop();
        }
    }
}

/// A fiber that may be sent to another thread and go on there: made by [`Fiber::migratable`].
pub struct SendFiber<J: 'static>(Fiber<J>);

// SAFETY: promised by the caller of `migratable`.
unsafe impl<J: Send> Send for SendFiber<J> {}

impl<J> SendFiber<J> {
    /// The fiber, in the thread that is to run it.
    #[inline]
    pub fn into_inner(self) -> Fiber<J> {
        self.0
    }
}
