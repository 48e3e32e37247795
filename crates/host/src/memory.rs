//! The memory that an application and the daemon share: a line of the application, one of the daemon, and two of each kthread.
//!
//! It is a memfd whose size is sealed, so that neither side can shrink it while the other reads. It consists of atomic words, every
//! value of which is valid: an application can write wrong values, and do no other harm.
#![expect(unsafe_code, reason = "maps memory that two processes share")]

use headway_kthread::{KthreadLine, OrderLine};
use headway_policy::host::MOST_KTHREADS;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

const NAME: &CStr = c"headway-lines";
const LINE: usize = 64;
const PAGE: usize = 4096;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// The most kthreads of one application.
pub const KTHREADS_MAX: usize = headway_policy::host::MAX_CORES;

/// The words that an application writes for all of its kthreads.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct AppLine {
    /// How many times work came while no kthread was awake.
    pub wants: AtomicU64,
    /// Entries ever taken out of a queue that all kthreads share.
    pub shared_head: AtomicU64,
    /// Entries ever put into it.
    pub shared_tail: AtomicU64,
}

/// The words that the daemon writes for all kthreads of an application.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ArbiterLine {
    /// 1: kthreads that find no work give their cores back. 0: they sleep on them.
    pub parks: AtomicU32,
    /// 1: the daemon may sleep, and its doorbell wakes it.
    pub doorbell: AtomicU32,
    /// The core on which such a daemon runs, plus 1; 0 if it has one of its own.
    pub daemons_core: AtomicU32,
}

/// Why memory cannot be shared.
#[derive(thiserror::Error)]
pub enum MemoryError {
    /// The system refuses.
    #[error("cannot {what}: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file lacks the seals that fix its size.
    #[error(
        "the memory is not sealed: it must be a memfd with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL"
    )]
    Unsealed,
    /// The file has another size.
    #[error("the memory has {found} bytes, and {kthreads} kthreads need {needed}")]
    Size {
        /// Its size.
        found: i64,
        /// The right size.
        needed: usize,
        /// The number of kthreads.
        kthreads: usize,
    },
    /// Too many kthreads, or none.
    #[error("an application has 1 to {KTHREADS_MAX} kthreads, not {0}")]
    Kthreads(usize),
    /// Too many kthreads for a data plane, or none.
    #[error(
        "an application with a network has 1 to {MOST_KTHREADS} kthreads, not {0}: ask for fewer, or set `cores` in the daemon's settings"
    )]
    Lanes(usize),
}

headway_words::debug_is_display!(MemoryError);

/// The lines of an application, mapped.
#[derive(Debug)]
pub struct SharedLines {
    base: NonNull<u8>,
    bytes: usize,
    kthreads: usize,
}

// SAFETY: the mapping belongs to this value alone, and all memory reached through it is atomic words.
unsafe impl Send for SharedLines {}
// SAFETY: as above.
unsafe impl Sync for SharedLines {}

impl SharedLines {
    /// Makes memory for this many kthreads, all words 0.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn create(kthreads: usize) -> Result<(OwnedFd, Self), MemoryError> {
        let bytes = bytes_for(kthreads)?;
        let fd = sealed(NAME, bytes)?;
        let lines = Self::map(fd.as_fd(), bytes, kthreads)?;
        Ok((fd, lines))
    }

    /// Maps memory of another process, after checking that seals fix its size.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn adopt(fd: impl AsFd, kthreads: usize) -> Result<Self, MemoryError> {
        let bytes = bytes_for(kthreads)?;
        check_sealed(fd.as_fd(), bytes, kthreads)?;
        Self::map(fd.as_fd(), bytes, kthreads)
    }

    fn map(fd: BorrowedFd<'_>, bytes: usize, kthreads: usize) -> Result<Self, MemoryError> {
        // SAFETY: a new mapping at an address of the kernel's choice harms no other.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(system("map shared memory"));
        }
        let base = NonNull::new(address.cast()).expect("the kernel maps nothing at 0");
        Ok(Self {
            base,
            bytes,
            kthreads,
        })
    }

    /// The number of kthreads.
    pub fn kthreads(&self) -> usize {
        self.kthreads
    }

    /// The application's line.
    pub fn app(&self) -> &AppLine {
        // SAFETY: the mapping begins with this line, is larger and lives as long as `self`. It is all atomic words.
        unsafe { self.base.cast().as_ref() }
    }

    /// The daemon's line.
    pub fn arbiter(&self) -> &ArbiterLine {
        // SAFETY: as in `app`, for the second line.
        unsafe { self.base.add(LINE).cast().as_ref() }
    }

    /// A kthread's line.
    ///
    /// # Panics
    /// There is no such kthread.
    #[inline]
    pub fn line(&self, kthread: usize) -> &KthreadLine {
        assert!(kthread < self.kthreads, "there is no kthread {kthread}");
        // SAFETY: as in `app`: `bytes_for` has room for two lines of each kthread behind the first two.
        unsafe { self.base.add((2 + 2 * kthread) * LINE).cast().as_ref() }
    }

    /// The orders to a kthread.
    ///
    /// # Panics
    /// There is no such kthread.
    #[inline]
    pub fn orders(&self, kthread: usize) -> &OrderLine {
        assert!(kthread < self.kthreads, "there is no kthread {kthread}");
        // SAFETY: as in `line`.
        unsafe { self.base.add((3 + 2 * kthread) * LINE).cast().as_ref() }
    }
}

