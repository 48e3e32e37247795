//! Packet memory that is shared with the kernel, in frames of one size.
#![expect(
    unsafe_code,
    reason = "whoever has a frame's token may use its bytes: the kernel has those that were handed to it"
)]

use std::io;
use std::sync::Arc;

use headway_rings::mapping::SharedMapping;
use headway_rings::ring::{ConsumerRing, PacketDescriptor};

/// The right to one frame, which cannot be copied or cloned. Dropping it loses the frame.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a dropped token loses its frame"]
pub(crate) struct FrameToken {
    /// The offset of its first byte.
    base: u64,
}

impl FrameToken {
    /// Turns the token into the frame's address, to hand the frame to the kernel.
    #[inline]
    pub(crate) fn into_address(self) -> u64 {
        self.base
    }
}

/// The memory.
#[derive(Debug)]
pub(crate) struct Umem {
    mapping: Arc<SharedMapping>,
    frame_bytes: u64,
}

impl Umem {
    /// Memory of `frames` frames of `frame_bytes` each, a power of two, and the tokens of all.
    pub(crate) fn new(frames: usize, frame_bytes: usize) -> io::Result<(Self, Vec<FrameToken>)> {
        assert!(
            frame_bytes.is_power_of_two(),
            "frames are aligned to their size"
        );
        let mapping = Arc::new(SharedMapping::anonymous(frames * frame_bytes)?);
        let frame_bytes = frame_bytes as u64;
        let tokens = (0..frames as u64)
            .map(|frame| FrameToken {
                base: frame * frame_bytes,
            })
            .collect();
        Ok((
            Self {
                mapping,
                frame_bytes,
            },
            tokens,
        ))
    }

    pub(crate) fn mapping(&self) -> &SharedMapping {
        &self.mapping
    }

    pub(crate) fn frame_bytes(&self) -> usize {
        self.frame_bytes as usize
    }

    /// The token of the frame that the kernel gave back by an address within it, and the offset of that address in the frame.
    ///
    /// # Safety
    /// The address comes from a ring of a socket of this memory, where the kernel wrote it once, to give the frame back.
    #[inline]
    unsafe fn regain(&self, address: u64) -> (FrameToken, usize) {
        let within = address & (self.frame_bytes - 1);
        let base = address - within;
        (FrameToken { base }, within as usize)
    }

    /// The frame's bytes.
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, frame: &'a FrameToken) -> &'a [u8] {
        let at = self.start_of(frame);
        // SAFETY: the frame lies within the mapping. Its token is unique in this memory and borrowed, so neither the kernel nor another
        // thread writes to it.
        unsafe { std::slice::from_raw_parts(at, self.frame_bytes as usize) }
    }

    /// The frame's bytes, to write.
    #[inline]
    pub(crate) fn bytes_mut<'a>(&'a self, frame: &'a mut FrameToken) -> &'a mut [u8] {
        let at = self.start_of(frame);
        // SAFETY: as above, and the token is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(at, self.frame_bytes as usize) }
    }

    #[inline]
    fn start_of(&self, frame: &FrameToken) -> *mut u8 {
        let end = frame.base + self.frame_bytes;
        assert!(end <= self.mapping.len() as u64, "a frame of this memory");
        self.mapping
            .base()
            .as_ptr()
            .wrapping_add(frame.base as usize)
    }
}

/// A received packet: its frame, and its range within the frame.
#[derive(Debug)]
pub(crate) struct ReceivedFrame {
    pub(crate) token: FrameToken,
    start: usize,
    length: usize,
}

impl ReceivedFrame {
    /// The packet.
    #[inline]
    pub(crate) fn packet<'a>(&'a self, umem: &'a Umem) -> &'a [u8] {
        let bytes = umem.bytes(&self.token);
        bytes
            .get(self.start..self.start + self.length)
            .unwrap_or_default()
    }
}

/// The ring of a socket from which packets are taken.
#[derive(Debug)]
pub(crate) struct RxRing {
    ring: ConsumerRing<2>,
    umem: Arc<Umem>,
}

impl RxRing {
    /// The ring, with the memory of its packets.
    ///
    /// # Safety
    /// The kernel writes the ring, for a socket of this memory, of which there is one such ring.
    pub(crate) unsafe fn new(ring: ConsumerRing<2>, umem: Arc<Umem>) -> Self {
        Self { ring, umem }
    }

    /// The number of waiting packets; 0 only if there are none.
    #[inline]
    pub(crate) fn waiting(&mut self, wanted: u32) -> u32 {
        self.ring.waiting(wanted).unwrap_or(0)
    }

    /// The next packet. Its entry is given back by [`release`](Self::release).
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<ReceivedFrame> {
        let packet = PacketDescriptor::of_words(self.ring.pop()?);
        // SAFETY: the kernel wrote the address into the ring, once for each frame that it was given.
        let (token, start) = unsafe { self.umem.regain(packet.address) };
        let length = packet.length as usize;
        Some(ReceivedFrame {
            token,
            start,
            length,
        })
    }

    /// Gives back the entries of the packets taken.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.ring.release();
    }
}

/// The ring that brings sent frames back.
#[derive(Debug)]
pub(crate) struct CompletionRing {
    ring: ConsumerRing<1>,
    umem: Arc<Umem>,
}

impl CompletionRing {
    /// The ring, with the memory of its frames.
    ///
    /// # Safety
    /// The kernel writes the ring, for sockets of this memory, of which there is one such ring.
    pub(crate) unsafe fn new(ring: ConsumerRing<1>, umem: Arc<Umem>) -> Self {
        Self { ring, umem }
    }

    /// Appends the sent frames.
    #[inline]
    pub(crate) fn drain(&mut self, to: &mut Vec<FrameToken>) {
        while let Some([address]) = self.ring.pop() {
            // SAFETY: the kernel wrote the address into the ring, once for each frame that it was given.
            let (token, _) = unsafe { self.umem.regain(address) };
            to.push(token);
        }
        self.ring.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_apart_and_come_back_by_any_address_within() {
        let (umem, mut tokens) = Umem::new(4, 2048).unwrap();
        for (number, token) in tokens.iter_mut().enumerate() {
            umem.bytes_mut(token).fill(number as u8);
        }
        for (number, token) in tokens.into_iter().enumerate() {
            let address = token.into_address();
            // SAFETY: the token was turned into this address the line before.
            let (token, within) = unsafe { umem.regain(address + 256) };
            assert_eq!(within, 256);
            assert!(umem.bytes(&token).iter().all(|&byte| byte == number as u8));
        }
    }
}
