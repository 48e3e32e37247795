//! Spawning threads, and waiting for their ends.
#![expect(unsafe_code, reason = "a result lies at the top of its thread's stack")]

use std::any::Any;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::thread;

use headway_fiber::{NoPreempt, Strand};
use headway_machine::thread::fork;
use headway_sync::atomic::Ordering;
use headway_sync::thread::{Thread, current, park};

use crate::current::kthread_of;
use crate::head::{Uthread, UthreadHead, join};
use crate::kernel::RuntimeShared;
use crate::schedule::ready;
use crate::suspending::{Suspending, free, free_running};

/// The end of a thread: its result, or the payload of its panic.
type Ending<T> = Result<T, Box<dyn Any + Send>>;

/// The payload with which [`JoinHandle::join`] fails when the runtime ended before the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abandoned;

/// Starts a thread, which goes to the end of the run queue. It is detached when the handle is dropped.
///
/// The closure and the result lie on the thread's own stack; together they may take 4 KiB. Box larger ones.
///
/// # Panics
/// The caller is no thread of a runtime: use [`Runtime::spawn`](crate::Runtime::spawn). Or a stack cannot be mapped.
#[inline]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    try_spawn(body).expect("a thread gets a stack")
}

/// As [`spawn`].
///
/// # Errors
/// A stack cannot be mapped: there is no memory, or the process has as many mappings as it may (`vm.max_map_count`). Each stack takes two.
///
/// # Panics
/// The caller is no thread of a runtime.
#[inline]
pub fn try_spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _section = NoPreempt::enter();
    let me = Uthread::current().expect("spawn is called by a thread of a runtime");
    // SAFETY: the thread that runs, in the section.
    let kthread = unsafe { kthread_of(me) };
    let thread = kthread.take_free()?;
    // SAFETY: free. What it runs may change threads, by the runtime's conditions, and borrows nothing.
    let handle = unsafe { arm(thread, body) };
    kthread.push(thread);
    Ok(handle)
}

/// Starts a thread from outside.
///
/// # Safety
/// The body is not used after its borrows end.
pub(crate) unsafe fn spawn_from_outside<T: Send>(
    shared: &RuntimeShared,
    body: impl FnOnce() -> T + Send,
) -> io::Result<JoinHandle<T>> {
    // The caller may be a thread of another runtime.
    let _section = NoPreempt::enter();
    let thread = shared.take_free(1, &mut Vec::new())?;
    // SAFETY: as above.
    let handle = unsafe { arm(thread, body) };
    shared.inject(thread);
    Ok(handle)
}

/// # Safety
/// The thread is free. The body is not used after its borrows end.
#[inline(always)]
pub(crate) unsafe fn arm<T: Send, F: FnOnce() -> T + Send>(
    thread: Uthread,
    body: F,
) -> JoinHandle<T> {
    thread.head().join.store(join::NOBODY, Ordering::Relaxed);
    // SAFETY: free.
    unsafe {
        thread
            .0
            .arm::<Ending<T>, _>(move |me: Strand<UthreadHead>| run(Uthread(me), body));
    }
    JoinHandle {
        thread,
        result: PhantomData,
    }
}

/// Runs a thread from begin to end. Returns the thread that runs next.
#[inline(always)]
fn run<T: Send, F: FnOnce() -> T>(me: Uthread, body: F) -> Option<Strand<UthreadHead>> {
    let ending = catch_unwind(AssertUnwindSafe(body));
    // Who joins it is the parent's.
    fork::end_child();
    me.end_locals();
    // SAFETY: the body was moved out of its place.
    let (section, mut next) = unsafe { end(me, ending) };
    // The fiber's code continues in this section.
    std::mem::forget(section);
    // SAFETY: the thread that runs, in the section.
    let kthread = unsafe { kthread_of(me) };
    if kthread.must_leave()
        && let Some(waiter) = next.take()
    {
        kthread.push(waiter);
    }
    let next = next.or_else(|| kthread.next())?;
    kthread.pass(2);
    next.head().kthread.set((&raw const *kthread).cast());
    Some(next.0)
}

