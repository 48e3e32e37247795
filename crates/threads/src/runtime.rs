//! A runtime: kthreads, and the threads that they run.
#![expect(unsafe_code, reason = "its constructor asks for a promise")]

use std::io::{self, Write as _};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use headway_fiber::report_thread_overflows;
use headway_kthread::{CoreSource, Standalone};
use headway_machine::thread::pin_current;
use headway_policy::host::Patience;
use headway_sync::atomic::Ordering;

use crate::head::Uthread;
use crate::join::{JoinHandle, spawn_from_outside, wake_joiner};
use crate::kernel::RuntimeShared;
use crate::kthread_loop::run_kthread;
use crate::packets::PacketPoll;

/// The promise that threads tolerate being resumed on another kthread than the one that suspended them.
///
/// Rust's compiler and `std` assume that a thread stays on one kernel thread. A thread of a runtime with several kthreads may change kthreads in any call
/// that waits, and at any probe ([`RuntimeBuilder::slice`]).
#[derive(Clone, Copy, Debug)]
pub struct Migration(());

impl Migration {
    /// Makes the promise.
    ///
    /// # Safety
    /// No thread of the runtime may call into this crate, directly or indirectly, or meet a probe, between two uses of a thread-local variable of `std`
    /// (`thread_local!`) in one function, in particular inside [`LocalKey::with`](std::thread::LocalKey::with). No value that is not `Send` and that belongs
    /// to the kernel thread (a guard of a lock of `std`, an `Rc` whose clone a thread-local variable keeps) lives across such a call or probe.
    /// [`uthread_local!`](crate::uthread_local) declares variables that may be used everywhere.
    pub const unsafe fn allow() -> Migration {
        Migration(())
    }
}

/// The most kthreads of a runtime.
pub const MAX_KTHREADS: usize = 256;

/// Who grants the kthreads their cores.
#[derive(Clone)]
enum KthreadSource {
    /// So many kthreads have a core whenever they want one. They are made at the start, which refuses a number that is out of range.
    Alone(usize),
    /// An arbiter.
    Arbiter(Arc<dyn CoreSource>),
}

impl KthreadSource {
    fn into_source(self) -> io::Result<Arc<dyn CoreSource>> {
        let kthreads = match &self {
            Self::Alone(kthreads) => *kthreads,
            Self::Arbiter(source) => source.kthreads(),
        };
        if !(1..=MAX_KTHREADS).contains(&kthreads) {
            let words = format!(
                "a runtime has 1 to {MAX_KTHREADS} kthreads, not {kthreads}; choose at most one per core"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        Ok(match self {
            Self::Alone(kthreads) => Arc::new(Standalone::new(kthreads)),
            Self::Arbiter(source) => source,
        })
    }
}

/// The options of a [`Runtime`].
#[derive(Clone)]
pub struct RuntimeBuilder {
    source: KthreadSource,
    stack_bytes: usize,
    patience: Patience,
    slice: Duration,
    cores: Vec<usize>,
    packets: Option<Arc<dyn PacketPoll>>,
}

impl RuntimeBuilder {
    /// Sets the number of kthreads, 1 to [`MAX_KTHREADS`], each of which has a core whenever it wants one. The default, one, needs no promise.
    #[must_use]
    pub fn kthreads(mut self, kthreads: usize, _: Migration) -> Self {
        self.source = KthreadSource::Alone(kthreads.max(1));
        self
    }

    /// Uses the kthreads of an application whose cores come from an arbiter.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn CoreSource>, _: Migration) -> Self {
        self.source = KthreadSource::Arbiter(source);
        self
    }

    /// Usable bytes of each thread's stack, 64 KiB by default. A thread that overflows it ends the process, which says so on standard error.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes;
        self
    }

    /// The time that a kthread looks for work before it gives its core back.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// The time a thread runs before its kthread checks whether it must yield, 10 µs by default. A thread that computes for a whole slice while others wait
    /// goes to the end of the run queue at its next probe: one that the compiler placed, or [`checkpoint`](headway_fiber::checkpoint()). Code without probes
    /// is not interrupted, except by an arbiter's signal ([`STOP_AT_SIGNAL`](crate::STOP_AT_SIGNAL)).
    #[must_use]
    pub fn slice(mut self, slice: Duration) -> Self {
        self.slice = slice;
        self
    }

