//! Strands: fibers that switch to one another, for schedulers of user-level threads.
#![expect(
    unsafe_code,
    reason = "a strand's own state lies at the top of its stack"
)]

use std::cell::Cell;
use std::fmt;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::context;
use crate::control::{Ended, FiberControl, Said, SectionQuestion, rest};
use crate::held::HeldNote;
use crate::kept::keeping_exceptions;
use crate::local;
use crate::no_preempt::unshield;
use crate::sanitizer::Shadow;
use crate::stack::{MIN_STACK_BYTES, Stack};
use crate::switch;

/// A fiber that others switch to directly, by its address.
///
/// A [`Fiber`](crate::Fiber) goes back to the code that resumed it, which then resumes another: two switches. A strand that suspends itself names its
/// successor. Only a strand that has none, and one that a probe or a signal suspends, go back to the scheduler that [runs](Strand::run) it.
///
/// Strands may be put into queues before they are suspended: the resumer of a strand waits until it has left its stack. So a strand that waits for
/// another needs no code that runs after its switch.
///
/// The scheduler keeps a head `H` beside each strand's control. The memory of both lives until the strand is [destroyed](Strand::destroy), in any number of
/// runs, so the handle is a plain address.
///
/// # No-preempt sections
/// A strand suspends itself inside one section of its own, which lasts until it is resumed, and then closes it. A new strand begins inside one too.
///
/// # Safety
/// Strands may change threads: the conditions of [`Fiber::migratable`](crate::Fiber::migratable) hold for the code that they run.
pub struct Strand<H: 'static> {
    core: NonNull<StrandCore<H>>,
    bound: PhantomData<*mut H>,
}

/// The strands of one scheduler, which all have heads of one type. A kind is a static variable, whose address distinguishes its strands from other fibers.
#[derive(Debug)]
pub struct StrandKind<H: 'static> {
    /// Two variables without a size could have one address.
    _address: u8,
    heads: PhantomData<fn() -> H>,
}

impl<H> StrandKind<H> {
    /// Another kind.
    #[expect(
        clippy::new_without_default,
        reason = "made once, for a static variable"
    )]
    pub const fn new() -> Self {
        StrandKind {
            _address: 0,
            heads: PhantomData,
        }
    }
}

/// The top of a strand's stack.
#[repr(C, align(64))]
struct StrandCore<H> {
    control: FiberControl,
    head: H,
}

/// A strand that went back to its scheduler.
#[derive(Debug)]
pub enum LeftStrand<H: 'static> {
    /// Its body ended without a successor.
    Finished(Strand<H>),
    /// It suspended itself, and has no successor.
    Suspended(Strand<H>),
    /// A probe or a signal suspended it, or [`yield_now`](crate::yield_now).
    Preempted(Strand<H>),
}

impl<H> Clone for Strand<H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Strand<H> {}

impl<H> PartialEq for Strand<H> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.core == other.core
    }
}

impl<H> Eq for Strand<H> {}

impl<H> fmt::Debug for Strand<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Strand({:p})", self.core)
    }
}

impl<H> Strand<H> {
    /// The largest body, in bytes.
    pub const MAX_BODY_BYTES: usize = MIN_STACK_BYTES / 4;

