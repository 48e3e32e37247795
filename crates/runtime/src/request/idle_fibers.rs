//! A thread's fibers between two requests, and how new ones are made.
#![expect(
    unsafe_code,
    reason = "a fiber's body uses the buffer that its request handed over"
)]

use std::sync::Arc;

use headway_fiber::{Fiber, Mechanism, SendFiber, Stack, StackCache};
use headway_policy::Resume;

use super::shared_fibers::FiberContext;
use super::suspended::FiberWork;
use crate::request::executor::handle;
use crate::request::service::CallMode;

/// More free fibers of a kind than this a thread does not keep to itself.
pub(crate) const MOST_IDLE: usize = 64;

/// Fibers without a request, of one kind; the one used last at the end.
struct IdleKind {
    idle: Vec<SendFiber<FiberWork>>,
    stacks: StackCache,
}

/// Fibers without a request. Those that own a thread's state may be interrupted; plain ones only where handlers keep nothing in their threads.
pub(super) struct IdleFibers {
    plain: IdleKind,
    /// `None`: requests on plain fibers may be interrupted.
    owning: Option<IdleKind>,
}

impl IdleKind {
    fn of(stacks: StackCache) -> Self {
        Self {
            idle: Vec::with_capacity(MOST_IDLE),
            stacks,
        }
    }

    /// Requests that go on elsewhere take their fibers along, so what one thread has too many of the others may lack.
    #[inline]
    fn keep(&mut self, fiber: SendFiber<FiberWork>) {
        if self.idle.len() < MOST_IDLE {
            self.idle.push(fiber);
        } else {
            self.stacks.give(fiber.into_inner().into_stack());
        }
    }
}

impl IdleFibers {
    pub(super) fn new(context: &FiberContext) -> Self {
        let owning = context.donors.as_ref();
        Self {
            plain: IdleKind::of(StackCache::new(Arc::clone(&context.stacks))),
            owning: owning.map(|donors| IdleKind::of(StackCache::new(Arc::clone(donors)))),
        }
    }

    /// Whether requests on plain fibers must not be interrupted.
    #[inline]
    pub(super) fn own_thread_states(&self) -> bool {
        self.owning.is_some()
    }

    /// A fiber for a request that may be interrupted or not. It is plain also where no thread can be had for it. `None`: there is no stack either.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        context: &FiberContext,
        may_be_interrupted: bool,
    ) -> Option<SendFiber<FiberWork>> {
        if let Some(owning) = &mut self.owning
            && may_be_interrupted
        {
            let fiber = owning.idle.pop().or_else(|| spawn(context, owning));
            if fiber.is_some() {
                return fiber;
            }
        }
        let plain = &mut self.plain;
        plain.idle.pop().or_else(|| spawn(context, plain))
    }

    /// The fiber is free.
    #[inline]
    pub(super) fn keep(&mut self, fiber: SendFiber<FiberWork>) {
        match &mut self.owning {
            Some(owning) if fiber.owns_thread_state() => owning.keep(fiber),
            _ => self.plain.keep(fiber),
        }
    }
}

#[cold]
fn spawn(context: &FiberContext, kind: &mut IdleKind) -> Option<SendFiber<FiberWork>> {
    let stack: Stack = kind.stacks.take().ok()?;
    // A request that is at home when the server ends goes on in its buffer: it stays for as long as the fiber.
    let (service, pool) = (Arc::clone(&context.service), Arc::clone(&context.pool));
    let stays = context.resume == Resume::OwnWorker && context.mechanism != Mechanism::Signal;
    let mode = CallMode {
        heard: context.feedback,
        says_long: context.heeds_length,
        may_be_held: stays && !context.feedback,
    };
    let mut is_ready = !stack.owns_thread_state();
    let body = move |work: &mut FiberWork| {
        if !is_ready {
            is_ready = true;
            service.setup_fiber();
        }
        let _buffers = &pool;
        // SAFETY: whoever handed the buffer over has its token and leaves the buffer alone until the fiber has finished.
        let buffer = unsafe { work.buffer.as_mut() };
        work.response = Some(handle(&*service, buffer, work.worker, mode));
    };
    // SAFETY: a fiber with a thread's state may change threads. Another is not interrupted, or who built the server has promised that its handlers keep nothing of
    // their threads' (`Builder::plain_fibers`), or the service keeps its own stacks and its requests go on in their worker's loop, which ends before the
    // thread's variables are dropped.
    Some(unsafe { Fiber::new(stack, body).migratable() })
}
