//! A cell whose readers write to no shared cache line: read-copy-update (RCU).
#![expect(
    unsafe_code,
    reason = "readers follow a pointer whose value a writer drops when they are gone"
)]

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

use headway_fiber::NoPreempt;
use headway_sync::barrier;

use crate::current::{assert_not_reading, kthread_of};
use crate::head::Uthread;
use crate::kernel::{KthreadRunner, running_runtimes};
use crate::mutex::Mutex;
use crate::reads::OutsideReaders;
use crate::schedule::yield_now;

/// A value that is read often and replaced seldom: a routing table, settings.
///
/// A read costs a few instructions on the reader's own cache lines, however many cores read. A writer publishes a new value, waits until
/// every read of the old one has ended, and gets the old one back.
///
/// ```
/// use headway_threads::{ReadCell, Runtime, spawn};
/// use std::sync::Arc;
///
/// let limit = Arc::new(ReadCell::new(10));
/// let runtime = Runtime::builder().start()?;
/// runtime.run({
///     let limit = Arc::clone(&limit);
///     move || {
///         let reader = Arc::clone(&limit);
///         let reader = spawn(move || reader.read(|limit| *limit));
///         limit.replace(20);
///         assert_eq!(reader.join().unwrap(), 20);
///     }
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Threads of the operating system may read and write it too; such readers share a counter.
pub struct ReadCell<T> {
    current: AtomicPtr<T>,
    outside: OutsideReaders,
    /// One writer at a time.
    writing: Mutex<()>,
}

// SAFETY: a writer in any thread gets the value.
unsafe impl<T: Send> Send for ReadCell<T> {}
// SAFETY: threads share references to the value, and a writer in any thread gets it.
unsafe impl<T: Send + Sync> Sync for ReadCell<T> {}

impl<T> ReadCell<T> {
    /// A cell with this value.
    pub fn new(value: T) -> Self {
        ReadCell {
            current: AtomicPtr::new(Box::into_raw(Box::new(value))),
            outside: OutsideReaders::default(),
            writing: Mutex::new(()),
        }
    }

    /// Calls `access` with the value, which stays until it returns. The thread is not interrupted meanwhile, so keep it short.
    ///
    /// # Panics
    /// `access` calls a function of this crate that waits.
    #[inline]
    pub fn read<R>(&self, access: impl FnOnce(&T) -> R) -> R {
        let _section = NoPreempt::enter();
        let Some(me) = Uthread::current() else {
            return self.read_outside(access);
        };
        // SAFETY: the thread that runs, in the section.
        let kthread = unsafe { kthread_of(me) };
        kthread.reads.open();
        barrier::light();
        let _read = KthreadRead { kthread };
        // SAFETY: a writer that replaces the pointer from now on waits for the end of this read.
        access(unsafe { &*self.current.load(Ordering::Acquire) })
    }

    #[cold]
    fn read_outside<R>(&self, access: impl FnOnce(&T) -> R) -> R {
        let _read = OutsideRead {
            readers: &self.outside,
            phase: self.outside.begin(),
        };
        // SAFETY: as in `read`.
        access(unsafe { &*self.current.load(Ordering::SeqCst) })
    }

    /// Replaces the value. Returns the old one, once every read of it has ended.
    ///
    /// # Panics
    /// The calling thread reads a cell.
    pub fn replace(&self, value: T) -> T {
        self.update(|_| value)
    }

    /// Replaces the value by one that is made of it. Writers take turns, so no update is lost. Returns the old one, once every read of it
    /// has ended.
    ///
    /// # Panics
    /// The calling thread reads a cell. A panic of `change` leaves the value.
    pub fn update(&self, change: impl FnOnce(&T) -> T) -> T {
        assert_not_reading();
        let _writing = self.writing.lock();
        // SAFETY: only a writer drops the value, which is this one.
        let value = change(unsafe { &*self.current.load(Ordering::Acquire) });
        let value = Box::into_raw(Box::new(value));
        let old = self.current.swap(value, Ordering::SeqCst);
        barrier::heavy();
        wait_for_reads();
        let mut looks = 0;
        self.outside.wait(|| let_read(&mut looks));
        // SAFETY: no new reader finds the pointer, and every read that had found it has ended.
        *unsafe { Box::from_raw(old) }
    }

    /// The value of a cell that is borrowed exclusively.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the cell owns it, and no reader is left.
        unsafe { &mut **self.current.get_mut() }
    }
}

/// Waits for the reads that were open in any kthread of the process. The caller has replaced a pointer, and made that visible.
fn wait_for_reads() {
    for runtime in running_runtimes() {
        for kthread in runtime.kthreads() {
            let Some(seen) = kthread.reads.look() else {
                continue;
            };
            let mut looks = 0;
            while !kthread.reads.has_ended(seen) {
                let_read(&mut looks);
            }
        }
    }
}

/// A pause between two looks at a reader. It lets other threads run, and at times other kernel threads, since the reader may wait for this core.
fn let_read(looks: &mut u32) {
    yield_now();
    *looks += 1;
    if looks.is_multiple_of(64) {
        thread::yield_now();
    }
}

/// A read in a thread of a runtime. It ends when this is dropped, also by a panic.
struct KthreadRead<'a> {
    kthread: &'a KthreadRunner,
}

impl Drop for KthreadRead<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.kthread.reads.close();
    }
}

struct OutsideRead<'a> {
    readers: &'a OutsideReaders,
    phase: usize,
}

impl Drop for OutsideRead<'_> {
    fn drop(&mut self) {
        self.readers.end(self.phase);
    }
}

impl<T> Drop for ReadCell<T> {
    fn drop(&mut self) {
        let value = std::mem::replace(self.current.get_mut(), ptr::null_mut());
        // SAFETY: the cell owns it, and no reader is left.
        drop(unsafe { Box::from_raw(value) });
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadCell<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|value| out.debug_tuple("ReadCell").field(value).finish())
    }
}
