//! A model of fibers for loom, for the tests of the lock: each fiber is a thread of the model, and the fibers of one worker take turns.
//!
//! loom follows neither a switch of stacks nor words in assembly. So this models their contract, as far as the lock uses it: a fiber runs while
//! it holds its worker, gives the worker away only where it may be suspended, and counts its no-preempt sections.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex};

/// A thread that runs one of its fibers at a time.
#[derive(Debug, Default)]
pub struct ModelWorker {
    busy: Mutex<bool>,
    free: Condvar,
    asked: AtomicBool,
}

impl ModelWorker {
    /// Asks the running fiber to yield.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    fn take(&self) {
        let mut busy = self.busy.lock().unwrap();
        while *busy {
            busy = self.free.wait(busy).unwrap();
        }
        *busy = true;
    }

    fn give(&self) {
        *self.busy.lock().unwrap() = false;
        self.free.notify_all();
    }
}

/// A fiber's state. Real sections belong to the thread, which has none open when it changes fibers.
struct ModelFiber {
    worker: Option<Arc<ModelWorker>>,
    sections: Cell<u32>,
    deferred: Cell<bool>,
    /// Whether its sections prevent its suspension; false in a negative control.
    honours_sections: bool,
}

loom::thread_local! {
    static CURRENT: RefCell<Rc<ModelFiber>> = RefCell::new(Rc::new(ModelFiber {
        worker: None,
        sections: Cell::new(0),
        deferred: Cell::new(false),
        honours_sections: true,
    }));
}

fn current() -> Rc<ModelFiber> {
    CURRENT.with(|current| Rc::clone(&current.borrow()))
}

/// Makes this thread of the model a fiber of the worker, and runs `job` in it.
pub fn run(worker: &Arc<ModelWorker>, honours_sections: bool, job: impl FnOnce()) {
    let fiber = ModelFiber {
        worker: Some(Arc::clone(worker)),
        sections: Cell::new(0),
        deferred: Cell::new(false),
        honours_sections,
    };
    CURRENT.with(|current| *current.borrow_mut() = Rc::new(fiber));
    worker.take();
    job();
    worker.give();
}

/// A probe: yields if the worker was asked to. In a section, the fiber yields at the section's end.
pub fn probe() {
    let fiber = current();
    let Some(worker) = &fiber.worker else { return };
    if worker.asked.swap(false, Ordering::Acquire) {
        if fiber.sections.get() > 0 && fiber.honours_sections {
            fiber.deferred.set(true);
        } else {
            suspend(&fiber);
        }
    }
}

fn suspend(fiber: &ModelFiber) {
    assert!(
        fiber.sections.get() == 0 || !fiber.honours_sections,
        "suspended in a section"
    );
    if let Some(worker) = &fiber.worker {
        worker.give();
        loom::thread::yield_now();
        worker.take();
    }
}

pub(crate) fn in_fiber() -> bool {
    current().worker.is_some()
}

pub(crate) fn no_preempt() -> u32 {
    current().sections.get()
}

pub(crate) fn yield_now() {
    suspend(&current());
}

/// As the real section.
pub(crate) struct NoPreempt {
    bound: PhantomData<*mut ()>,
}

impl NoPreempt {
    pub(crate) fn enter() -> Self {
        let fiber = current();
        fiber.sections.set(fiber.sections.get() + 1);
        NoPreempt { bound: PhantomData }
    }
}

impl Drop for NoPreempt {
    fn drop(&mut self) {
        let fiber = current();
        fiber.sections.set(fiber.sections.get() - 1);
        if fiber.sections.get() == 0 && fiber.deferred.take() {
            suspend(&fiber);
        }
    }
}
