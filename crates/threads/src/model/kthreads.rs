//! Kthreads for tests. The library's locks, condition variables, timed waits and joins run on them unchanged.
#![expect(unsafe_code, reason = "gives a fiber's place to a thread of loom")]

use headway_fiber::Stacks;
use loom::sync::Arc;
use loom::thread;

use super::current;
use crate::head::{Uthread, UthreadHead};
use crate::join::{JoinHandle, arm, end};
use crate::suspending::{ModelRuntime, ModelUthread, block, model_of, ready_in_section};

/// Kthreads, and the threads that they run. When the last of them is gone, every thread must have ended and its fiber be free.
pub struct ModelKthreads {
    shared: Arc<ModelRuntime>,
}

impl ModelKthreads {
    /// This many kthreads.
    pub fn new(kthreads: usize) -> ModelKthreads {
        let shared = ModelRuntime::default();
        shared.queue.lock().unwrap().idle = kthreads;
        ModelKthreads {
            shared: Arc::new(shared),
        }
    }

    /// Starts a thread, which runs once it has a kthread.
    pub fn spawn<T: Send + 'static>(&self, body: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
        let (thread, handle) = self.make();
        self.start(thread, body);
        handle
    }

    /// As [`spawn`](ModelKthreads::spawn), without a handle: fewer interleavings.
    pub fn detach(&self, body: impl FnOnce() + 'static) {
        let (thread, handle) = self.make();
        drop::<JoinHandle<()>>(handle);
        self.start(thread, body);
    }

    /// Fires the timers of the waits so far, whatever their times.
    pub fn fire_timers(&self) {
        while let Some(thread) = self.shared.timers.pop_due(u64::MAX - 1) {
            ready_in_section(thread);
        }
    }

    fn make<T: Send>(&self) -> (Uthread, JoinHandle<T>) {
        let stack = Stacks::new(headway_fiber::MIN_STACK_BYTES, 0).and_then(|one| one.take());
        let stack = stack.expect("there is memory for a stack");
        let thread = Uthread::new(stack, UthreadHead::new(std::ptr::null()));
        let model = Box::new(ModelUthread::new(thread, &raw const *self.shared));
        thread.head().kthread.set((&raw const *model).cast());
        self.shared.threads.lock().unwrap().push(model);
        // SAFETY: free. A thread of loom runs another body, and uses the place for its result.
        let handle = unsafe { arm(thread, || -> T { unreachable!("a model runs no fiber") }) };
        (thread, handle)
    }

    fn start<T: Send + 'static>(&self, thread: Uthread, body: impl FnOnce() -> T + 'static) {
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            current::set(Some(thread.word()));
            block(thread);
            let result = body();
            // SAFETY: the fiber's own body does not run.
            let (section, next) = unsafe { end(thread, Ok(result)) };
            drop(section);
            current::set(None);
            model_of(thread).state.lock().unwrap().ended = true;
            shared.run_next(next);
        });
        ready_in_section(thread);
    }
}
