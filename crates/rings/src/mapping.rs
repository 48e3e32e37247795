//! Memory that is shared with the kernel or another process, reached through atomics.
#![expect(
    unsafe_code,
    reason = "mapping memory, and pointers into it that live as long as the mapping"
)]

use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Mapped memory. Others may write to it at any time, so access is by atomics, or by the owner of a part that the others have
/// handed over.
pub struct SharedMapping {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to no thread. All safe access is by atomics.
unsafe impl Send for SharedMapping {}
// SAFETY: as above.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Zeroed memory of this process, present from the start.
    ///
    /// # Errors
    /// When the system has no such memory.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(bytes, flags, -1, 0)
    }

    /// Maps `bytes` bytes of a file, or of a socket's rings, at this offset.
    ///
    /// # Errors
    /// When the file cannot be mapped.
    pub fn of(file: BorrowedFd<'_>, bytes: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(bytes, flags, file.as_raw_fd(), offset)
    }

    fn map(bytes: usize, flags: libc::c_int, fd: libc::c_int, offset: i64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces none of this process.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, bytes })
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its first address.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.at
    }

    /// The 32-bit word at an offset; `None` beyond the end or where it is not aligned.
    #[must_use]
    pub fn word(self: &Arc<Self>, offset: usize) -> Option<SharedWord> {
        let at = self.checked(offset, 4)?.cast();
        Some(SharedWord {
            at,
            mapping: Arc::clone(self),
        })
    }

    /// `count` 64-bit words from an offset on; `None` beyond the end or where they are not aligned.
    #[must_use]
    pub fn words(self: &Arc<Self>, offset: usize, count: usize) -> Option<SharedWords> {
        let at = self
            .checked(offset, count.checked_mul(8)?)?
            .cast::<AtomicU64>();
        at.is_aligned().then(|| SharedWords {
            at,
            count,
            mapping: Arc::clone(self),
        })
    }

    /// The address of `bytes` bytes that lie within, aligned for a 32-bit word.
    fn checked(&self, offset: usize, bytes: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes || !offset.is_multiple_of(4) {
            return None;
        }
        // SAFETY: `offset` lies within the mapping.
        Some(unsafe { self.at.add(offset) })
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and whoever points into it holds an `Arc` of it.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

impl fmt::Debug for SharedMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMapping")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// A 32-bit word in shared memory.
#[derive(Debug)]
pub struct SharedWord {
    at: NonNull<AtomicU32>,
    #[expect(dead_code, reason = "the memory lives as long as the word")]
    mapping: Arc<SharedMapping>,
}

// SAFETY: it stands for a reference to an atomic, whose memory it keeps alive.
unsafe impl Send for SharedWord {}
// SAFETY: as above.
unsafe impl Sync for SharedWord {}

impl Deref for SharedWord {
    type Target = AtomicU32;

    #[inline]
    fn deref(&self) -> &AtomicU32 {
        // SAFETY: `at` is aligned and lies within the mapping, which lives as long as this one. Any bytes are a value.
        unsafe { self.at.as_ref() }
    }
}

/// 64-bit words in shared memory. They are read and written one by one, so a reader of several words may see parts of several writes.
#[derive(Debug)]
pub struct SharedWords {
    at: NonNull<AtomicU64>,
    count: usize,
    mapping: Arc<SharedMapping>,
}

// SAFETY: they stand for references to atomics, whose memory they keep alive.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The mapping that they lie in.
    #[must_use]
    pub fn mapping(&self) -> &Arc<SharedMapping> {
        &self.mapping
    }

    /// The word at this place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> u64 {
        self.atomic(place).load(Ordering::Relaxed)
    }

    /// Writes the word at this place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn set(&self, place: usize, word: u64) {
        self.atomic(place).store(word, Ordering::Relaxed);
    }

    /// Copies bytes out, word by word, from the word at `place` on. The copy is stable, though it may mix bytes of concurrent writes.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn read(&self, place: usize, to: &mut [u8]) {
        let words = self.range(place, to.len());
        let mut eights = to.chunks_exact_mut(8);
        let mut words = words.iter();
        for (eight, word) in (&mut eights).zip(&mut words) {
            eight.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        let rest = eights.into_remainder();
        if let Some(word) = words.next() {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
    }

    /// Copies bytes in, from the word at `place` on. The rest of the last word becomes 0.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn write(&self, place: usize, from: &[u8]) {
        let mut words = self.range(place, from.len()).iter();
        let mut eights = from.chunks_exact(8);
        for (eight, word) in (&mut eights).zip(&mut words) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(eight);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        let rest = eights.remainder();
        if let Some(word) = words.next() {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// The range of words for this number of bytes, from a position on.
    #[inline]
    fn range(&self, place: usize, bytes: usize) -> &[AtomicU64] {
        let count = bytes.div_ceil(8);
        assert!(
            place <= self.count && count <= self.count - place,
            "{count} words from {place} on, of {}",
            self.count
        );
        // SAFETY: the words lie within, are aligned, and the mapping keeps them alive.
        unsafe { std::slice::from_raw_parts(self.at.add(place).as_ptr(), count) }
    }

    #[inline]
    fn atomic(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.count, "word {place} of {}", self.count);
        // SAFETY: the place lies within the words, which are aligned, and which the mapping keeps alive.
        unsafe { self.at.add(place).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_where_they_were_written() {
        let mapping = Arc::new(SharedMapping::anonymous(4096).unwrap());
        let words = mapping.words(8, 3).unwrap();
        words.set(2, 0x0102_0304_0506_0708);
        let low = mapping.word(24).unwrap().load(Ordering::Relaxed);
        let low = u64::from(low.to_le());
        assert!(low == 0x0506_0708 || low == 0x0102_0304, "{low:x}");
        assert_eq!(
            (words.get(2), words.get(0), words.len()),
            (0x0102_0304_0506_0708, 0, 3)
        );
    }

    #[test]
    fn nothing_lies_beyond_the_end_or_across_an_alignment() {
        let mapping = Arc::new(SharedMapping::anonymous(4096).unwrap());
        assert!(mapping.word(4092).is_some());
        for offset in [4096, 4094, 2, usize::MAX, usize::MAX - 3] {
            assert!(mapping.word(offset).is_none(), "{offset}");
        }
        assert!(mapping.words(4088, 1).is_some());
        for (offset, count) in [(4088, 2), (4, 1), (0, usize::MAX), (0, 513)] {
            assert!(mapping.words(offset, count).is_none(), "{offset} {count}");
        }
    }

    #[test]
    fn bytes_of_any_length_read_back_as_written() {
        let mapping = Arc::new(SharedMapping::anonymous(4096).unwrap());
        let words = mapping.words(0, 512).unwrap();
        for length in [0, 1, 7, 8, 9, 63, 64, 1514, 2048] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 31) as u8 | 1).collect();
            words.write(3, &bytes);
            let mut back = vec![0xee; length];
            words.read(3, &mut back);
            assert_eq!(back, bytes);
        }
        words.write(512, &[]);
    }

    #[test]
    #[should_panic(expected = "2 words from 511 on, of 512")]
    fn bytes_beyond_the_end_are_refused() {
        let mapping = Arc::new(SharedMapping::anonymous(4096).unwrap());
        mapping.words(0, 512).unwrap().write(511, &[0; 9]);
    }

    #[test]
    #[should_panic(expected = "word 3 of 3")]
    fn a_word_beyond_the_last_is_refused() {
        let mapping = Arc::new(SharedMapping::anonymous(64).unwrap());
        let _ = mapping.words(0, 3).unwrap().get(3);
    }
}
