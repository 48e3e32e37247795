//! The threads of donors, for a signal's handler: it must not read the record of a donor that may have ended.
#![expect(unsafe_code, reason = "a list without a lock, for a signal's handler")]

use std::ffi::c_int;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use headway_sync::Guarded;

use crate::kernel_credentials::KernelCredentials;

/// A donor's thread.
#[derive(Debug, Default)]
pub(crate) struct DonorThread {
    /// The base of its thread-local variables; 0 once it has ended.
    base: AtomicUsize,
    /// Its number in the kernel.
    thread: AtomicI32,
    /// The credentials that it is to take over; null for none.
    takes: AtomicPtr<KernelCredentials>,
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

    /// Its number in the kernel.
    pub(crate) fn thread(&self) -> c_int {
        self.thread.load(Ordering::Relaxed)
    }

    /// Sends the thread a signal, at which it is to take these credentials over, and waits until it has tried. Whether it has them.
    pub(crate) fn give(&self, credentials: &KernelCredentials, signal: c_int) -> bool {
        let credentials_at = ptr::from_ref(credentials).cast_mut();
        self.takes.store(credentials_at, Ordering::Release);
        queue_signal(self.thread(), signal) && credentials.are_taken()
    }

    /// The credentials that the calling thread, this one, is to take over, once.
    pub(crate) fn is_given(&self) -> Option<NonNull<KernelCredentials>> {
        NonNull::new(self.takes.swap(ptr::null_mut(), Ordering::Acquire))
    }

    /// The donor's thread with this base. Handlers may call this.
    pub(crate) fn with_base(base: usize) -> Option<&'static DonorThread> {
        let mut at = FIRST.load(Ordering::Acquire);
        // SAFETY: null, or one that is never freed.
        while let Some(donor) = unsafe { at.as_ref() } {
            if donor.base.load(Ordering::Acquire) == base {
                return Some(donor);
            }
            at = donor.next.load(Ordering::Relaxed);
        }
        None
    }
}

/// Sends a thread of this process a signal that the C library takes for none of its own (`SI_QUEUE`).
fn queue_signal(thread: c_int, signal: c_int) -> bool {
    // SAFETY: a zeroed structure is valid, and so is its address during the call.
    unsafe {
        let mut about: libc::siginfo_t = mem::zeroed();
        about.si_signo = signal;
        about.si_code = libc::SI_QUEUE;
        let process = libc::getpid();
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            process,
            thread,
            signal,
            &raw const about,
        ) == 0
    }
}

/// The calling thread's number in the kernel.
pub(crate) fn thread_number() -> c_int {
    // SAFETY: always valid to ask. The C library's function of the name may answer from the record that is found by the base.
    unsafe { libc::syscall(libc::SYS_gettid) as c_int }
}