    /// Makes a strand of this kind without a body on `stack`.
    ///
    /// # Panics
    /// The stack is [a donor's](crate::Stacks::of_donors).
    pub fn new(kind: &'static StrandKind<H>, stack: Stack, head: H) -> Self {
        assert!(!stack.owns_thread_state(), "a strand has no thread's state");
        const {
            assert!(
                align_of::<StrandCore<H>>() == 64 && size_of::<StrandCore<H>>() <= 1024,
                "a head is small"
            );
        }
        let core = (stack.top() - size_of::<StrandCore<H>>()) as *mut StrandCore<H>;
        let control = FiberControl {
            left_at: Cell::new(rest::IDLE),
            resumer: Cell::new(0),
            stack_limit: stack.limit(),
            stack_base: core as usize,
            run: unarmed,
            suspensions: Cell::new(0),
            renewals: Cell::new(0),
            label: Cell::new(0),
            preempted: Cell::new(false),
            yielded: Cell::new(false),
            in_handler: Cell::new(false),
            is_held: Cell::new(false),
            said: Cell::new(Said::Nothing),
            question: Cell::new(SectionQuestion::None),
            owns_thread_state: false,
            base: 0,
            is_leaving: Cell::new(false),
            wants_home: Cell::new(false),
            has_own_mask: Cell::new(false),
            own_mask: Cell::new(0),
            thread_mask: Cell::new(0),
            resumer_base: Cell::new(0),
            home: Cell::new(0),
            shown: Cell::new(0),
            kind: (&raw const *kind).cast(),
            held: HeldNote::default(),
            shadow: Shadow::new(stack.limit()..stack.top(), false),
            drop_body: no_body,
            stack: ManuallyDrop::new(stack),
        };
        // SAFETY: the top of the stack is ours, aligned and large enough.
        let core = unsafe {
            core.write(StrandCore { control, head });
            NonNull::new_unchecked(core)
        };
        Strand {
            core,
            bound: PhantomData,
        }
    }

    /// Gives an idle strand its next body. It can be resumed from now on. The body returns its successor, if it has one,
    /// as `next` of [`switch_to`](Strand::switch_to), and does so inside a no-preempt section. It must not unwind.
    ///
    /// The body's place is large enough for a `P`, for which it is free once the body runs: see [`place`](Strand::place).
    ///
    /// # Safety
    /// The strand is idle and has no body.
    #[inline(always)]
    pub unsafe fn arm<P, F: FnOnce(Strand<H>) -> Option<Strand<H>>>(self, body: F) {
        let (bytes, align) = const {
            let bytes = if size_of::<F>() > size_of::<P>() {
                size_of::<F>()
            } else {
                size_of::<P>()
            };
            let align = if align_of::<F>() > align_of::<P>() {
                align_of::<F>()
            } else {
                align_of::<P>()
            };
            assert!(
                bytes <= Self::MAX_BODY_BYTES && align <= 64,
                "body and result fit the stack: box them"
            );
            // The System V ABI wants a stack aligned to 16 where a function is called.
            (bytes, if align > 16 { align } else { 16 })
        };
        let core = self.core.as_ptr();
        let body_at = (core as usize - bytes) & !(align - 1);
        // SAFETY: the caller's promise: no other code uses stack and control, and the place is large enough (checked above).
        unsafe {
            (body_at as *mut F).write(body);
            let control = &mut (*core).control;
            control.shadow.forget_frames();
            control.stack_base = body_at;
            control.run = run::<H, F>;
            let entry = context::rewind(control);
            (*core).left_at().store(entry, Ordering::Release);
        }
    }

    /// The place of the body.
    #[inline(always)]
    pub fn place<P>(self) -> *mut P {
        self.control().body().cast()
    }

    /// The scheduler's part.
    ///
    /// # Safety
    /// The strand is not destroyed while the reference is used.
    #[inline(always)]
    pub unsafe fn head<'a>(self) -> &'a H {
        // SAFETY: the caller's promise.
        unsafe { &(*self.core.as_ptr()).head }
    }

    /// The strand as a word, for queues of words.
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<()> {
        self.core.cast()
    }

    /// Turns a word back into the strand.
    ///
    /// # Safety
    /// `word` came from [`into_raw`](Strand::into_raw) of the same `H`.
    #[inline(always)]
    pub unsafe fn from_raw(word: NonNull<()>) -> Self {
        Strand {
            core: word.cast(),
            bound: PhantomData,
        }
    }