    /// The kthreads look for packets of this stack. Their source must wake one when a packet arrives, as a host's daemon does.
    #[must_use]
    pub fn packets(mut self, packets: Arc<dyn PacketPoll>) -> Self {
        self.packets = Some(packets);
        self
    }

    /// Pins the kthreads to these cores, in turn.
    #[must_use]
    pub fn pin(mut self, cores: &[usize]) -> Self {
        self.cores = cores.to_vec();
        self
    }

    /// Starts the kthreads.
    ///
    /// # Errors
    /// The operating system refuses a thread, which the error names, or memory. `InvalidInput`: the number of kthreads is out of range.
    pub fn start(self) -> io::Result<Runtime> {
        // Refused, an overflow is what it is without: a segmentation fault.
        let _ = report_thread_overflows();
        let shared = RuntimeShared::new(
            self.source.into_source()?,
            self.patience,
            self.slice,
            self.stack_bytes,
            self.packets,
        )?;
        let mut runtime = Runtime {
            shared,
            kthreads: Vec::new(),
        };
        for index in 0..runtime.shared.kthreads().len() {
            let shared = Arc::clone(&runtime.shared);
            let core = (!self.cores.is_empty()).then(|| self.cores[index % self.cores.len()]);
            let name = format!("kthread-{index}");
            let kthread = thread::Builder::new().name(name.clone());
            let spawned = kthread.spawn(move || {
                if let Some(core) = core
                    && let Err(error) = pin_current(core)
                {
                    // Nobody is left to be told that standard error is closed.
                    let _ = writeln!(io::stderr(), "headway: a kthread stays unpinned: {error}");
                }
                run_kthread(&shared.kthreads()[index]);
            });
            runtime.kthreads.push(spawned.map_err(|error| {
                let words = format!("cannot start thread {name}: {error}; see `ulimit -u`");
                io::Error::new(error.kind(), words)
            })?);
        }
        Ok(runtime)
    }
}

/// The number of kthreads.
///
/// # Dropping
/// Running threads continue to their next scheduling point, and the kthreads end. Threads that have not ended by then never resume: they are abandoned, with
/// all values on their stacks, as at the end of a process. A waiter outside gets [`Abandoned`](crate::Abandoned) for such a thread. Handles of ended threads
/// stay valid.
pub struct Runtime {
    shared: Arc<RuntimeShared>,
    kthreads: Vec<thread::JoinHandle<()>>,
}

impl Runtime {
    /// One kthread, stacks of 64 KiB.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            source: KthreadSource::Alone(1),
            stack_bytes: 64 << 10,
            patience: Patience::default(),
            slice: Duration::from_micros(10),
            cores: Vec::new(),
            packets: None,
        }
    }

    /// Starts a thread from outside. Threads of the runtime call [`spawn`](crate::spawn), which is faster.
    ///
    /// # Panics
    /// A stack for it cannot be mapped, as for [`try_spawn`](crate::try_spawn).
    pub fn spawn<T: Send + 'static>(
        &self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        // SAFETY: it borrows nothing.
        unsafe { spawn_from_outside(&self.shared, body) }.expect("a thread gets a stack")
    }

    /// Whether the caller is a thread of this runtime, which must not drop it.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        Uthread::current().is_some_and(|me| me.head().shared == (&raw const *self.shared).cast())
    }

    /// Runs `body` in a thread of the runtime, and waits for its result. It resumes a panic of the thread here.
    ///
    /// # Panics
    /// A stack for it cannot be mapped, as for [`try_spawn`](crate::try_spawn).
    pub fn run<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        // SAFETY: the thread ends before this returns: the runtime, which is borrowed, does not end first.
        let thread = unsafe { spawn_from_outside(&self.shared, body) };
        let ended = thread.expect("a thread gets a stack").join();
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let is_inside = self.is_inside();
        assert!(
            !is_inside,
            "a runtime is dropped outside of its own threads"
        );
        for kthread in self.shared.kthreads() {
            kthread.closing.store(true, Ordering::Release);
        }
        self.shared.source.close();
        for kthread in self.kthreads.drain(..) {
            let _ = kthread.join();
        }
        self.shared.close().into_iter().for_each(wake_joiner);
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Runtime")
            .field("kthreads", &self.kthreads.len())
            .finish_non_exhaustive()
    }
}
