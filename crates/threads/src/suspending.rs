//! How a thread leaves its kthread to the next one, and how a thread becomes ready. Models replace this file: loom follows no switch of stacks.
#![expect(unsafe_code, reason = "switches between threads")]

use std::marker::PhantomData;
use std::thread;

use headway_fiber::NoPreempt;

use crate::current::{WAITS_IN_READ, kthread_of};
use crate::head::Uthread;
use crate::kernel::{KthreadRunner, runtime_of};
use crate::timers::Timers;

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

    /// The timers of the kthread that runs the thread.
    ///
    /// # Safety
    /// The reference is not used after the thread's end: a kthread outlives its runtime's threads.
    pub(crate) unsafe fn timers<'a>(&self) -> &'a Timers {
        // SAFETY: the thread that runs, in its section; the caller's promise.
        unsafe { &kthread_of(self.me).timers }
    }

    /// The time on the clock of the thread's runtime.
    pub(crate) fn now_ns(&self) -> u64 {
        // SAFETY: a runtime outlives its threads.
        unsafe { runtime_of(self.me) }.clock.now_ns()
    }

    /// Suspends the thread until [`ready_in_section`] is called for it, which may have happened already.
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
    pub(crate) fn yields(self) {
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

/// The standard library counts panics per kernel thread, so a thread that waits while it unwinds must resume on the same one. Other
/// threads that run there meanwhile count as panicking too ([`crate`]).
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

/// Makes a thread ready, inside a no-preempt section. The thread waits or is about to, and the caller is the only one that makes it ready.
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

/// Keeps the fiber of a thread that has ended, for another thread.
#[inline(always)]
pub(crate) fn free(thread: Uthread) {
    let _section = NoPreempt::enter();
    match Uthread::current() {
        Some(me) if me.head().shared == thread.head().shared => {
            thread.0.wait_until_idle();
            // SAFETY: the thread that runs, in the section.
            unsafe { kthread_of(me) }.give_free(thread);
        }
        // SAFETY: a runtime lives while handles of its threads do.
        _ => unsafe { runtime_of(thread) }.give_free_outside(thread),
    }
}

/// Keeps the fiber of the running thread, which has ended: this kthread reuses it after the thread has left its stack.
///
/// # Safety
/// The thread that runs, in a no-preempt section in which it leaves.
#[inline(always)]
pub(crate) unsafe fn free_running(me: Uthread) {
    // SAFETY: the caller's promise.
    unsafe { kthread_of(me) }.give_free(me);
}
