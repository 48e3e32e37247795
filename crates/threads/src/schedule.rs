//! Scheduling points: waiting, becoming ready, and yielding.
#![expect(unsafe_code, reason = "switches between threads")]

use std::marker::PhantomData;
use std::thread;

use headway_fiber::NoPreempt;

use crate::head::Uthread;
use crate::kernel::{KthreadRunner, runtime_of};

const WAITS_IN_READ: &str = "a thread does not wait while it reads a read-mostly cell";

/// # Panics
/// The calling thread reads a read-mostly cell.
pub(crate) fn assert_not_reading() {
    let _section = NoPreempt::enter();
    let reads = Uthread::current().is_some_and(|me| {
        // SAFETY: the thread that runs, in the section.
        unsafe { kthread_of(me) }.reads.any()
    });
    assert!(!reads, "{WAITS_IN_READ}");
}

/// The running thread on its way to wait. While it exists nothing interrupts the thread, so keep its use short.
pub(crate) struct Suspending {
    me: Uthread,
    _section: NoPreempt,
    /// Keeps the value on its thread.
    bound: PhantomData<*mut ()>,
}

impl Suspending {
    /// `None` outside of a runtime's threads.
    ///
    /// # Panics
    /// The thread reads a read-mostly cell: waiting there would block the cell's writer.
    #[inline(always)]
    pub(crate) fn begin() -> Option<Suspending> {
        let section = NoPreempt::enter();
        let me = Uthread::current()?;
        // SAFETY: the thread that runs, in the section.
        assert!(!unsafe { kthread_of(me) }.reads.any(), "{WAITS_IN_READ}");
        if thread::panicking() {
            bind(me);
        }
        Some(Suspending {
            me,
            _section: section,
            bound: PhantomData,
        })
    }

    #[inline(always)]
    pub(crate) fn me(&self) -> Uthread {
        self.me
    }

    /// Suspends the thread until [`ready`] is called for it, which may have happened already.
    #[inline(always)]
    pub(crate) fn wait(self) {
        self.wait_after(|_| {});
    }

    /// As [`wait`](Suspending::wait), after `last`, which gets the thread that runs next on this kthread.
    #[inline(always)]
    pub(crate) fn wait_after(self, last: impl FnOnce(Option<Uthread>)) {
        // SAFETY: the thread that runs.
        let kthread = unsafe { kthread_of(self.me) };
        let next = kthread.next();
        last(next);
        // SAFETY: the section is open.
        unsafe { self.go_on(kthread, next) };
    }

    /// Puts the thread at the end of the run queue, and lets others run.
    #[inline(always)]
    fn yields(self) {
        // SAFETY: the thread that runs.
        let kthread = unsafe { kthread_of(self.me) };
        kthread.push(self.me);
        // SAFETY: the section is open.
        unsafe { self.go_on(kthread, kthread.next()) };
    }

    /// # Safety
    /// The kthread is the one that runs, and the next thread came from its queue.
    #[inline(always)]
    unsafe fn go_on(self, kthread: &KthreadRunner, next: Option<Uthread>) {
        if next == Some(self.me) {
            // It yielded and no other thread is ready; or a timer or another thread made it ready before it had left.
            return;
        }
        kthread.pass(2);
        // SAFETY: the thread that runs, in its section; a thread that unwinds is bound to its kthread.
        unsafe {
            match next {
                Some(next) if !next.0.has_left() => {
                    // Its kthread may be about to run this thread, and both would wait for each other for ever. The kthread's loop waits on a stack of its own
                    // instead.
                    kthread.push(next);
                    self.me.0.leave();
                }
                Some(next) => {
                    next.head().kthread.set((&raw const *kthread).cast());
                    self.me.0.switch_to(next.0);
                }
                None => self.me.0.leave(),
            }
        }
    }
}

impl Drop for Suspending {
    /// The no-preempt section ends only after this.
    #[inline(always)]
    fn drop(&mut self) {
        if self.me.head().bound.get() != 0 {
            unbind(self.me);
        }
    }
}

/// The standard library counts panics per kernel thread, so a thread that waits while it unwinds must resume on the same one.
#[cold]
fn bind(me: Uthread) {
    // SAFETY: the thread that runs, in a no-preempt section.
    let kthread = unsafe { kthread_of(me) };
    let threads = &kthread.own.bound_threads;
    threads.set(threads.get() + 1);
    me.head().bound.set(kthread.index + 1);
}

#[cold]
fn unbind(me: Uthread) {
    me.head().bound.set(0);
    // SAFETY: the thread that runs, in a no-preempt section.
    let threads = unsafe { &kthread_of(me).own.bound_threads };
    threads.set(threads.get() - 1);
}

/// The kthread that runs a thread.
///
/// # Safety
/// The thread is the one that runs, in a no-preempt section that does not end while the reference is used.
#[inline(always)]
pub(crate) unsafe fn kthread_of<'a>(me: Uthread) -> &'a KthreadRunner {
    // SAFETY: set before the thread was resumed; a kthread outlives its threads' turns.
    unsafe { &*me.head().kthread.get().cast() }
}

/// The number of the kthread that runs the calling thread; `None` outside of a runtime's threads. Outside a no-preempt section the thread may change
/// kthreads at any time.
#[must_use]
pub fn current_kthread() -> Option<usize> {
    let me = Uthread::current()?;
    let _section = NoPreempt::enter();
    // SAFETY: the thread that runs, in a section.
    Some(unsafe { kthread_of(me) }.index)
}

/// Makes a thread ready. The thread waits or is about to, and the caller is the only one that makes it ready.
#[inline]
pub(crate) fn ready(thread: Uthread) {
    let _section = NoPreempt::enter();
    ready_in_section(thread);
}

/// As [`ready`], inside a no-preempt section.
#[inline(always)]
pub(crate) fn ready_in_section(thread: Uthread) {
    let shared = thread.head().shared;
    match Uthread::current() {
        Some(me) if me.head().shared == shared => {
            // SAFETY: in the section.
            unsafe { kthread_of(me) }.push(thread);
        }
        // SAFETY: a runtime lives while it has threads that have not ended.
        _ => unsafe { runtime_of(thread) }.inject(thread),
    }
}

/// Lets the other threads that are ready run first. Outside of a runtime's threads, lets the operating system run another thread.
#[inline]
pub fn yield_now() {
    match Suspending::begin() {
        Some(suspending) => suspending.yields(),
        None => thread::yield_now(),
    }
}

/// Whether the caller is a thread of a runtime.
#[inline]
pub fn in_thread() -> bool {
    Uthread::current().is_some()
}
