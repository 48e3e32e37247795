//! A ring of bytes that grows with its content: the buffer of one direction of a connection.

/// The first capacity: a server with many connections has a small question of each.
const FIRST_BYTES: usize = 256;

/// Readable bytes, and behind them room that may be written out of order.
#[derive(Debug, Default)]
pub(crate) struct ByteRing {
    /// Its length is 0 or a power of two.
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl ByteRing {
    /// Readable bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, from: &[u8]) {
        self.write_at(self.length, from);
        self.length += from.len();
    }

    /// Writes bytes at a distance from the first readable one, without making them readable.
    pub(crate) fn write_at(&mut self, offset: usize, from: &[u8]) {
        self.grow(offset + from.len());
        if from.is_empty() {
            return;
        }
        let at = (self.start + offset) & (self.bytes.len() - 1);
        let until_wrap = from.len().min(self.bytes.len() - at);
        let (one, other) = from.split_at(until_wrap);
        self.bytes[at..at + one.len()].copy_from_slice(one);
        self.bytes[..other.len()].copy_from_slice(other);
    }

    /// Makes bytes readable that were written behind the readable ones.
    pub(crate) fn extend(&mut self, bytes: usize) {
        debug_assert!(self.length + bytes <= self.bytes.len(), "they were written");
        self.length += bytes;
    }

    /// `bytes` readable bytes from an offset on, in two parts.
    pub(crate) fn slices(&self, offset: usize, bytes: usize) -> (&[u8], &[u8]) {
        debug_assert!(offset + bytes <= self.length, "they are readable");
        if bytes == 0 {
            return (&[], &[]);
        }
        let at = (self.start + offset) & (self.bytes.len() - 1);
        let until_wrap = bytes.min(self.bytes.len() - at);
        (
            &self.bytes[at..at + until_wrap],
            &self.bytes[..bytes - until_wrap],
        )
    }

    /// Forgets the first bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.length, "they are readable");
        self.length -= bytes;
        if !self.bytes.is_empty() {
            self.start = (self.start + bytes) & (self.bytes.len() - 1);
        }
    }

    /// Begins anew where the memory is in the cache, if no byte is readable. The caller has written none ahead.
    pub(crate) fn rewind(&mut self) {
        if self.length == 0 {
            self.start = 0;
        }
    }

    /// Copies the first bytes out and forgets them; returns how many.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> usize {
        let bytes = to.len().min(self.length);
        let (one, other) = self.slices(0, bytes);
        to[..one.len()].copy_from_slice(one);
        to[one.len()..bytes].copy_from_slice(other);
        self.consume(bytes);
        bytes
    }

    fn grow(&mut self, needed: usize) {
        let before = self.bytes.len();
        if needed <= before {
            return;
        }
        let mut bytes = vec![0; needed.max(FIRST_BYTES).next_power_of_two()];
        // All of it: bytes behind the readable ones may be written, too.
        let (wrapped, first) = self.bytes.split_at(self.start);
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..before].copy_from_slice(wrapped);
        self.bytes = bytes;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec((any::<bool>(), 0..3000usize), 1..60)) {
            let (mut ring, mut queue, mut next) = (ByteRing::default(), VecDeque::new(), 0u8);
            for (is_push, bytes) in steps {
                if is_push {
                    let added: Vec<u8> = (0..bytes).map(|_| { next = next.wrapping_mul(5).wrapping_add(3); next }).collect();
                    // The second half is written first.
                    let (one, other) = added.split_at(bytes / 2);
                    ring.write_at(ring.len() + one.len(), other);
                    ring.write_at(ring.len(), one);
                    ring.extend(bytes);
                    queue.extend(added);
                } else {
                    let mut read = vec![0; bytes];
                    let count = ring.read(&mut read);
                    prop_assert_eq!(count, bytes.min(queue.len()));
                    prop_assert!(queue.drain(..count).eq(read[..count].iter().copied()));
                }
                prop_assert_eq!(ring.len(), queue.len());
            }
        }
    }
}
