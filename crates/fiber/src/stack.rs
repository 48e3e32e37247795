//! Stacks with guard pages, kept for reuse: a new mapping costs as much time as hundreds of uses of a warm stack.
#![expect(unsafe_code, reason = "maps memory")]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::donor::{self, Donor};
use crate::mapping::{GUARD_BYTES, Mapping};
use crate::retired::retire;

/// The least usable bytes of a stack. A signal frame with AVX-512 state takes 3 KiB, a probe's slow path less than 1 KiB, and a printed panic
/// some more.
pub const MIN_STACK_BYTES: usize = 16 << 10;

/// The most usable bytes of a stack: 1 GiB. Thousands of them fit the address space, and no size overflows when the
/// guard is added to it.
pub const MAX_STACK_BYTES: usize = 1 << 30;

const PAGE_BYTES: usize = 4096;

/// Stacks begin at different distances from the end of a page. At equal distances their hot ends would share a few sets of the first-level
/// cache, which is indexed by the address within a page.
const COLOURS: usize = 8;
const COLOUR_BYTES: usize = PAGE_BYTES / COLOURS;

/// Memory for one fiber's frames. Unmapped when dropped; give it back to its [`Stacks`] instead.
///
/// A handle of one word. A larger one is copied in other pieces than it was written in, and each such read waits for the writes.
#[derive(Debug)]
pub struct Stack(NonNull<Mapping>);

// SAFETY: owns its mapping, as a box would.
unsafe impl Send for Stack {}
// SAFETY: a shared reference gives away addresses only.
unsafe impl Sync for Stack {}

impl Stack {
    fn map(bytes: usize, colour: usize) -> io::Result<Stack> {
        let mapped_bytes = GUARD_BYTES + bytes;
        // SAFETY: a new anonymous mapping touches no existing memory.
        let mapping = unsafe {
            let flags =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), mapped_bytes, libc::PROT_NONE, flags, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: inside the mapping just made, and unmapped where it cannot be used.
        unsafe {
            let usable = mapping.byte_add(GUARD_BYTES);
            if libc::mprotect(usable, bytes, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                let error = io::Error::last_os_error();
                libc::munmap(mapping, mapped_bytes);
                return Err(error);
            }
            let end = mapping.byte_add(mapped_bytes - colour % COLOURS * COLOUR_BYTES);
            let place = end.cast::<Mapping>().sub(1);
            place.write(Mapping {
                start: mapping.cast(),
                bytes: mapped_bytes,
                donor: ptr::null(),
            });
            Ok(Stack(NonNull::new_unchecked(place)))
        }
    }

    /// Makes a thread that lends its stack, and its state.
    fn of_donor(bytes: usize, colour: usize) -> io::Result<Stack> {
        donor::make(bytes, colour % COLOURS * COLOUR_BYTES).map(Stack)
    }

    /// The thread whose stack it is.
    #[inline]
    pub(crate) fn donor(&self) -> Option<NonNull<Donor>> {
        // SAFETY: written by who made the stack, and only this stack reads it.
        NonNull::new(unsafe { self.0.as_ref() }.donor.cast_mut().cast())
    }

    /// Whether the stack comes with a [thread's state](Stacks::of_donors).
    #[inline]
    #[must_use]
    pub fn owns_thread_state(&self) -> bool {
        self.donor().is_some()
    }

    /// One past the highest usable address, a multiple of 64. The record of the mapping lies above it.
    #[inline]
    pub(crate) fn top(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// The lowest usable address, where the guard ends.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.guard() + GUARD_BYTES
    }

    /// The lowest address of the guard.
    #[inline]
    pub(crate) fn guard(&self) -> usize {
        // SAFETY: written by `map`, and only this stack reads it.
        unsafe { self.0.as_ref() }.start as usize
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Some(donor) = self.donor() {
            return retire(donor);
        }
        // SAFETY: the mapping is ours, and nothing runs on it: a fiber owns its stack.
        unsafe {
            let Mapping { start, bytes, .. } = self.0.as_ptr().read();
            libc::munmap(start.cast(), bytes);
        }
    }
}

/// Stacks of one size, shared by any number of threads.
///
/// Any thread may give a stack back. A thread that takes stacks often uses its own [`StackCache`].
#[derive(Debug)]
pub struct Stacks {
    kind: StackKind,
    bytes: usize,
    /// No more are mapped than this.
    most: usize,
    mapped: AtomicUsize,
    free: Mutex<Vec<Stack>>,
}

/// What the stacks of a pool come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackKind {
    /// Nothing.
    Plain,
    /// A thread's state.
    OfDonors,
}

impl Stacks {
    /// A pool of stacks with `bytes` usable bytes each, rounded up to whole pages and at least [`MIN_STACK_BYTES`]; `prealloc` of
    /// them are mapped now, and the page used first made present.
    ///
    /// # Errors
    /// `bytes` is more than [`MAX_STACK_BYTES`], there is no memory for a list of `prealloc` stacks, or the kernel refuses a mapping: out of memory,
    /// or more than `vm.max_map_count` (two for each stack).
    pub fn new(bytes: usize, prealloc: usize) -> io::Result<Stacks> {
        Stacks::of_kind(StackKind::Plain, bytes, prealloc)
    }

