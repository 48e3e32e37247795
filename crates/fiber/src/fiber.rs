//! Fibers: code that can be suspended anywhere and resumed later.
#![expect(
    unsafe_code,
    reason = "a fiber's own state lies at the top of its stack"
)]

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{self, Unwinding};
use crate::control::{Ended, FiberControl, Said, SectionQuestion, rest};
use crate::held::{Held, HeldNote};
use crate::local;
use crate::owned_thread::{enter_with_thread, take_thread};
use crate::sanitizer::{self, Shadow};
use crate::stack::{MIN_STACK_BYTES, Stack};

/// The end of a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<J> {
    /// The body returned. This is the job; the fiber can take the next one.
    Finished(J),
    /// The fiber was suspended in the middle of the job.
    Yielded,
}

/// A stack and the code that runs on it, one job after another.
///
/// A handle of one word: a fiber's whole state lies at the top of its own stack, so a new fiber allocates nothing. It stays in its thread,
/// since values on its stack may belong to the thread; see [`Fiber::migratable`].
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
/// // SAFETY: this is no destructor of a thread-local variable.
/// assert_eq!(unsafe { fiber.resume() }, Turn::Finished(42));
/// stacks.give(fiber.into_stack());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Threads
/// A fiber runs only in the thread that made it. The unsafe [`migratable`](Fiber::migratable) turns it into a fiber that is `Send`:
///
/// ```compile_fail,E0277
/// use headway_fiber::{Fiber, Stacks};
///
/// let stacks = Stacks::new(64 << 10, 1).unwrap();
/// let mut fiber = Fiber::new(stacks.take().unwrap(), |_: &mut ()| {});
/// std::thread::spawn(move || fiber.run((), 0));
/// ```
///
/// # Thread-local variables
/// A job that is suspended inside [`LocalKey::with`](std::thread::LocalKey::with) keeps a reference to the variable. The thread drops its
/// variables one after another as it ends, so a destructor among them could resume a job whose variable is gone. This is why
/// [`resume`](Fiber::resume) is `unsafe`:
///
/// ```compile_fail,E0133
/// use headway_fiber::{Fiber, Stacks};
/// use std::cell::RefCell;
///
/// struct ResumedAtTheEnd(Option<Fiber<()>>);
///
/// impl Drop for ResumedAtTheEnd {
///     fn drop(&mut self) {
///         self.0.take().map(|mut fiber| fiber.resume());
///     }
/// }
///
/// thread_local!(static LAST: RefCell<ResumedAtTheEnd> = const { RefCell::new(ResumedAtTheEnd(None)) });
/// ```
///
/// # Panics in the body
/// They continue in the caller of [`run`](Fiber::run) or [`resume`](Fiber::resume). The job is dropped and the fiber takes no more jobs, but
/// gives its stack back. A body that catches its panics keeps the fiber.
///
/// # Dropping
/// A fiber without a job drops its body and unmaps its stack. A suspended fiber is abandoned ([`abandoned`] counts them): its stack with all
/// values on it is leaked. It cannot be unwound, since probes also stand in C code and where no exception may pass.
pub struct Fiber<J: 'static> {
    core: NonNull<FiberCore<J>>,
    /// Neither `Send` nor `Sync`.
    bound: PhantomData<*mut J>,
}

/// The top of a fiber's stack.
#[repr(C, align(64))]
struct FiberCore<J> {
    control: FiberControl,
    /// Initialised while there is a job: while `Suspended`, and during a turn.
    job: MaybeUninit<J>,
    /// Initialised when a turn ended by a panic.
    panic: MaybeUninit<Box<dyn Any + Send>>,
}

static ABANDONED: AtomicU64 = AtomicU64::new(0);

/// The number of this process's fibers that were dropped while suspended, their stacks leaked.
pub fn abandoned() -> u64 {
    ABANDONED.load(Ordering::Relaxed)
}

