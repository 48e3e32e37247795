//! The credentials that the kernel keeps for a thread, which another thread takes over.
//!
//! For a signal's handler: system calls, and nothing of the C library's that a thread-local variable is behind but `errno`.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::{c_int, c_long};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Most supplementary groups of a thread (`NGROUPS_MAX` of Linux).
const MOST_GROUPS: usize = 65_536;

const WAIT: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

/// Who has taken credentials over.
mod taken {
    /// Nobody yet.
    pub(super) const NOT_YET: u32 = 0;
    pub(super) const YES: u32 = 1;
    /// The kernel refused them.
    pub(super) const REFUSED: u32 = 2;
}

/// A thread's user, group and supplementary groups. Larger than a handler's stack: [made](KernelCredentials::of_current) in pages of its own.
#[repr(C)]
pub(crate) struct KernelCredentials {
    /// A word of [`taken`], a futex.
    taken: AtomicU32,
    /// Real, effective and saved.
    users: [libc::uid_t; 3],
    groups: [libc::gid_t; 3],
    supplementary_count: usize,
    supplementary: [libc::gid_t; MOST_GROUPS],
}

/// Credentials in pages that are given back.
pub(crate) struct CredentialPages(NonNull<KernelCredentials>);

impl KernelCredentials {
    /// The calling thread's; none without memory for them.
    pub(crate) fn of_current() -> Option<CredentialPages> {
        let pages = CredentialPages::zeroed()?;
        // SAFETY: just made, and nobody else's yet.
        let credentials = unsafe { &mut *pages.0.as_ptr() };
        let [user, effective_user, saved_user] = &mut credentials.users;
        let [group, effective_group, saved_group] = &mut credentials.groups;
        let supplementary = credentials.supplementary.as_mut_ptr();
        // SAFETY: addresses of such values; the array has room for as many as there can be.
        let count = unsafe {
            libc::syscall(
                libc::SYS_getresuid,
                &raw mut *user,
                &raw mut *effective_user,
                &raw mut *saved_user,
            );
            libc::syscall(
                libc::SYS_getresgid,
                &raw mut *group,
                &raw mut *effective_group,
                &raw mut *saved_group,
            );
            libc::syscall(libc::SYS_getgroups, MOST_GROUPS, supplementary)
        };
        credentials.supplementary_count = usize::try_from(count).ok()?;
        Some(pages)
    }

    /// Makes them the calling thread's, and says so to who [waits](Self::are_taken).
    pub(crate) fn take(&self) {
        // With more rights before, groups must change first; with more rights after, the user.
        let are_taken = self.set() || self.set();
        let word = if are_taken {
            taken::YES
        } else {
            taken::REFUSED
        };
        let word_at = &raw const self.taken;
        self.taken.store(word, Ordering::Release);
        // SAFETY: a futex's address, which is not read: who waits may have given the pages back by now.
        unsafe { libc::syscall(libc::SYS_futex, word_at, WAKE, 1) };
    }

    /// Waits until another thread has tried to [take](Self::take) them. Whether it has them.
    pub(crate) fn are_taken(&self) -> bool {
        loop {
            match self.taken.load(Ordering::Acquire) {
                taken::NOT_YET => {
                    let no_limit = ptr::null::<libc::timespec>();
                    let word_at = &raw const self.taken;
                    // SAFETY: a futex's address.
                    unsafe {
                        libc::syscall(libc::SYS_futex, word_at, WAIT, taken::NOT_YET, no_limit)
                    };
                }
                word => return word == taken::YES,
            }
        }
    }

    /// Sets what differs. Whether all is as it should be.
    fn set(&self) -> bool {
        let groups_are_set = self.has_supplementary() || self.set_supplementary();
        let [user, effective_user, saved_user] = self.users;
        let [group, effective_group, saved_group] = self.groups;
        // SAFETY: numbers.
        let (group_is_set, user_is_set): (c_long, c_long) = unsafe {
            (
                libc::syscall(libc::SYS_setresgid, group, effective_group, saved_group),
                libc::syscall(libc::SYS_setresuid, user, effective_user, saved_user),
            )
        };
        groups_are_set && group_is_set == 0 && user_is_set == 0
    }

    fn supplementary(&self) -> &[libc::gid_t] {
        &self.supplementary[..self.supplementary_count]
    }

    fn set_supplementary(&self) -> bool {
        let groups = self.supplementary();
        // SAFETY: an array of so many.
        unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0 }
    }

    /// Whether the calling thread has these supplementary groups: only who has a right to may set them.
    fn has_supplementary(&self) -> bool {
        let present = KernelCredentials::of_current();
        present.is_some_and(|present| {
            let present = present.get();
            present.supplementary() == self.supplementary()
        })
    }
}

impl CredentialPages {
    const BYTES: usize = size_of::<KernelCredentials>();

    /// Pages of zeros, which are credentials that nobody has taken.
    fn zeroed() -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new pages, wherever there is room.
        let pages = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                0_usize,
                Self::BYTES,
                access,
                kind,
                -1_isize,
                0_usize,
            )
        };
        let failed = pages == -1;
        NonNull::new(pages as *mut KernelCredentials)
            .filter(|_| !failed)
            .map(Self)
    }

    pub(crate) fn get(&self) -> &KernelCredentials {
        // SAFETY: they live as long as this does, and nobody changes more than the word.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for CredentialPages {
    fn drop(&mut self) {
        // SAFETY: these pages, which nobody uses any more.
        unsafe { libc::syscall(libc::SYS_munmap, self.0.as_ptr(), Self::BYTES) };
    }
}
