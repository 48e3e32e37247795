//! How many requests a server behind a rack's switch has, as responses say it.

use headway_net::header::{Flag, QUEUE_BYTES};
use headway_sync::Padded;
use headway_sync::atomic::{AtomicUsize, Ordering};

/// How many requests a server behind a switch has: its dispatchers say it, its workers tell the switch.
pub(crate) struct ServerQueue {
    /// Accepted and not yet answered, by dispatcher.
    accepted: Box<[Padded<AtomicUsize>]>,
    /// Reads how many wait at the receive queues, about.
    backlog: Box<dyn Fn() -> usize + Send + Sync>,
}

impl ServerQueue {
    pub(crate) fn new(
        dispatchers: usize,
        backlog: impl Fn() -> usize + Send + Sync + 'static,
    ) -> Self {
        Self {
            accepted: (0..dispatchers).map(|_| Padded::default()).collect(),
            backlog: Box::new(backlog),
        }
    }

    /// A dispatcher has so many requests.
    #[inline]
    pub(crate) fn set(&self, dispatcher: usize, requests: usize) {
        let accepted = &self.accepted[dispatcher];
        if accepted.load(Ordering::Relaxed) != requests {
            accepted.store(requests, Ordering::Relaxed);
        }
    }

    /// Puts behind a response how many requests the server has without this one, as far as its dispatchers know. The response of `length` bytes, which a
    /// switch asked that of, is in `buffer`; its new length, or the old one where there is no room.
    #[cold]
    pub(crate) fn tell(&self, buffer: &mut [u8], length: usize) -> usize {
        let Some(room) = buffer.get_mut(length..length + QUEUE_BYTES) else {
            return length;
        };
        let accepted = self.accepted.iter();
        let accepted: usize = accepted.map(|count| count.load(Ordering::Relaxed)).sum();
        let others = accepted.saturating_sub(1) + (self.backlog)();
        room.copy_from_slice(&u16::try_from(others).unwrap_or(u16::MAX).to_be_bytes());
        buffer[1] = Flag::from_bits(buffer[1]).with_queue(true).bits();
        length + QUEUE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_net::header::Status;

    #[test]
    fn a_response_says_how_many_other_requests_there_are() {
        let queue = ServerQueue::new(2, || 3);
        queue.set(0, 5);
        queue.set(1, 2);
        let mut buffer = [7; 16];
        buffer[1] = Flag::response(Status::Ok).bits();
        assert_eq!(queue.tell(&mut buffer, 12), 14);
        assert!(Flag::from_bits(buffer[1]).has_queue());
        assert_eq!(buffer[12..], [0, 9, 7, 7]);
        queue.set(0, 1_000_000);
        queue.tell(&mut buffer, 10);
        assert_eq!(buffer[10..12], [255, 255]);
        buffer[1] = Flag::response(Status::Ok).bits();
        assert_eq!(queue.tell(&mut buffer, 15), 15, "there is no room");
        assert!(!Flag::from_bits(buffer[1]).has_queue());
    }
}
