//! The call's side: starts loops, gives them requests, and goes on with them until they want the next.
#![expect(
    unsafe_code,
    reason = "goes on with a loop whose state the call and the loop share"
)]

use std::cell::Cell;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use headway_fiber::{Fiber, Turn, in_fiber, note_held, yield_now};
use headway_policy::WorkerId;

use super::program::{Pull, PullService};
use super::requests::Requests;
use super::state::{self, Loop, LoopRun, Rest, Ticket};
use crate::error::SetupFailure;
use crate::request::panics::catch;
use crate::request::service::{Call, Service};

/// A loop that yields this often after the server's end, without returning, is left as it is.
const MOST_TURNS_AT_THE_END: usize = 1_000;

/// The payload by which a panic of the loop goes on in the call, which counts it.
struct LoopPanicked;

impl<P: PullService> Service for Pull<P> {
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        self.hand_to_loop(call, in_fiber());
    }

    fn setup_worker(&self, worker: WorkerId, core: Option<usize>) -> Result<(), SetupFailure> {
        self.program.setup_worker(worker, core)?;
        self.start_first_loop()
    }

    fn has_own_stacks(&self) -> bool {
        true
    }

    fn leave_worker(&self) {
        end_loops();
    }
}

impl<P: PullService> Pull<P> {
    /// Gives the request to a loop, and returns when the loop is finished with it and wants the next. `on_fiber`: the call can be suspended.
    #[inline]
    fn hand_to_loop(&self, call: &mut Call<'_>, on_fiber: bool) {
        call.hand_over();
        let may_hold = on_fiber && call.may_be_held();
        let Some(of) = state::take_free(may_hold).or_else(|| self.new_loop()) else {
            return call.fail();
        };
        let ticket = Ticket {
            call: NonNull::from(call).cast(),
            done: Cell::new(false),
        };
        // SAFETY: loops live until the thread leaves the server, after its last call.
        let shared = unsafe { of.as_ref() };
        shared.may_hold.set(may_hold);
        shared.inbox.set(Some(NonNull::from(&ticket)));
        // SAFETY: taken out of the list, so nothing else runs it. The engine runs handlers in its loops, not in destructors.
        let mut panicked = unsafe { go_on(of) };
        loop {
            match shared.rest.get() {
                Rest::Over => break,
                Rest::Waits if ticket.done.get() => break,
                Rest::Waits => {
                    // It holds this request and wants another one: the policy says which, if any.
                    state::give_free(of);
                    yield_now();
                    if ticket.done.get() {
                        return;
                    }
                    match shared.rest.get() {
                        Rest::Waits => state::claim(of),
                        Rest::Suspended => {}
                        Rest::Over => break,
                    }
                }
                // This call went on with it last, so this call goes on with it again, unless another one did meanwhile.
                Rest::Suspended => {
                    yield_now();
                    match shared.rest.get() {
                        Rest::Waits if ticket.done.get() => return,
                        Rest::Waits => state::claim(of),
                        Rest::Suspended => {}
                        Rest::Over => break,
                    }
                }
            }
            // SAFETY: it rests: calls that share a loop are of one thread, and this one runs.
            panicked = unsafe { go_on(of) };
        }
        if shared.rest.get() == Rest::Over {
            shared.inbox.set(None);
        }
        state::give_free(of);
        if !ticket.done.get() {
            // It returned without taking the request.
            // SAFETY: the call is this one's, and no loop has the request.
            unsafe { (*ticket.call.as_ptr()).fail() };
        }
        if panicked {
            resume_unwind(Box::new(LoopPanicked));
        }
    }

    /// Starts the worker's first loop, so that what it does before its first request delays none.
    fn start_first_loop(&self) -> Result<(), SetupFailure> {
        let of = self
            .new_loop()
            .ok_or("there is no memory for the loop's stack")?;
        // SAFETY: new, so nothing else runs it; this is no destructor.
        let mut panicked = unsafe { go_on(of) };
        // SAFETY: as above.
        while unsafe { of.as_ref() }.rest.get() == Rest::Suspended {
            thread::yield_now();
            // SAFETY: as above.
            panicked = unsafe { go_on(of) };
        }
        state::give_free(of);
        // SAFETY: as above.
        match unsafe { of.as_ref() }.rest.get() {
            _ if panicked => Err("its loop panicked; the message says why".into()),
            Rest::Over => Err("its loop returned before it received a request".into()),
            Rest::Waits | Rest::Suspended => Ok(()),
        }
    }

    /// A loop that has not begun; `None` without memory for its stack.
    #[cold]
    fn new_loop(&self) -> Option<NonNull<Loop>> {
        let stack = self.stacks.as_ref().ok()?.take().ok()?;
        let program = Arc::clone(&self.program);
        let fiber = Fiber::new(stack, move |run: &mut LoopRun| {
            let requests = Requests::of(run.of);
            run.panicked = catch(|| program.serve(&requests)).is_err();
        });
        let of = Box::new(Loop::new(fiber, self.most_held));
        Some(NonNull::from(Box::leak(of)))
    }
}

/// Goes on with the loop until it rests; whether a panic ended it.
///
/// # Safety
/// The loop lives, rests, and is in no list; the caller is no destructor of a thread-local variable.
unsafe fn go_on(of: NonNull<Loop>) -> bool {
    // SAFETY: the caller's promise.
    let (shared, fiber) = unsafe { (of.as_ref(), &mut *of.as_ref().fiber.get()) };
    shared.in_recv.set(false);
    let label = shared.label();
    let turn = if fiber.is_suspended() {
        fiber.set_label(label);
        // SAFETY: the caller's promise.
        unsafe { fiber.resume() }
    } else {
        let panicked = false;
        fiber.run(LoopRun { of, panicked }, label)
    };
    if let Some(held) = fiber.take_held() {
        note_held(held);
    }
    let (rest, panicked) = match turn {
        Turn::Finished(run) => {
            shared.finish_held();
            (Rest::Over, run.panicked)
        }
        Turn::Yielded if shared.in_recv.get() => (Rest::Waits, false),
        Turn::Yielded => (Rest::Suspended, false),
    };
    shared.rest.set(rest);
    panicked
}

/// Ends the calling thread's loops that wait: `recv` has nothing for them any more.
fn end_loops() {
    if thread::panicking() {
        return; // A loop that panicked now would end the process. Their stacks are left as they are.
    }
    for of in state::take_all() {
        // SAFETY: it was in the list, so it lives and rests.
        let shared = unsafe { of.as_ref() };
        shared.has_ended.set(true);
        let mut turns = 0;
        while shared.rest.get() != Rest::Over && turns < MOST_TURNS_AT_THE_END {
            // SAFETY: as above; the server's threads leave in their loops, not in destructors of thread-local variables.
            unsafe { go_on(of) };
            turns += 1;
        }
        if shared.rest.get() == Rest::Over && shared.held.borrow().is_empty() {
            // SAFETY: it came from a box, is in no list, and no request of it is left.
            drop(unsafe { Box::from_raw(of.as_ptr()) });
        }
    }
}
