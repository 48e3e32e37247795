//! What a loop and the calls that bring its requests share, and which loops of a thread wait.
#![expect(
    unsafe_code,
    reason = "a loop and the calls that drive it reach the same state from different stacks"
)]

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ptr::NonNull;

use headway_fiber::{Fiber, NoPreempt};

use crate::request::service::Call;

/// A request that a loop has, or is to have; lies in the call that brought it, which does not return before the request is `done`.
pub(super) struct Ticket {
    pub(super) call: NonNull<Call<'static>>,
    /// The loop is finished with it: its answer may be sent.
    pub(super) done: Cell<bool>,
}

/// One run of the program's loop.
pub(super) struct LoopRun {
    pub(super) of: NonNull<Loop>,
    pub(super) panicked: bool,
}

/// What a loop does while its fiber does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    /// It waits in `recv`.
    Waits,
    /// It was interrupted, or yielded by itself.
    Suspended,
    /// It returned or panicked, or has not begun.
    Over,
}

/// A loop, on its fiber. Lives until its thread leaves the server, or for ever if it never ends.
pub(super) struct Loop {
    /// Used by the call that drives the loop, one at a time.
    pub(super) fiber: UnsafeCell<Fiber<LoopRun>>,
    pub(super) rest: Cell<Rest>,
    /// Set by `recv` before it suspends the loop, and taken back by the call that goes on with it.
    pub(super) in_recv: Cell<bool>,
    /// What `recv` is to return next.
    pub(super) inbox: Cell<Option<NonNull<Ticket>>>,
    /// The server has ended: `recv` returns nothing any more.
    pub(super) has_ended: Cell<bool>,
    /// Whether the loop may ask for another request while it holds some.
    pub(super) may_hold: Cell<bool>,
    /// The requests that it has and is not finished with.
    pub(super) held: RefCell<Vec<NonNull<Ticket>>>,
    pub(super) most_held: usize,
}

impl Loop {
    pub(super) fn new(fiber: Fiber<LoopRun>, most_held: usize) -> Self {
        Self {
            fiber: UnsafeCell::new(fiber),
            rest: Cell::new(Rest::Over),
            in_recv: Cell::new(false),
            inbox: Cell::new(None),
            has_ended: Cell::new(false),
            may_hold: Cell::new(false),
            held: RefCell::new(Vec::with_capacity(most_held)),
            most_held,
        }
    }

    /// The class that a stack overflow is reported by: that of the request which the loop has, or had last.
    pub(super) fn label(&self) -> u64 {
        let held = self.held.borrow();
        let ticket = self.inbox.get().or_else(|| held.last().copied());
        // SAFETY: the call that has the ticket does not return before the request is done.
        ticket.map_or(u64::MAX, |ticket| unsafe {
            u64::from(ticket.as_ref().call.as_ref().class().0)
        })
    }

    /// The loop is over: whatever it still has is answered, as an error where it gave no answer.
    pub(super) fn finish_held(&self) {
        for ticket in self.held.borrow_mut().drain(..) {
            // SAFETY: the call that has the ticket does not return before the request is done, and waits.
            let (ticket, call) = unsafe { (ticket.as_ref(), &mut *ticket.as_ref().call.as_ptr()) };
            call.leave_loop();
            ticket.done.set(true);
        }
    }

    /// Whether it can take a request now. `shared`: beside those that it holds.
    fn is_free(&self, shared: bool) -> bool {
        let held = self.held.borrow().len();
        held == 0 || shared && held < self.most_held
    }
}

thread_local! {
    /// The thread's loops that wait in `recv`, or are over: the one that waited last at the end.
    static FREE: RefCell<Vec<NonNull<Loop>>> = const { RefCell::new(Vec::new()) };
}

/// Never inlined: a request may have changed threads between two calls, and the compiler must not keep the address of the variable.
#[inline(never)]
fn with_free<T>(change: impl FnOnce(&mut Vec<NonNull<Loop>>) -> T) -> T {
    // A signal must not bring another request here meanwhile.
    let _section = NoPreempt::enter();
    FREE.with_borrow_mut(change)
}

/// Takes a loop that can have a request now; `shared`: also one that holds others.
pub(super) fn take_free(shared: bool) -> Option<NonNull<Loop>> {
    with_free(|free| {
        // SAFETY: a loop in the list lives, and nothing runs it.
        let place = free
            .iter()
            .rposition(|of| unsafe { of.as_ref() }.is_free(shared))?;
        Some(free.swap_remove(place))
    })
}

/// Puts a loop that waits or is over into the list of the calling thread.
pub(super) fn give_free(of: NonNull<Loop>) {
    with_free(|free| {
        if !free.contains(&of) {
            free.push(of);
        }
    });
}

/// Takes this loop out of the list, before something goes on with it.
pub(super) fn claim(of: NonNull<Loop>) {
    with_free(|free| {
        if let Some(place) = free.iter().position(|other| *other == of) {
            free.swap_remove(place);
        }
    });
}

/// Takes all loops of the calling thread out of the list.
pub(super) fn take_all() -> Vec<NonNull<Loop>> {
    with_free(std::mem::take)
}
