//! Copies of suspended fibers' stacks, for other threads that want to know where they stand.
//!
//! Nobody stops for it: whoever resumes fibers neither waits nor looks. The kernel copies the memory, so that a stack that is gone meanwhile is an error and no fault, and a copy counts only if the
//! fiber was suspended before and after, and not resumed in between.
#![expect(unsafe_code, reason = "asks the kernel for a copy of memory")]

use std::io;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::control::{FiberControl, rest};
use crate::saved::Saved;

/// Of a stack's innermost frames, no more is copied.
const MOST_BYTES: usize = 256 << 10;

/// The words of a control that do not change while its fiber is suspended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stance {
    left_at: usize,
    suspensions: usize,
    stack_limit: usize,
    stack_base: usize,
}

/// The innermost frames of a suspended fiber, as bytes, and the registers with which it goes on. Used for one fiber after another.
#[derive(Debug)]
pub struct StackCopy {
    saved: [usize; size_of::<Saved>() / size_of::<usize>()],
    bytes: Vec<u8>,
    is_cut: bool,
}

impl StackCopy {
    /// Of no fiber yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            saved: [0; _],
            bytes: Vec::new(),
            is_cut: false,
        }
    }

    /// Copies the stack of this fiber, which may be resumed at any moment, or be gone. `false`, without a copy, where it was not suspended all the time. `is_at_rest` says
    /// whether nobody runs it now; when it runs, that must be false before its first instruction.
    ///
    /// # Errors
    /// The kernel does not let the process read its own memory so: `process_vm_readv(2)`.
    pub fn take(&mut self, fiber: NonNull<()>, is_at_rest: impl Fn() -> bool) -> io::Result<bool> {
        self.bytes.clear();
        if !is_at_rest() {
            return Ok(false);
        }
        let Some(stance) = Stance::of(fiber)? else {
            return Ok(false);
        };
        let holds = |at: usize| (stance.stack_limit..=stance.stack_base).contains(&at);
        if stance.left_at <= rest::RUNNING
            || !holds(stance.left_at)
            || !read_words(stance.left_at, &mut self.saved)?
        {
            return Ok(false);
        }
        let from = self.stack_pointer() as usize;
        if !holds(from) {
            return Ok(false);
        }
        let live = stance.stack_base - from;
        self.is_cut = live > MOST_BYTES;
        self.bytes.resize(live.min(MOST_BYTES), 0);
        let is_copied = read(from, &mut self.bytes)?;
        Ok(is_copied && is_at_rest() && Stance::of(fiber)? == Some(stance))
    }

    /// Where it goes on.
    #[must_use]
    pub fn instruction_pointer(&self) -> u64 {
        self.saved[offset_of!(Saved, rip) / size_of::<usize>()] as u64
    }

    /// Its stack pointer.
    #[must_use]
    pub fn stack_pointer(&self) -> u64 {
        self.saved[offset_of!(Saved, rsp) / size_of::<usize>()] as u64
    }

    /// Its frame pointer, `rbp`.
    #[must_use]
    pub fn frame_pointer(&self) -> u64 {
        self.saved[offset_of!(Saved, rbp) / size_of::<usize>()] as u64
    }

    /// The word at this address of the stack; `None` where the copy does not hold it.
    #[must_use]
    pub fn word_at(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.stack_pointer())?).ok()?;
        let bytes = self.bytes.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Whether the outermost frames are left out, since the stack is too deep.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl Default for StackCopy {
    fn default() -> Self {
        Self::new()
    }
}

impl Stance {
    /// As the fiber is now; `None` if its stack is gone.
    fn of(fiber: NonNull<()>) -> io::Result<Option<Self>> {
        let mut words = [0; size_of::<FiberControl>() / size_of::<usize>()];
        if !read_words(fiber.as_ptr() as usize, &mut words)? {
            return Ok(None);
        }
        let word = |offset: usize| words[offset / size_of::<usize>()];
        Ok(Some(Self {
            left_at: word(offset_of!(FiberControl, left_at)),
            suspensions: word(offset_of!(FiberControl, suspensions)),
            stack_limit: word(offset_of!(FiberControl, stack_limit)),
            stack_base: word(offset_of!(FiberControl, stack_base)),
        }))
    }
}

/// The word at an address that may be another thread's, or gone.
pub(crate) fn word_at(address: usize) -> io::Result<Option<usize>> {
    let mut word = [0];
    Ok(read_words(address, &mut word)?.then_some(word[0]))
}

fn read_words(from: usize, to: &mut [usize]) -> io::Result<bool> {
    // SAFETY: words are bytes, of which all values are valid.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), size_of_val(to)) };
    read(from, bytes)
}

/// Copies this process's memory from an address on; `false` where there is none.
///
/// # Errors
/// The kernel refuses.
pub fn read(from: usize, to: &mut [u8]) -> io::Result<bool> {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let remote = libc::iovec {
        iov_base: from as *mut _,
        iov_len: to.len(),
    };
    // SAFETY: the kernel writes to `to`, which is borrowed for it, and only reads the other, whatever is there.
    let copied = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    if copied >= 0 {
        return Ok(copied as usize == to.len());
    }
    match io::Error::last_os_error() {
        fault if fault.raw_os_error() == Some(libc::EFAULT) => Ok(false),
        refused => Err(refused),
    }
}
