//! The bodies of requests that the policy holds back.

use headway_net::slot::PAYLOAD_BYTES;

/// Buffers for held bodies, allocated once.
pub(crate) struct HeldPackets {
    bytes: Box<[[u8; PAYLOAD_BYTES]]>,
    lengths: Box<[u16]>,
    free: Vec<u32>,
}

impl HeldPackets {
    /// Room for `room` bodies.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            bytes: vec![[0; PAYLOAD_BYTES]; room].into_boxed_slice(),
            lengths: vec![0; room].into_boxed_slice(),
            free: (0..room as u32).rev().collect(),
        }
    }

    /// Stores a body and returns its buffer's number; `None` when no buffer is free.
    pub(crate) fn keep(&mut self, body: &[u8]) -> Option<u32> {
        let buffer = self.free.pop()?;
        let at = buffer as usize;
        self.bytes[at][..body.len()].copy_from_slice(body);
        self.lengths[at] = body.len() as u16;
        Some(buffer)
    }

    /// The body in a buffer.
    pub(crate) fn body(&self, buffer: u32) -> &[u8] {
        let at = buffer as usize;
        &self.bytes[at][..usize::from(self.lengths[at])]
    }

    /// Frees the buffer.
    pub(crate) fn free(&mut self, buffer: u32) {
        self.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_kept_until_freed() {
        let mut held = HeldPackets::new(2);
        let (one, two) = (
            held.keep(b"one").unwrap(),
            held.keep(&[7; PAYLOAD_BYTES]).unwrap(),
        );
        assert_eq!(held.keep(b"three"), None);
        assert_eq!(
            (held.body(one), held.body(two)),
            (&b"one"[..], &[7; PAYLOAD_BYTES][..])
        );
        held.free(one);
        let three = held.keep(b"").unwrap();
        assert_eq!(held.body(three), b"");
        assert_eq!(held.body(two), [7; PAYLOAD_BYTES]);
    }
}
