//! [`Mechanism::Signal`]: the scheduler sends the thread a signal, whose handler yields.
#![expect(unsafe_code, reason = "its constructor asks for a promise")]

use std::marker::PhantomData;

use crate::attached::Attached;
use crate::mechanism::{Asker, Mechanism, Preempter, Unavailable};
use crate::signal_handler::{HandlerStack, install};

/// [`Mechanism::Signal`].
#[derive(Debug)]
pub struct BySignal<'a> {
    thread: &'a Attached,
    tid: libc::pid_t,
    bound: PhantomData<*mut ()>,
}

impl<'a> BySignal<'a> {
    /// From now on the thread yields when it receives `SIGURG`, wherever it is in a fiber. Probes still work.
    ///
    /// # Safety
    /// A fiber can be suspended after any of its instructions. Code with state that other fibers or the thread share (the allocator, a
    /// lock, the standard library's thread-locals, standard output) must run inside [`NoPreempt`](crate::NoPreempt) sections:
    /// [`NoPreemptAlloc`](crate::NoPreemptAlloc), [`FiberMutex`](crate::FiberMutex). Code that computes on its own memory needs none.
    ///
    /// # Errors
    /// The program has another handler of the signal.
    pub unsafe fn new(thread: &'a Attached) -> Result<Self, Unavailable> {
        install(HandlerStack::Fiber).map_err(|why| Unavailable {
            mechanism: Mechanism::Signal,
            why,
        })?;
        Ok(BySignal {
            thread,
            // SAFETY: no arguments, no failure.
            tid: unsafe { libc::gettid() },
            bound: PhantomData,
        })
    }
}

impl Preempter for BySignal<'_> {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Signal
    }

    #[inline]
    fn begin(&self, epoch: u64, _: u64) {
        self.thread.begin(epoch);
    }

    fn asker(&self) -> Option<Asker> {
        Some(Asker {
            flag: self.thread.flag(),
            thread: Some(self.tid),
        })
    }
}
