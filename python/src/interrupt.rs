//! Ctrl-C, progress, and work without the interpreter's lock.

use crate::errors::panicked;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// How often the interpreter is asked for signals meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Ends the runs that were given it, in order: no further request arrives.
#[pyclass(frozen, module = "headway._native")]
#[derive(Default)]
pub(crate) struct Cutoff(Arc<AtomicBool>);

#[pymethods]
impl Cutoff {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends the runs.
    fn cut(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was called.
    #[getter]
    fn is_cut(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Cutoff {
    /// The flag that it raises, of a new one where none is given.
    pub(crate) fn flag(given: Option<&Self>) -> Arc<AtomicBool> {
        given.map_or_else(Arc::default, |cutoff| Arc::clone(&cutoff.0))
    }
}

/// What work tells while it goes on.
pub(crate) struct Teller {
    told: Sender<(u64, u64)>,
    cutoff: Arc<AtomicBool>,
}

/// The payload of a panic that ends work whose library has no other end.
struct CutOff;

impl Teller {
    /// Tells of runs that are done and of more that are to do.
    pub(crate) fn tell(&self, done: u64, more: u64) {
        // The receiver outlives the work.
        let _ = self.told.send((done, more));
    }

    /// Unwinds the work where it is cut off.
    pub(crate) fn end_if_cut_off(&self) {
        if self.cutoff.load(Ordering::Relaxed) {
            resume_unwind(Box::new(CutOff));
        }
    }
}

/// Does the work on a thread of its own without the interpreter's lock, calls `progress` with the runs done and those that came to be done, and ends the
/// work on a signal (Ctrl-C), whose exception it gives. A panic becomes an exception.
pub(crate) fn apart<T: Send>(
    py: Python<'_>,
    cutoff: &Arc<AtomicBool>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Teller) -> T + Send,
) -> PyResult<T> {
    let (told, heard) = mpsc::channel();
    let teller = Teller {
        told,
        cutoff: Arc::clone(cutoff),
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || catch_unwind(AssertUnwindSafe(|| work(&teller))));
        let heard = std::sync::Mutex::new(heard);
        let mut stopped = Ok(());
        loop {
            let next = py.detach(|| heard.lock().expect("no other").recv_timeout(LOOK));
            let told = match next {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => None,
                Ok(told) => Some(told),
            };
            if stopped.is_ok() {
                stopped = hear(py, progress, told);
                if stopped.is_err() {
                    cutoff.store(true, Ordering::Relaxed);
                }
            }
        }
        let done = py.detach(|| thread.join());
        stopped?;
        match done.and_then(|done| done) {
            Ok(done) => Ok(done),
            Err(payload) => Err(panicked(payload.as_ref())),
        }
    })
}

fn hear(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    told: Option<(u64, u64)>,
) -> PyResult<()> {
    if let (Some(progress), Some(told)) = (progress, told) {
        progress.call1(told)?;
    }
    py.check_signals()
}