    /// The strand of this kind that runs; none if the caller runs in no fiber, or in a fiber of another kind.
    #[inline(always)]
    pub fn current(kind: &'static StrandKind<H>) -> Option<Self> {
        let control = NonNull::new(local::fiber())?;
        // SAFETY: not null, so this thread's current fiber.
        let its_kind = unsafe { control.as_ref().kind };
        // `new` gave a strand of this kind a head of this type.
        ptr::eq(its_kind, (&raw const *kind).cast()).then_some(Strand {
            core: control.cast(),
            bound: PhantomData,
        })
    }

    /// Suspends this strand and runs `next`. Returns once this one is resumed, maybe in another thread.
    ///
    /// It waits, still on its own stack, until `next` has left its. Two strands that are each about to run the other would wait for ever: a scheduler of
    /// several threads asks [`has_left`](Strand::has_left), and [leaves](Strand::leave) where it has not.
    ///
    /// # Safety
    /// This is the strand that runs, inside one no-preempt section, and no panic unwinds it unless it is resumed in this thread. `next` is armed or
    /// suspended, or about to be suspended by another thread, and no other caller resumes it.
    #[inline(always)]
    pub unsafe fn switch_to(self, next: Strand<H>) {
        let suspensions = &self.control().suspensions;
        suspensions.set(suspensions.get() + 1);
        keeping_exceptions(move || {
            // SAFETY: the caller's promises.
            unsafe {
                let left_at = self.hand_over(next);
                let control = self.control();
                control.shadow.departing_for(&next.control().shadow, false);
                context::switch(control, next.core.cast(), left_at);
                self.control().shadow.arrived();
            }
        });
    }

    /// Suspends this strand, and goes back to the scheduler. Returns once it is resumed, maybe in another thread.
    ///
    /// # Safety
    /// This is the strand that runs, inside one no-preempt section, and no panic unwinds it unless it is resumed in this thread.
    #[inline(always)]
    pub unsafe fn leave(self) {
        // SAFETY: current. A strand is never unwound from outside.
        unsafe { switch::leave(self.core.cast()) };
    }

    /// Runs the strand in the calling thread, and the strands that it and its successors switch to, until one of them goes back.
    ///
    /// # Safety
    /// The caller runs in no fiber, and is not the destructor of a thread-local variable. The strand is as `next` of [`switch_to`](Strand::switch_to).
    pub unsafe fn run(self) -> LeftStrand<H> {
        let left_at = self.take_left_at();
        let control = self.control();
        local::set_no_preempt(u32::from(!control.preempted.get()));
        control.forget_yield();
        local::set_fiber(self.core.as_ptr().cast());
        // SAFETY: the caller's promises; from now on only the strand uses its memory.
        let (left_at, left) = unsafe {
            let shadow = &control.shadow;
            shadow.running(|| context::enter(self.core.cast(), left_at, false))
        };
        local::set_fiber(ptr::null_mut());
        let sections = local::no_preempt();
        local::set_no_preempt(0);
        let left = Strand {
            core: left.cast(),
            bound: PhantomData,
        };
        // One that waits leaves in a section. `yield_now` knows nothing of schedulers, who would have this one wait for somebody that wakes it.
        if sections == 0 && left_at != rest::IDLE && !left.control().preempted.get() {
            left.control().preempted.set(true);
            left.control().yielded.set(true);
        }
        // Read before another thread resumes it.
        let preempted = left.control().preempted.get();
        left.left_at().store(left_at, Ordering::Release);
        if left_at == rest::IDLE {
            LeftStrand::Finished(left)
        } else if preempted {
            LeftStrand::Preempted(left)
        } else {
            LeftStrand::Suspended(left)
        }
    }

    /// Whether the strand has left its stack, so that resuming it needs no wait. The answer stays true until the strand is resumed.
    #[inline(always)]
    pub fn has_left(self) -> bool {
        self.left_at().load(Ordering::Relaxed) != rest::RUNNING
    }

