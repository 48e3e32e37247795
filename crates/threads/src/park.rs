//! Parking: a thread waits until another one unparks it.
#![expect(unsafe_code, reason = "a timer that points to a token")]

use std::fmt;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use headway_sync::park_token::ParkToken;

use crate::head::{ParkCell, Uthread};
use crate::schedule::ready;
use crate::suspending::Suspending;

impl ParkCell {
    pub(crate) fn new(thread: Uthread) -> ParkCell {
        ParkCell {
            thread,
            token: ParkToken::default(),
        }
    }

    /// Waits for the token by `wait`, and takes it.
    fn park(&self, suspending: Suspending, wait: impl FnOnce(Suspending)) {
        if self.token.waits() {
            wait(suspending);
        }
        self.token.take();
    }

    fn unpark(&self) {
        if self.token.give() {
            ready(self.thread);
        }
    }
}

impl Wake for ParkCell {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

/// The right to unpark a thread. It can be cloned, sent to any thread, and used after the thread has ended.
#[derive(Clone)]
pub struct Unparker(Arc<ParkCell>);

impl Unparker {
    /// Gives the thread its token: the current or the next [`park`] returns. A thread holds at most one token.
    #[inline]
    pub fn unpark(&self) {
        self.0.unpark();
    }
}

impl fmt::Debug for Unparker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Unparker").finish_non_exhaustive()
    }
}

/// The calling thread's [`Unparker`].
///
/// # Panics
/// The caller is no thread of a runtime.
pub fn unparker() -> Unparker {
    let me = Uthread::current().expect("a thread of a runtime");
    Unparker(Arc::clone(cell_of(me)))
}

/// The calling thread's [`Unparker`] as a waker, for code written for futures. It allocates nothing after a thread's first.
///
/// # Panics
/// The caller is no thread of a runtime.
pub fn waker() -> Waker {
    let me = Uthread::current().expect("a thread of a runtime");
    Waker::from(Arc::clone(cell_of(me)))
}

fn cell_of<'a>(me: Uthread) -> &'a Arc<ParkCell> {
    me.head()
        .parking
        .get_or_init(|| Arc::new(ParkCell::new(me)))
}

/// Waits until the thread is [unparked](Unparker::unpark), and takes the token. It may also return without a token.
///
/// # Panics
/// The caller is no thread of a runtime.
pub fn park() {
    let suspending = Suspending::begin().expect("a thread of a runtime");
    cell_of(suspending.me()).park(suspending, Suspending::wait);
}

/// As [`park`], for `duration` at most.
///
/// # Panics
/// The caller is no thread of a runtime.
pub fn park_timeout(duration: Duration) {
    let suspending = Suspending::begin().expect("a thread of a runtime");
    let cell = cell_of(suspending.me());
    let due_ns = suspending.due_in(duration);
    cell.park(suspending, |suspending| {
        // SAFETY: the cell belongs to this thread, which waits here.
        unsafe { suspending.wait_until(due_ns, times_out, (&raw const **cell).cast()) };
    });
}

unsafe fn times_out(cell: *const (), _: Uthread) -> bool {
    // SAFETY: as `park_timeout` says.
    unsafe { (*cell.cast::<ParkCell>()).token.times_out() }
}