impl<J> Fiber<J> {
    /// Makes a fiber that runs `body` for each job, on `stack`. Nothing runs yet.
    ///
    /// Job and body together may take a quarter of the least stack. Larger ones do not compile: box them.
    #[inline]
    pub fn new<F: FnMut(&mut J) + 'static>(stack: Stack, body: F) -> Self {
        let donor = stack.donor();
        const {
            assert!(
                align_of::<FiberCore<J>>() == 64 && align_of::<F>() <= 64,
                "the alignment of job and body is at most 64"
            );
            assert!(
                size_of::<FiberCore<J>>() + size_of::<F>() <= MIN_STACK_BYTES / 4,
                "job and body fit the stack: box them"
            );
        }
        let core = (stack.top() - size_of::<FiberCore<J>>()) as *mut FiberCore<J>;
        // The System V ABI wants a stack aligned to 16 where a function is called.
        let body_align = const {
            if align_of::<F>() > 16 {
                align_of::<F>()
            } else {
                16
            }
        };
        let body_at = ((core as usize - size_of::<F>()) & !(body_align - 1)) as *mut F;
        let control = FiberControl {
            left_at: Cell::new(rest::IDLE),
            resumer: Cell::new(0),
            stack_limit: stack.limit(),
            stack_base: body_at as usize,
            run: run::<J, F>,
            suspensions: Cell::new(0),
            renewals: Cell::new(0),
            label: Cell::new(0),
            preempted: Cell::new(false),
            yielded: Cell::new(false),
            in_handler: Cell::new(false),
            is_held: Cell::new(false),
            said: Cell::new(Said::Nothing),
            question: Cell::new(SectionQuestion::None),
            owns_thread_state: donor.is_some(),
            // SAFETY: the donor lives as long as its stack.
            base: donor.map_or(0, |donor| unsafe { donor.as_ref() }.base()),
            is_leaving: Cell::new(false),
            wants_home: Cell::new(false),
            has_own_mask: Cell::new(false),
            own_mask: Cell::new(0),
            thread_mask: Cell::new(0),
            resumer_base: Cell::new(0),
            home: Cell::new(0),
            shown: Cell::new(0),
            kind: std::ptr::null(),
            held: HeldNote::default(),
            shadow: Shadow::new(stack.limit()..stack.top(), donor.is_some()),
            drop_body: drop_body::<F>,
            stack: ManuallyDrop::new(stack),
        };
        // SAFETY: the top of the stack is ours, aligned and large enough (checked above); the fiber's frames lie below the body.
        let core = unsafe {
            body_at.write(body);
            (&raw mut (*core).control).write(control);
            NonNull::new_unchecked(core)
        };
        if let Some(donor) = donor {
            // SAFETY: the donor is parked, and lives as long as its stack.
            unsafe { take_thread(donor.as_ref(), core.cast()) };
        }
        Fiber {
            core,
            bound: PhantomData,
        }
    }

    /// Begins a job, and returns when it is done or the fiber is suspended. `label`, the job's class, names it in the report of a stack
    /// overflow.
    ///
    /// The caller must not be inside a no-preempt section, which would count for the fiber.
    ///
    /// # Panics
    /// The fiber has a job that is not finished, or a panic ended it before. A panic of the body resumes here.
    #[inline(always)]
    pub fn run(&mut self, job: J, label: u64) -> Turn<J> {
        let control = self.control();
        assert!(
            control.left_at.get() == rest::IDLE,
            "the fiber is free for a job"
        );
        control.label.set(label);
        control.said.set(Said::Nothing);
        // SAFETY: an idle fiber has no job there, and no frames.
        let entry = unsafe {
            (&raw mut (*self.core.as_ptr()).job).write(MaybeUninit::new(job));
            context::rewind(control)
        };
        self.turn(entry, false)
    }

    /// Resumes the suspended job, until it is done or suspended again.
    ///
    /// # Panics
    /// The fiber is not suspended. A panic of the body resumes here.
    ///
    /// # Safety
    /// The caller is not the destructor of a thread-local variable: the suspended job may hold references to variables that are dropped already.
    #[inline(always)]
    pub unsafe fn resume(&mut self) -> Turn<J> {
        let control = self.control();
        assert!(control.is_suspended(), "the fiber was suspended in a job");
        self.turn(control.left_at.get(), false)
    }

    /// The request to yield that met a no-preempt section since the last call. Called after a turn, it returns that turn's request.
    #[inline]
    pub fn take_held(&mut self) -> Option<Held> {
        let control = self.control();
        control.is_held.take().then(|| control.held.get())
    }

    /// Whether the job has said that it is [long](crate::say_long).
    #[inline]
    pub fn said_long(&self) -> bool {
        self.control().said.get() != Said::Nothing
    }

    /// Whether the last turn ended only so that the job could say that it is [long](crate::say_long): nobody asked it to yield. True once.
    #[inline]
    pub fn take_saying(&mut self) -> bool {
        let said = &self.control().said;
        let leaves = said.get() == Said::Leaves;
        if leaves {
            said.set(Said::Long);
        }
        leaves
    }

    /// Whether the last turn ended only so that a section could ask whether it [must yield](crate::NoPreempt::must_yield), of a thread that
    /// [answers](crate::Attached::answer_sections). Whoever ran the fiber [answers](Self::answer), and resumes it at once.
    #[inline]
    pub fn asks(&self) -> bool {
        self.control().question.get() == SectionQuestion::Asked
    }

    /// The answer, once a turn: whether the slice of a fiber that [asks](Self::asks) is renewed. If not, its next turn ends with its section.
    #[inline]
    pub fn answer(&mut self, is_renewed: bool) {
        let answer = if is_renewed {
            SectionQuestion::Renewed
        } else {
            SectionQuestion::None
        };
        self.control().question.set(answer);
    }

    /// Names the job anew in the report of a stack overflow; see [`run`](Self::run).
    #[inline]
    pub fn set_label(&mut self, label: u64) {
        self.control().label.set(label);
    }

    /// Whether the fiber is in the middle of a job.
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.control().is_suspended()
    }

    /// Gives the stack back, for another fiber. Drops the body.
    ///
    /// # Panics
    /// The fiber is suspended: values on its stack are in use.
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
    /// A probe or a signal suspended the fiber, through which nothing can unwind. The error is the fiber.
    ///
    /// # Safety
    /// All frames between the body and the call of `yield_now` can be unwound: none is another language's, and none relies on not being unwound.
    /// The conditions of [`resume`](Fiber::resume) hold too.
    pub unsafe fn unwind(mut self) -> Result<Stack, Self> {
        if !self.is_suspended() {
            return Ok(self.into_stack());
        }
        if self.control().preempted.get() {
            return Err(self);
        }
        // A body that catches everything may be suspended again.
        while let Turn::Yielded = self.turn(self.control().left_at.get(), true) {}
        Ok(self.into_stack())
    }

    /// Turns the fiber into one word, for queues of words.
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).core.cast()
    }

    /// Turns a word back into the fiber.
    ///
    /// # Safety
    /// `word` came from [`Fiber::into_raw`] of the same `J`, and is used once. For a fiber from another thread, the conditions of
    /// [`Fiber::migratable`] hold.
    #[inline]
    pub unsafe fn from_raw(word: NonNull<()>) -> Self {
        Fiber {
            core: word.cast(),
            bound: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn control(&self) -> &FiberControl {
        // SAFETY: the handle's owner is outside the fiber, which is the only other user, and not running.
        unsafe { &(*self.core.as_ptr()).control }
    }

    #[inline(always)]
    fn turn(&mut self, from: usize, unwind: bool) -> Turn<J> {
        let left_at = self.enter(from, unwind);
        self.turned(left_at)
    }

    #[inline(always)]
    pub(crate) fn turned(&mut self, left_at: usize) -> Turn<J> {
        match left_at {
            rest::IDLE => {
                // SAFETY: there was a job; now there is none.
                Turn::Finished(unsafe { (&raw mut (*self.core.as_ptr()).job).read().assume_init() })
            }
            rest::SPENT => self.panicked(),
            _ => Turn::Yielded,
        }
    }

    /// Makes the fiber this thread's current one, and runs it from where it left. Returns where it leaves next, or its word of rest.
    #[inline(always)]
    fn enter(&mut self, from: usize, unwind: bool) -> usize {
        debug_assert_eq!(local::no_preempt(), 0, "a section of the caller's is open");
        let control = self.core.cast::<FiberControl>();
        if self.control().owns_thread_state {
            // SAFETY: as below.
            return unsafe { enter_with_thread(control, from, unwind) };
        }
        self.control().entering_mask();
        let outer = local::replace_fiber(control.as_ptr());
        // SAFETY: `new` made it, and nothing else runs it. While it runs, only the fiber touches the core.
        let (left_at, control) = unsafe {
            let shadow = &control.as_ref().shadow;
            shadow.running(|| context::enter(control, from, unwind))
        };
        self.core = control.cast();
        // Only after it left: until then a signal may suspend it once more. Who looks at its stack finds it here as long as this word is an old one.
        self.control().left_at.set(left_at);
        local::set_fiber(outer);
        self.control().left_mask();
        left_at
    }

    /// Continues the panic that unwound the body.
    #[cold]
    fn panicked(&mut self) -> ! {
        let core = self.core.as_ptr();
        // SAFETY: `run` left what it caught; the job is still there, and dropped here once.
        let panic = unsafe {
            (*core).job.assume_init_drop();
            (&raw const (*core).panic).read().assume_init()
        };
        resume_unwind(panic);
    }

    /// Drops the body and frees the stack.
    ///
    /// # Safety
    /// The fiber is not suspended, and the handle is not used afterwards.
    #[inline]
    unsafe fn close(&self) -> Stack {
        let control = self.control();
        // SAFETY: the body is there from `new` on and dropped here once; the stack is taken out once, and its donor lives as long as it.
        unsafe {
            (control.drop_body)(control.body());
            control.shadow.close();
            let stack = ManuallyDrop::into_inner((&raw const control.stack).read());
            if let Some(donor) = stack.donor() {
                donor.as_ref().has_none();
            }
            stack
        }
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

/// The fiber's side: runs a job.
///
/// # Safety
/// Called on the fiber whose control this is, the head of a `FiberCore<J>`, and whose body is an `F`.
unsafe extern "C" fn run<J, F: FnMut(&mut J)>(control: *mut FiberControl) -> Ended {
    let core = control.cast::<FiberCore<J>>();
    // SAFETY: the control lives as long as its fiber.
    let (shadow, owns_thread_state) = unsafe {
        let shadow = &(*control).shadow;
        sanitizer::acquire(shadow);
        (shadow, (*control).owns_thread_state)
    };
    if owns_thread_state {
        shadow.arrived_with_thread();
    } else {
        shadow.arrived();
    }
    let finished = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `Fiber::run` put a job there before it entered this, and no other code touches either before the end.
        unsafe { (*(*control).body().cast::<F>())((*core).job.assume_init_mut()) };
    }));
    let ended = match finished {
        Ok(()) => Ended::Finished,
        Err(panic) if panic.is::<Unwinding>() => Ended::Finished,
        Err(panic) => {
            // SAFETY: ours until the end, as above.
            unsafe { (&raw mut (*core).panic).write(MaybeUninit::new(panic)) };
            Ended::Panicked
        }
    };
    if owns_thread_state {
        shadow.departing_with_thread();
    } else {
        shadow.departing();
    }
    ended
}

/// # Safety
/// `body` is an `F` that no code uses any more.
unsafe fn drop_body<F>(body: *mut ()) {
    // SAFETY: the caller's promise.
    unsafe { body.cast::<F>().drop_in_place() };
}