/// Publishes the end of a thread that runs. Returns the waiter if this kthread may run it next, and the section in which the thread leaves.
///
/// # Safety
/// The thread's [place](Strand::place) is free.
#[inline(always)]
pub(crate) unsafe fn end<T>(me: Uthread, ending: Ending<T>) -> (NoPreempt, Option<Uthread>) {
    // SAFETY: the caller's promise; it is large enough for this.
    unsafe { me.0.place::<Ending<T>>().write(ending) };
    let mut section = NoPreempt::enter();
    let mut next = None;
    match me.head().join.swap(join::DONE, Ordering::AcqRel) {
        join::NOBODY => {}
        join::DETACHED => {
            // The result's destructor may take long, and wait.
            drop(section);
            // SAFETY: written above; the handle, which could take it, is gone.
            unsafe { me.0.place::<Ending<T>>().drop_in_place() };
            section = NoPreempt::enter();
            // SAFETY: the thread that runs, in the section.
            unsafe { free_running(me) };
        }
        foreign if foreign & join::FOREIGN != 0 => wake_foreign(foreign),
        waiter => {
            // SAFETY: the waiter put its own address there.
            let waiter = unsafe { Uthread::from_word(waiter) };
            if waiter.head().shared == me.head().shared && waiter.head().bound.get() == 0 {
                next = Some(waiter);
            } else {
                ready(waiter);
            }
        }
    }
    (section, next)
}

/// Wakes a thread of the operating system that waits.
pub(crate) fn wake_foreign(word: usize) {
    // SAFETY: `JoinHandle::wait_outside` put the box there, for the one caller that ends the wait.
    let thread = unsafe { Box::from_raw((word & !join::FOREIGN) as *mut Thread) };
    thread.unpark();
}

/// The right to wait for a thread and to take its result.
pub struct JoinHandle<T> {
    thread: Uthread,
    result: PhantomData<T>,
}

// SAFETY: only the handle's owner takes the result.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle tells only whether the thread has ended.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended, and returns its result. It may be called in any thread.
    ///
    /// # Errors
    /// The payload of the thread's panic; [`Abandoned`] if its runtime ended first.
    #[inline]
    pub fn join(self) -> thread::Result<T> {
        let handle = ManuallyDrop::new(self);
        let thread = handle.thread;
        let mut state = thread.head().join.load(Ordering::Acquire);
        while state != join::DONE {
            if state == join::ABANDONED {
                return Err(Box::new(Abandoned));
            }
            handle.wait();
            state = thread.head().join.load(Ordering::Acquire);
        }
        // SAFETY: done: the result is there, and only this handle takes it.
        let ending = unsafe { thread.0.place::<Ending<T>>().read() };
        free(thread);
        ending
    }

    /// The handle as a word, for languages without destructors. It is [turned back](JoinHandle::from_raw) once.
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).thread.0.into_raw()
    }

    /// Turns a word back into the handle.
    ///
    /// # Safety
    /// `word` came from [`into_raw`](JoinHandle::into_raw) of a handle with the same `T`, and is used once.
    pub unsafe fn from_raw(word: NonNull<()>) -> Self {
        JoinHandle {
            // SAFETY: the caller's promise.
            thread: Uthread(unsafe { Strand::from_raw(word) }),
            result: PhantomData,
        }
    }

    /// Whether the thread has ended, so that [`join`](JoinHandle::join) does not wait.
    pub fn is_finished(&self) -> bool {
        let state = self.thread.head().join.load(Ordering::Acquire);
        [join::DONE, join::ABANDONED].contains(&state)
    }

    #[inline(always)]
    fn wait(&self) {
        let Some(suspending) = Suspending::begin() else {
            return self.wait_outside();
        };
        let me = suspending.me().word();
        let state = &self.thread.head().join;
        let waits = state.compare_exchange(join::NOBODY, me, Ordering::AcqRel, Ordering::Relaxed);
        if waits.is_ok() {
            suspending.wait();
        }
    }

    #[cold]
    fn wait_outside(&self) {
        let state = &self.thread.head().join;
        let waiter = Box::into_raw(Box::new(current())) as usize | join::FOREIGN;
        match state.compare_exchange(join::NOBODY, waiter, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                while !self.is_finished() {
                    park();
                }
            }
            Err(_) => wake_foreign(waiter),
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let state = &self.thread.head().join;
        let detached = state.compare_exchange(
            join::NOBODY,
            join::DETACHED,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if detached == Err(join::DONE) {
            // SAFETY: as in `join`.
            unsafe { self.thread.0.place::<Ending<T>>().drop_in_place() };
            free(self.thread);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("JoinHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Wakes the waiter for a thread's end, by the word of [`join`].
pub(crate) fn wake_joiner(word: usize) {
    match word {
        join::NOBODY | join::DETACHED => {}
        foreign if foreign & join::FOREIGN != 0 => wake_foreign(foreign),
        // SAFETY: a thread that waits, maybe in another runtime.
        thread => ready(unsafe { Uthread::from_word(thread) }),
    }
}
