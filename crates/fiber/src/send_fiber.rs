//! Fibers that may change threads.
#![expect(unsafe_code, reason = "goes by a promise, or by an owned thread")]

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::fiber::{Fiber, Turn};
use crate::handover::ThreadWords;
use crate::held::Held;
use crate::local;
use crate::stack::Stack;

impl<J> Fiber<J> {
    /// Allows the fiber to change threads.
    ///
    /// # Safety
    /// While the fiber is suspended, nothing on its stack may belong to a thread: no value that is not `Send`, no address of a thread-local
    /// variable, no value of such a variable that the code uses later. Compilers keep such addresses over a probe, since they know of no yield
    /// there. So all code in which a probe may yield is compiled with Headway's pass, which hides them, or uses no thread-local variable
    /// (`errno` is kept). The body itself must be `Send`.
    pub unsafe fn migratable(self) -> SendFiber<J>
    where
        J: Send,
    {
        SendFiber(self)
    }
}

/// A fiber that may change threads, made by [`Fiber::migratable`].
pub struct SendFiber<J: 'static>(Fiber<J>);

// SAFETY: promised by the caller of `migratable`.
unsafe impl<J: Send> Send for SendFiber<J> {}

impl<J: Send> SendFiber<J> {
    /// A fiber that owns a [thread's state](crate::Stacks::of_donors): it may go on in any thread, whatever its code keeps in thread-local variables. Only what the
    /// kernel keeps for a thread changes then: its number, signal mask, priority, affinity.
    ///
    /// # Errors
    /// The stack, which comes without a thread's state.
    pub fn owning_thread_state<F: FnMut(&mut J) + Send + 'static>(
        stack: Stack,
        body: F,
    ) -> Result<Self, Stack> {
        if stack.owns_thread_state() {
            Ok(SendFiber(Fiber::new(stack, body)))
        } else {
            Err(stack)
        }
    }
}

impl<J> SendFiber<J> {
    /// Whether the fiber owns a [thread's state](crate::Stacks::of_donors).
    #[inline]
    pub fn owns_thread_state(&self) -> bool {
        self.0.control().owns_thread_state
    }

    /// As [`Fiber::is_suspended`].
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.0.is_suspended()
    }

    /// The fiber's address, by which others [look at its stack](crate::StackCopy::take).
    #[inline]
    pub fn address(&self) -> NonNull<()> {
        NonNull::from(self.0.control()).cast()
    }

    /// The line that its probes read, if this thread runs it.
    #[inline(always)]
    pub(crate) fn line(&self) -> *const AtomicU64 {
        let control = self.0.control();
        if control.owns_thread_state {
            local::shared_line_at(control.base)
        } else {
            local::shared_line()
        }
    }

    /// Lets the fiber's own thread go on with the suspended job, *at home*, until it is done or suspended again: [`turn_at_home`](Self::turn_at_home) says when. For
    /// a job whose lock others wait for, when no worker comes by. Nobody asks it to yield meanwhile.
    ///
    /// # Panics
    /// The fiber is not suspended, or owns no thread's state.
    pub fn run_at_home(&mut self) {
        let control = self.0.control();
        assert!(control.is_suspended(), "the fiber was suspended in a job");
        let donor = control
            .stack
            .donor()
            .expect("the fiber owns a thread's state");
        // SAFETY: the donor lives as long as its stack, and is parked while others have its fiber.
        unsafe {
            ThreadWords::at(control.base).belong_to_nobody();
            donor.as_ref().run_at_home();
        }
    }

    /// Whether a turn at home ended with the job suspended again, as at the end of a section in which it had been asked to yield.
    pub fn is_suspended_at_home(&self) -> bool {
        let control = self.0.control();
        let Some(donor) = control.stack.donor() else {
            return false;
        };
        // SAFETY: the donor lives as long as its stack.
        !unsafe { donor.as_ref() }.is_at_home() && control.is_suspended()
    }

    /// Whether the last turn ended only so that the job goes on [at home](Self::run_at_home): see [`on_own_thread`](crate::on_own_thread). True once.
    #[inline]
    pub fn take_home_wish(&self) -> bool {
        let wish = &self.0.control().wants_home;
        wish.get() && wish.take()
    }

    /// How the turn [at home](Self::run_at_home) ended; `None` while it goes on. A panic of the body resumes here. The fiber must not be used otherwise before.
    pub fn turn_at_home(&mut self) -> Option<Turn<J>> {
        let control = self.0.control();
        let donor = control.stack.donor()?;
        // SAFETY: the donor lives as long as its stack.
        if unsafe { donor.as_ref() }.is_at_home() {
            return None;
        }
        Some(self.0.turned(control.left_at.get()))
    }

    /// The fiber, bound to the calling thread.
    #[inline]
    pub fn into_inner(self) -> Fiber<J> {
        self.0
    }

    /// As [`Fiber::run`].
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn run(&mut self, job: J, label: u64) -> Turn<J> {
        self.0.run(job, label)
    }

    /// As [`Fiber::resume`], but safe: by the conditions of [`Fiber::migratable`] a suspended job holds nothing that belongs to a thread.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn resume(&mut self) -> Turn<J> {
        // SAFETY: promised by the caller of `migratable`.
        unsafe { self.0.resume() }
    }

    /// As [`Fiber::take_held`].
    #[inline]
    pub fn take_held(&mut self) -> Option<Held> {
        self.0.take_held()
    }

    /// As [`Fiber::said_long`].
    #[inline]
    pub fn said_long(&self) -> bool {
        self.0.said_long()
    }

    /// As [`Fiber::take_saying`].
    #[inline]
    pub fn take_saying(&mut self) -> bool {
        self.0.take_saying()
    }

    /// As [`Fiber::asks`].
    #[inline]
    pub fn asks(&self) -> bool {
        self.0.asks()
    }

    /// As [`Fiber::answer`].
    #[inline]
    pub fn answer(&mut self, is_renewed: bool) {
        self.0.answer(is_renewed);
    }
}
