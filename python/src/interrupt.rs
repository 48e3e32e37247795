//! Ctrl-C, progress, and work without the interpreter's lock.

use crate::errors::panicked;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the interpreter is asked for signals meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// How long the interpreter's end waits for runs of its daemon threads.
const LONGEST_END: Duration = Duration::from_secs(10);

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
    /// The end of one run, which also the cutoff that is given ends.
    pub(crate) fn of_run(given: Option<&Self>) -> RunFlags {
        let end = RunFlags {
            callers: given.map(|cutoff| Arc::clone(&cutoff.0)),
            ..RunFlags::default()
        };
        end.heed_caller();
        end
    }
}

/// The flags that end one run. Its caller may have given other runs the same cutoff, so a run has flags of its own.
#[derive(Clone, Default)]
pub(crate) struct RunFlags {
    /// No further request arrives.
    pub(crate) cutoff: Arc<AtomicBool>,
    /// No role of a policy in Python is asked any more.
    pub(crate) stopped: Arc<AtomicBool>,
    /// The interpreter's number of the thread that calls roles; 0 for none.
    thread: Arc<AtomicU64>,
    callers: Option<Arc<AtomicBool>>,
}

impl RunFlags {
    fn heed_caller(&self) {
        let is_cut = |callers: &Arc<AtomicBool>| callers.load(Ordering::Relaxed);
        if self.callers.as_ref().is_some_and(is_cut) {
            self.cutoff.store(true, Ordering::Relaxed);
        }
    }

    /// Does work that calls roles on this thread, which [`Self::stop`] then interrupts.
    pub(crate) fn on_this_thread<T>(&self, py: Python<'_>, work: impl FnOnce() -> T) -> T {
        let number = py.import("threading").and_then(|it| {
            let number = it.call_method0("get_ident")?;
            number.extract::<u64>()
        });
        self.thread.store(number.unwrap_or(0), Ordering::Relaxed);
        let done = work();
        self.thread.store(0, Ordering::Relaxed);
        done
    }

    /// Ends the run, and the Python code that a role may be in.
    fn stop(&self, py: Python<'_>) {
        self.stopped.store(true, Ordering::Relaxed);
        self.cutoff.store(true, Ordering::Relaxed);
        let thread = self.thread.load(Ordering::Relaxed);
        if thread != 0 {
            // Without ctypes, a role ends by itself.
            let _ = raise_in(py, thread);
        }
    }
}

/// Raises a KeyboardInterrupt in another thread's Python code.
fn raise_in(py: Python<'_>, thread: u64) -> PyResult<()> {
    let ctypes = py.import("ctypes")?;
    let raise = ctypes
        .getattr("pythonapi")?
        .getattr("PyThreadState_SetAsyncExc")?;
    let thread = ctypes.getattr("c_ulong")?.call1((thread,))?;
    let exception = py.get_type::<PyKeyboardInterrupt>();
    let exception = ctypes.getattr("py_object")?.call1((exception,))?;
    raise.call1((thread, exception)).map(drop)
}

/// The runs that go on. A thread that meets the interpreter's end in one would end the process by an abort.
struct Runs {
    is_ending: bool,
    /// With the process, since a forked child has none of its parent's runs.
    going: Vec<(u32, RunFlags)>,
}

static RUNS: Mutex<Runs> = Mutex::new(Runs {
    is_ending: false,
    going: Vec::new(),
});

fn runs() -> std::sync::MutexGuard<'static, Runs> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run among those that go on, until it is dropped.
struct Going(RunFlags);

impl Going {
    fn new(py: Python<'_>, end: &RunFlags) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        let is_main = main.eq(threading.call_method0("get_ident")?)?;
        let mut runs = runs();
        if runs.is_ending && !is_main {
            return Err(PyRuntimeError::new_err("the interpreter is ending"));
        }
        runs.going.push((std::process::id(), end.clone()));
        Ok(Self(end.clone()))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let is_mine = |end: &RunFlags| Arc::ptr_eq(&end.cutoff, &self.0.cutoff);
        runs().going.retain(|(_, end)| !is_mine(end));
    }
}

/// Ends the runs of daemon threads before the interpreter ends, and waits for their threads.
#[pyfunction]
pub(crate) fn end_runs(py: Python<'_>) {
    let process = std::process::id();
    let going = || -> Vec<RunFlags> {
        let runs = runs();
        let mine = runs.going.iter().filter(|(of, _)| *of == process);
        mine.map(|(_, end)| end.clone()).collect()
    };
    runs().is_ending = true;
    for end in going() {
        end.stop(py);
    }
    let begun = Instant::now();
    while !going().is_empty() && begun.elapsed() < LONGEST_END {
        py.detach(|| std::thread::sleep(Duration::from_millis(2)));
    }
}

/// What work tells while it goes on.
pub(crate) struct Teller {
    told: Sender<(u64, u64)>,
}

impl Teller {
    /// Tells of runs that are done and of more that are to do.
    pub(crate) fn tell(&self, done: u64, more: u64) {
        // The receiver outlives the work.
        let _ = self.told.send((done, more));
    }
}

/// Does the work on a thread of its own without the interpreter's lock, calls `progress` with the runs done and those that came to be done, and ends the
/// work on a signal (Ctrl-C), whose exception it gives. A panic becomes an exception.
pub(crate) fn apart<T: Send>(
    py: Python<'_>,
    end: &RunFlags,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Teller) -> T + Send,
) -> PyResult<T> {
    let _going = Going::new(py, end)?;
    let (told, heard) = mpsc::channel();
    let teller = Teller { told };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || catch_unwind(AssertUnwindSafe(|| work(&teller))));
        let heard = Mutex::new(heard);
        let mut stopped = Ok(());
        loop {
            let next = py.detach(|| heard.lock().expect("no other").recv_timeout(LOOK));
            let told = match next {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => None,
                Ok(told) => Some(told),
            };
            end.heed_caller();
            if stopped.is_ok() {
                stopped = hear(py, progress, told);
                if stopped.is_err() {
                    end.stop(py);
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