    /// As [`new`](Self::new), of stacks that each belong to a thread of its own, which parks for as long as the stack exists. A fiber there owns what a thread
    /// has: thread-local variables, `errno`, the ownership of locks, exceptions, an allocator's caches. They stay for the next fiber on the same stack, like
    /// those of a thread in any pool; the variables' destructors run when the pool and its stacks are dropped.
    ///
    /// Each takes a thread of the process, some 30 µs to make, and some 32 KiB.
    ///
    /// # Errors
    /// As there. Making threads fails with [`WouldBlock`](io::ErrorKind::WouldBlock) (`EAGAIN`) at the limits of the process or its control group; see
    /// `pthread_create(3)`.
    pub fn of_donors(bytes: usize, prealloc: usize) -> io::Result<Stacks> {
        Stacks::of_kind(StackKind::OfDonors, bytes, prealloc)
    }

    fn of_kind(kind: StackKind, bytes: usize, prealloc: usize) -> io::Result<Stacks> {
        if bytes > MAX_STACK_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "a stack has at most {MAX_STACK_BYTES} bytes, not {bytes}: choose a smaller one"
                ),
            ));
        }
        let mut free = Vec::new();
        free.try_reserve_exact(prealloc)?;
        // The colour costs at most a page.
        let bytes = bytes.max(MIN_STACK_BYTES).next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        let stacks = Stacks {
            kind,
            bytes,
            most: usize::MAX,
            mapped: AtomicUsize::new(0),
            free: Mutex::new(free),
        };
        let mut warm = (0..prealloc)
            .map(|_| stacks.map())
            .collect::<io::Result<Vec<_>>>()?;
        stacks.give_all(warm.drain(..));
        Ok(stacks)
    }

    /// The same pool, of at most so many stacks, those that there are included. [`take`](Self::take) fails with [`WouldBlock`](io::ErrorKind::WouldBlock) where all are in use.
    #[must_use]
    pub fn at_most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Makes room for this many unused stacks, so that giving them back does not allocate.
    ///
    /// # Errors
    /// There is no memory for such a list.
    pub fn reserve(&self, stacks: usize) -> io::Result<()> {
        Ok(self.free().try_reserve_exact(stacks)?)
    }

    /// Takes an unused stack, or maps a new one.
    ///
    /// # Errors
    /// As [`Stacks::new`].
    pub fn take(&self) -> io::Result<Stack> {
        let free = self.free().pop();
        free.map_or_else(|| self.map(), Ok)
    }

    /// Keeps a stack for later. A stack of another pool must be at least as large as this pool's.
    pub fn give(&self, stack: Stack) {
        self.free().push(stack);
    }

    /// The number of stacks that this pool has mapped so far.
    pub fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    fn map(&self) -> io::Result<Stack> {
        let colour = self.mapped.fetch_add(1, Ordering::Relaxed);
        let made = match self.kind {
            _ if colour >= self.most => Err(io::ErrorKind::WouldBlock.into()),
            StackKind::Plain => Stack::map(self.bytes, colour),
            StackKind::OfDonors => Stack::of_donor(self.bytes, colour),
        };
        if made.is_err() {
            self.mapped.fetch_sub(1, Ordering::Relaxed);
        }
        made
    }

    fn give_all(&self, stacks: impl Iterator<Item = Stack>) {
        self.free().extend(stacks);
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Stack>> {
        // A push or a pop that panics leaves the list whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of stacks that move between a cache and its pool at a time.
const BATCH: usize = 16;

/// A thread's own few stacks of a shared pool: taking and giving costs a lock only once in 16.
#[derive(Debug)]
pub struct StackCache {
    pool: Arc<Stacks>,
    free: Vec<Stack>,
}

impl StackCache {
    /// An empty cache over `pool`.
    pub fn new(pool: Arc<Stacks>) -> StackCache {
        StackCache {
            pool,
            free: Vec::with_capacity(2 * BATCH),
        }
    }

    /// Takes an unused stack from here or from the pool, or maps a new one.
    ///
    /// # Errors
    /// As [`Stacks::new`].
    #[inline]
    pub fn take(&mut self) -> io::Result<Stack> {
        match self.free.pop() {
            Some(stack) => Ok(stack),
            None => self.refill(),
        }
    }

    /// Keeps a stack for later.
    #[inline]
    pub fn give(&mut self, stack: Stack) {
        if self.free.len() == 2 * BATCH {
            self.pool.give_all(self.free.drain(..BATCH));
        }
        self.free.push(stack);
    }

    #[cold]
    fn refill(&mut self) -> io::Result<Stack> {
        let mut shared = self.pool.free();
        let rest = shared.len().saturating_sub(BATCH);
        self.free.extend(shared.drain(rest..));
        drop(shared);
        self.free.pop().map_or_else(|| self.pool.map(), Ok)
    }
}

impl Drop for StackCache {
    fn drop(&mut self) {
        self.pool.give_all(self.free.drain(..));
    }
}