impl Drop for SharedLines {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives it.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), self.bytes);
        }
    }
}

/// A memfd whose size seals fix.
pub(crate) fn sealed(name: &CStr, bytes: usize) -> Result<OwnedFd, MemoryError> {
    // SAFETY: the name is a C string; the result is checked.
    let raw =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    checked(raw, "make shared memory")?;
    // SAFETY: the descriptor was just made, and no other value owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: an open descriptor and an integer.
    let sized = unsafe { libc::ftruncate(raw, bytes as libc::off_t) };
    checked(sized, "size shared memory")?;
    // SAFETY: as above.
    let sealed = unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, SEALS) };
    checked(sealed, "seal shared memory")?;
    Ok(fd)
}

/// Checks that a descriptor is a memfd whose size is this one and fixed by seals.
pub(crate) fn check_sealed(
    fd: BorrowedFd<'_>,
    bytes: usize,
    kthreads: usize,
) -> Result<(), MemoryError> {
    // SAFETY: an open descriptor; the call takes no further argument.
    let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
    if seals < 0 || seals & SEALS != SEALS {
        return Err(MemoryError::Unsealed);
    }
    // SAFETY: all fields are integers, for which zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` outlives the call.
    let looked = unsafe { libc::fstat(fd.as_raw_fd(), &raw mut stat) };
    checked(looked, "look at shared memory")?;
    // A file of huge pages is refused: touching it faults when the pool has no page left.
    if stat.st_size != bytes as i64 || stat.st_blksize != PAGE as i64 {
        return Err(MemoryError::Size {
            found: stat.st_size,
            needed: bytes,
            kthreads,
        });
    }
    Ok(())
}

fn bytes_for(kthreads: usize) -> Result<usize, MemoryError> {
    if !(1..=KTHREADS_MAX).contains(&kthreads) {
        return Err(MemoryError::Kthreads(kthreads));
    }
    Ok(((2 + 2 * kthreads) * LINE).next_multiple_of(PAGE))
}

fn checked(result: i32, what: &'static str) -> Result<i32, MemoryError> {
    if result < 0 {
        Err(system(what))
    } else {
        Ok(result)
    }
}

fn system(what: &'static str) -> MemoryError {
    MemoryError::System {
        what,
        source: io::Error::last_os_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    fn file(bytes: i64, seals: i32) -> OwnedFd {
        // SAFETY: as in `create`.
        let raw = unsafe {
            libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        // SAFETY: the descriptor was just made.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: an open descriptor and integers.
        let sized = unsafe { libc::ftruncate(raw, bytes) };
        // SAFETY: as above.
        let sealed = unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, seals) };
        assert_eq!((sized, sealed), (0, 0));
        fd
    }

    #[test]
    fn both_sides_see_what_either_writes() {
        let (fd, daemon) = SharedLines::create(3).unwrap();
        let app = SharedLines::adopt(&fd, 3).unwrap();
        for kthread in 0..3 {
            app.line(kthread).set_tid(10 + kthread as u32);
            assert_eq!(daemon.line(kthread).tid(), Some(10 + kthread as u32));
            daemon
                .orders(kthread)
                .grant_as(5, headway_kthread::Grant(7));
            assert_eq!(app.orders(kthread).granted().0, 7);
        }
        app.app().wants.fetch_add(1, Ordering::Relaxed);
        assert_eq!(daemon.app().wants.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn memory_that_could_shrink_or_is_short_is_refused() {
        let unsealed = file(4096, libc::F_SEAL_GROW);
        assert!(matches!(
            SharedLines::adopt(&unsealed, 1),
            Err(MemoryError::Unsealed)
        ));
        let short = file(64, SEALS);
        let error = SharedLines::adopt(&short, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the memory has 64 bytes, and 1 kthreads need 4096"
        );
        let read_only = file(4096, SEALS | libc::F_SEAL_FUTURE_WRITE);
        assert!(SharedLines::adopt(&read_only, 1).is_err());
        let ordinary = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(matches!(
            SharedLines::adopt(OwnedFd::from(ordinary), 1),
            Err(MemoryError::Unsealed)
        ));
    }
}
