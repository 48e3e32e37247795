//! The threads of donors, for a signal's handler: it must not read the record of a donor that may have ended.
#![expect(unsafe_code, reason = "a list without a lock, for a signal's handler")]

use std::ffi::c_int;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use headway_sync::Guarded;

/// A donor's thread.
#[derive(Debug, Default)]
pub(crate) struct DonorThread {
    /// The base of its thread-local variables; 0 once it has ended.
    base: AtomicUsize,
    /// Its number in the kernel.
    thread: AtomicI32,
    next: AtomicPtr<DonorThread>,
}

/// All that there ever were; none is freed.
static FIRST: AtomicPtr<DonorThread> = AtomicPtr::new(ptr::null_mut());

/// Those that have ended.
static ENDED: LazyLock<Guarded<Vec<&'static DonorThread>>> = LazyLock::new(Guarded::default);

impl DonorThread {
    /// Notes the calling thread, whose base this is.
    pub(crate) fn note(base: usize) -> &'static DonorThread {
        let mut ended = ENDED.lock();
        let noted = ended.pop().unwrap_or_else(|| {
            // The lock is held, so nobody else changes the first one.
            let new: &'static DonorThread = Box::leak(Box::new(DonorThread {
                next: AtomicPtr::new(FIRST.load(Ordering::Relaxed)),
                ..DonorThread::default()
            }));
            FIRST.store(ptr::from_ref(new).cast_mut(), Ordering::Release);
            new
        });
        noted.thread.store(thread_number(), Ordering::Relaxed);
        noted.base.store(base, Ordering::Release);
        noted
    }

    /// The thread ends.
    pub(crate) fn forget(&'static self) {
        self.base.store(0, Ordering::Release);
        ENDED.lock().push(self);
    }

    /// The number in the kernel of the donor's thread with this base. Handlers may call this.
    pub(crate) fn with_base(base: usize) -> Option<c_int> {
        let mut at = FIRST.load(Ordering::Acquire);
        // SAFETY: null, or one that is never freed.
        while let Some(donor) = unsafe { at.as_ref() } {
            if donor.base.load(Ordering::Acquire) == base {
                return Some(donor.thread.load(Ordering::Relaxed));
            }
            at = donor.next.load(Ordering::Relaxed);
        }
        None
    }
}

/// The calling thread's number in the kernel.
pub(crate) fn thread_number() -> c_int {
    // SAFETY: always valid to ask. The C library's function of the name may answer from the record that is found by the base.
    unsafe { libc::syscall(libc::SYS_gettid) as c_int }
}
