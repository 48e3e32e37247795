//! The door of a deterministic world: what stands in for the system's scheduler.
//!
//! A thread of such a world runs production code. Where that code would block, start a thread or wake one, it asks the thread's [`Scheduler`]
//! instead of the system. A thread outside of any world pays for this where it would have slept anyway.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// Decides which thread of a world runs, and when.
pub trait Scheduler: Send + Sync {
    /// The calling thread waits at `place`, an address that is a number here, until it is notified or `timeout_ns` of the world's time have passed.
    /// `false`: they have.
    fn wait(&self, place: usize, timeout_ns: Option<u64>) -> bool;

    /// Wakes one thread that waits at `place`, or all.
    fn notify(&self, place: usize, all: bool);

    /// Announces a thread that the calling one is about to start.
    fn spawn(&self, name: &str) -> ThreadTicket;

    /// The announced thread runs: it returns when its turn comes.
    fn begin(self: Arc<Self>, ticket: ThreadTicket);

    /// The calling thread ends.
    fn end(&self);

    /// The calling thread.
    fn this_thread(&self) -> ThreadTicket;

    /// For how long the thread has had its core, ns: without the times in which it waited, or its core stood still.
    fn own_ns(&self, thread: ThreadTicket) -> u64;

    /// The calling thread is between two accesses to memory that threads share.
    fn step(&self);

    /// Sends the signal by which handlers are interrupted to a thread of the system, which meets it at a place of the world's choice.
    fn signal(&self, thread: i32);
}

/// A thread that was [announced](Scheduler::spawn).
#[derive(Clone, Copy, Debug)]
pub struct ThreadTicket(pub usize);

thread_local! {
    static SCHEDULER: RefCell<Option<Arc<dyn Scheduler>>> = const { RefCell::new(None) };
}

/// The calling thread belongs to the world of this scheduler from now on; to none where it is `None`.
pub fn enter(scheduler: Option<Arc<dyn Scheduler>>) {
    SCHEDULER.set(scheduler);
}

/// The scheduler of the calling thread's world; `None` outside of one.
#[must_use]
pub fn current() -> Option<Arc<dyn Scheduler>> {
    // A destructor of another thread-local value may run after this one was dropped.
    SCHEDULER
        .try_with(|scheduler| scheduler.borrow().clone())
        .ok()
        .flatten()
}

/// The calling thread sleeps: for as long as its world's scheduler says, or by the system outside of any world.
pub fn sleep(duration: Duration) {
    let Some(scheduler) = current() else {
        return std::thread::sleep(duration);
    };
    // A value of this call's own: nobody notifies its place.
    let place = std::ptr::from_ref(&duration).addr();
    let timeout_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    scheduler.wait(place, Some(timeout_ns));
}

/// The calling thread lets another one have its core: by the system, outside of any world. In one, who runs is its scheduler's choice alone.
pub fn yield_now() {
    let is_outside = SCHEDULER.try_with(|scheduler| scheduler.borrow().is_none());
    if is_outside.unwrap_or(true) {
        std::thread::yield_now();
    }
}

/// Stands between two accesses to memory that threads share, where another thread may come between: a look and what follows from it. A world may let others
/// run here. Builds without debug assertions have no such places.
#[inline(always)]
pub fn step() {
    #[cfg(debug_assertions)]
    step_in_world();
}

#[cfg(debug_assertions)]
#[inline(never)] // The caller may be code that goes on in another thread.
fn step_in_world() {
    let _ = SCHEDULER.try_with(|scheduler| {
        if let Some(scheduler) = &*scheduler.borrow() {
            scheduler.step();
        }
    });
}

/// A thread of the calling thread's world, to be started.
pub struct Announced {
    scheduler: Arc<dyn Scheduler>,
    ticket: ThreadTicket,
}

impl Announced {
    /// Announces a thread; `None` outside of a world.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let scheduler = current()?;
        let ticket = scheduler.spawn(name);
        Some(Self { scheduler, ticket })
    }

    /// The calling thread is the one announced, until the value is dropped.
    #[must_use]
    pub fn begin(self) -> InWorld {
        enter(Some(Arc::clone(&self.scheduler)));
        Arc::clone(&self.scheduler).begin(self.ticket);
        InWorld(self.scheduler)
    }
}

/// The calling thread's life in its world.
pub struct InWorld(Arc<dyn Scheduler>);

impl Drop for InWorld {
    fn drop(&mut self) {
        enter(None);
        self.0.end();
    }
}
