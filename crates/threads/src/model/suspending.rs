//! How a thread leaves its kthread to the next one, and how a thread becomes ready, for loom, which follows no switch of stacks. A thread of loom stands for
//! each thread of the user: it runs while it has a kthread, and is blocked otherwise.
#![expect(unsafe_code, reason = "threads are addresses")]

use std::collections::VecDeque;

use headway_fiber::NoPreempt;
use loom::sync::{Condvar, Mutex};

use crate::head::Uthread;
use crate::timers::Timers;

/// The kthreads of a model, and the threads that they run.
#[derive(Default)]
pub(crate) struct ModelRuntime {
    pub(crate) queue: Mutex<ModelQueue>,
    pub(crate) timers: Timers,
    pub(crate) threads: Mutex<Vec<Box<ModelUthread>>>,
}

#[derive(Default)]
pub(crate) struct ModelQueue {
    pub(crate) ready: VecDeque<Uthread>,
    /// Kthreads that run no thread.
    pub(crate) idle: usize,
}

/// What the model knows of a thread.
pub(crate) struct ModelUthread {
    pub(crate) thread: Uthread,
    pub(crate) runtime: *const ModelRuntime,
    pub(crate) state: Mutex<ModelState>,
    pub(crate) changed: Condvar,
}

#[derive(Default)]
pub(crate) struct ModelState {
    /// Whether it was resumed and has not noticed yet.
    resumed: bool,
    pub(crate) ended: bool,
    freed: bool,
}

impl ModelUthread {
    pub(crate) fn new(thread: Uthread, runtime: *const ModelRuntime) -> ModelUthread {
        ModelUthread {
            thread,
            runtime,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }
}

impl ModelRuntime {
    fn next(&self) -> Option<Uthread> {
        self.queue.lock().unwrap().ready.pop_front()
    }

    /// Resumes the next thread on the kthread that the calling one leaves.
    pub(crate) fn run_next(&self, next: Option<Uthread>) {
        let mut queue = self.queue.lock().unwrap();
        match next.or_else(|| queue.ready.pop_front()) {
            Some(next) => resume(next),
            None => queue.idle += 1,
        }
    }
}

impl Drop for ModelRuntime {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap());
        for model in threads {
            let state = model.state.lock().unwrap();
            assert!(state.ended && state.freed, "a fiber is lost");
            // SAFETY: its thread has ended, and its handle is gone.
            drop(unsafe { model.thread.0.destroy() });
        }
    }
}

pub(crate) fn model_of<'a>(thread: Uthread) -> &'a ModelUthread {
    // SAFETY: `make` put it there, and it lives as long as the thread's runtime.
    unsafe { &*thread.head().kthread.get().cast() }
}

fn runtime_of<'a>(thread: Uthread) -> &'a ModelRuntime {
    // SAFETY: each thread of loom that stands for a thread keeps its runtime.
    unsafe { &*model_of(thread).runtime }
}

fn resume(thread: Uthread) {
    let model = model_of(thread);
    let mut state = model.state.lock().unwrap();
    assert!(!state.resumed && !state.ended, "made ready in vain");
    state.resumed = true;
    model.changed.notify_one();
}

pub(crate) fn block(thread: Uthread) {
    let model = model_of(thread);
    let mut state = model.state.lock().unwrap();
    while !state.resumed {
        state = model.changed.wait(state).unwrap();
    }
    state.resumed = false;
}

/// Makes a thread ready: it runs at once on an idle kthread, else in its turn.
pub(crate) fn ready_in_section(thread: Uthread) {
    let mut queue = runtime_of(thread).queue.lock().unwrap();
    if queue.idle > 0 {
        queue.idle -= 1;
        resume(thread);
    } else {
        queue.ready.push_back(thread);
    }
}

/// Keeps the fiber of a thread that has ended.
pub(crate) fn free(thread: Uthread) {
    let mut state = model_of(thread).state.lock().unwrap();
    assert!(!std::mem::replace(&mut state.freed, true), "freed twice");
}

/// As [`free`], for the running thread.
///
/// # Safety
/// None: it is the interface of the function that this replaces.
pub(crate) unsafe fn free_running(me: Uthread) {
    free(me);
}

/// The running thread on its way to wait.
pub(crate) struct Suspending {
    me: Uthread,
    _section: NoPreempt,
}

impl Suspending {
    pub(crate) fn begin() -> Option<Suspending> {
        Some(Suspending {
            me: Uthread::current()?,
            _section: NoPreempt::enter(),
        })
    }

    pub(crate) fn me(&self) -> Uthread {
        self.me
    }

    pub(crate) fn wait(self) {
        self.wait_after(|_| {});
    }

    pub(crate) fn wait_after(self, last: impl FnOnce(Option<Uthread>)) {
        let runtime = runtime_of(self.me);
        let next = runtime.next();
        last(next);
        runtime.run_next(next);
        block(self.me);
    }

    pub(crate) fn yields(self) {
        let runtime = runtime_of(self.me);
        runtime.queue.lock().unwrap().ready.push_back(self.me);
        runtime.run_next(None);
        block(self.me);
    }

    /// # Safety
    /// None: as [`free_running`].
    pub(crate) unsafe fn timers<'a>(&self) -> &'a Timers {
        &runtime_of(self.me).timers
    }

    /// Time stands still.
    pub(crate) fn now_ns(&self) -> u64 {
        0
    }
}
