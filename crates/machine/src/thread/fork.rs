//! What a handler's `fork` leaves in the child: a plain process of one thread, which neither owns the parent's sockets nor goes on as a worker.
//!
//! POSIX copies the calling thread alone (`fork(3p)`). If that thread went on as a worker, it would answer what the parent answers too, and hold
//! the port when the parent has ended.
#![expect(unsafe_code, reason = "pthread_atfork, _exit and close")]

use std::cell::Cell;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

thread_local! {
    /// Without a destructor, so that it may be used until the process ends.
    static ROLE: Cell<Role> = const { Cell::new(Role::Plain) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Plain,
    /// A worker, or a thread that lends one its state: it calls code of others, which may fork.
    Worker,
}

/// Whether this process was forked by a worker. Not a thread's: the code that forked may have run with another's state.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Says that the calling thread is a worker: in a process that its handlers fork, it goes on until the handler returns, and no longer.
pub fn is_worker() {
    watch();
    ROLE.set(Role::Worker);
}

/// Whether a worker's handler forked this process, and the caller is the thread that did: the only one that the parent had. Others the child has made.
#[inline]
pub fn forked_here() -> bool {
    IS_CHILD.load(Ordering::Relaxed) && is_first_thread()
}

/// Whether the caller is the thread with which its process began: in a child, the one that forked it. Its thread-local variables stay until the process ends.
#[cold]
#[must_use]
pub fn is_first_thread() -> bool {
    // SAFETY: always valid to ask.
    unsafe { libc::gettid() == libc::getpid() }
}

/// Ends the process if it was [`forked_here`]: the handler that did so has returned. Nothing that the parent registered for its end runs.
#[inline]
pub fn end_child() {
    if forked_here() {
        // SAFETY: ends the process. What threads the child has made end with it, as with any process whose `main` returns.
        unsafe { libc::_exit(0) };
    }
}

/// The forks that led to this process since it, or the program that it was forked from, asked first. Whoever has threads keeps the number: another one
/// says that the threads are not in this process.
#[inline]
pub fn forks() -> u64 {
    watch();
    FORKS.load(Ordering::Relaxed)
}

static FORKS: AtomicU64 = AtomicU64::new(0);

/// A descriptor that a forked child does not keep: it is closed there at once, whoever forks.
#[derive(Debug)]
pub struct ParentsOnly<T> {
    /// Dropped first: then nobody closes what may have become another's.
    _place: NotedPlace,
    descriptor: T,
}

impl<T: AsRawFd> ParentsOnly<T> {
    /// Takes a descriptor. The owner must not exchange the file below it.
    pub fn new(descriptor: T) -> Self {
        watch();
        let place = NotedPlace::of(descriptor.as_raw_fd());
        Self {
            _place: place,
            descriptor,
        }
    }
}

impl<T> Deref for ParentsOnly<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.descriptor
    }
}

impl<T: AsFd> AsFd for ParentsOnly<T> {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Where a descriptor is noted.
#[derive(Debug)]
struct NotedPlace(&'static AtomicI32);

impl NotedPlace {
    fn of(descriptor: RawFd) -> Self {
        let mut block = &NOTED;
        loop {
            for place in &block.places {
                let taken =
                    place.compare_exchange(NONE, descriptor, Ordering::AcqRel, Ordering::Relaxed);
                if taken.is_ok() {
                    return Self(place);
                }
            }
            block = block.next.get_or_init(|| Box::new(Block::new()));
        }
    }
}

impl Drop for NotedPlace {
    fn drop(&mut self) {
        self.0.store(NONE, Ordering::Release);
    }
}

const NONE: RawFd = -1;

/// Places for descriptors, never freed: the child reads them without a lock, since another thread may have held it.
struct Block {
    places: [AtomicI32; 62],
    next: OnceLock<Box<Block>>,
}

impl Block {
    const fn new() -> Self {
        Self {
            places: [const { AtomicI32::new(NONE) }; 62],
            next: OnceLock::new(),
        }
    }
}

static NOTED: Block = Block::new();

/// Asks the C library to tell the child of each fork.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function stays, and does what a child may do. Without memory for it forks go on as before.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Runs in the child, before `fork` returns there.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    if ROLE.get() == Role::Worker {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    let mut block = Some(&NOTED);
    while let Some(places) = block {
        for place in &places.places {
            let descriptor = place.swap(NONE, Ordering::Relaxed);
            if descriptor != NONE {
                // SAFETY: its owner is another thread's, which is not in this process, or ends with this process unused.
                unsafe { libc::close(descriptor) };
            }
        }
        block = places.next.get().map(|next| &**next);
    }
}