    /// Waits until the strand has left its stack, after its body ended.
    #[inline(always)]
    pub fn wait_until_idle(self) {
        while self.left_at().load(Ordering::Acquire) != rest::IDLE {
            self.wait();
        }
    }

    /// Drops the head and gives the stack back.
    ///
    /// # Safety
    /// The strand is idle, and no copy of the handle is used any more.
    pub unsafe fn destroy(self) -> Stack {
        let core = self.core.as_ptr();
        // SAFETY: the caller's promise: it is dropped once, and the stack is taken out once.
        unsafe {
            (&raw mut (*core).head).drop_in_place();
            (*core).control.shadow.close();
            ManuallyDrop::into_inner((&raw const (*core).control.stack).read())
        }
    }

    /// Makes `next` this thread's current fiber, still on this strand's stack, where no probe or signal suspends anything from now on.
    #[inline(always)]
    unsafe fn hand_over(self, next: Strand<H>) -> usize {
        let left_at = next.take_left_at();
        let control = next.control();
        control.resumer.set(self.control().resumer.get());
        local::set_fiber(next.core.as_ptr().cast());
        if control.preempted.get() {
            local::set_no_preempt(0);
            control.forget_yield();
        }
        left_at
    }

    #[inline(always)]
    fn take_left_at(self) -> usize {
        let word = self.left_at();
        loop {
            let left_at = word.load(Ordering::Acquire);
            if left_at != rest::RUNNING {
                word.store(rest::RUNNING, Ordering::Relaxed);
                return left_at;
            }
            self.wait();
        }
    }

    /// The strand is in a queue already, and its thread is about to leave its stack: that takes nanoseconds, unless the operating system stopped the
    /// thread.
    #[cold]
    fn wait(self) {
        for _ in 0..100 {
            if self.left_at().load(Ordering::Relaxed) != rest::RUNNING {
                return;
            }
            spin_loop();
        }
        thread::yield_now();
    }

    #[inline(always)]
    fn control(&self) -> &FiberControl {
        // SAFETY: made by `new`, and not destroyed while a handle is used.
        unsafe { &(*self.core.as_ptr()).control }
    }

    #[inline(always)]
    fn left_at(&self) -> &AtomicUsize {
        // SAFETY: as above.
        unsafe { (*self.core.as_ptr()).left_at() }
    }
}

impl<H> StrandCore<H> {
    /// Where it left, which another thread may wait for.
    #[inline(always)]
    fn left_at(&self) -> &AtomicUsize {
        // SAFETY: a word that lives as long as the control; all that is done to a strand's is atomic, or a store by assembly.
        unsafe { AtomicUsize::from_ptr(self.control.left_at.as_ptr()) }
    }
}

/// The strand's side: runs a body.
///
/// # Safety
/// Called on the strand whose control this is, the head of a `StrandCore<H>`, and whose body is an `F` that was not run yet.
unsafe extern "C" fn run<H: 'static, F: FnOnce(Strand<H>) -> Option<Strand<H>>>(
    control: *mut FiberControl,
) -> Ended {
    // SAFETY: the caller's promise.
    let (strand, body) = unsafe {
        (*control).shadow.arrived();
        let strand = Strand::<H>::from_raw(NonNull::new_unchecked(control).cast());
        (strand, strand.place::<F>().read())
    };
    unshield();
    let Some(next) = body(strand) else {
        strand.control().shadow.departing();
        return Ended::Finished;
    };
    // SAFETY: the body is gone, and named a strand to resume.
    unsafe {
        let left_at = strand.hand_over(next);
        let shadow = &strand.control().shadow;
        shadow.departing_for(&next.control().shadow, true);
        context::finish(control, next.core.cast(), left_at)
    }
}

unsafe extern "C" fn unarmed(_: *mut FiberControl) -> Ended {
    unreachable!("a strand without a body is not resumed")
}

unsafe fn no_body(_: *mut ()) {}
