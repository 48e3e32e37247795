//! Every interleaving of a ring's two sides: each entry is read once, in order, and none is written over before it was read.
#![cfg(loom)]
#![expect(unsafe_code, reason = "loom's cells hand out raw pointers")]

use headway_rings::cursor::{ConsumerCursor, ProducerCursor, SharedIndices};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;

const CAPACITY: u32 = 2;
/// The indices wrap within the model.
const START: u32 = u32::MAX - 1;

struct Shared {
    producer: AtomicU32,
    consumer: AtomicU32,
    entries: [UnsafeCell<u32>; CAPACITY as usize],
}

// SAFETY: the cells are what the model checks: loom reports two accesses at once.
unsafe impl Sync for Shared {}

impl SharedIndices for Shared {
    fn producer(&self) -> &AtomicU32 {
        &self.producer
    }

    fn consumer(&self) -> &AtomicU32 {
        &self.consumer
    }
}

#[test]
fn entries_are_read_once_in_order_and_never_overwritten() {
    loom::model(|| {
        const ENTRIES: u32 = 4;
        let shared = Arc::new(Shared {
            producer: AtomicU32::new(START),
            consumer: AtomicU32::new(START),
            entries: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut producer = ProducerCursor::new(CAPACITY, START);
            let mut next = 1;
            while next <= ENTRIES {
                let room = producer.room(&*theirs, 1).expect("the reader is honest");
                let count = room.min(ENTRIES + 1 - next);
                for ahead in 0..count {
                    // SAFETY: the entry is the producer's: `room` says so.
                    theirs.entries[producer.place(ahead)]
                        .with_mut(|entry| unsafe { *entry = next });
                    next += 1;
                }
                if count == 0 {
                    thread::yield_now();
                } else {
                    producer.publish(&*theirs, count);
                }
            }
        });
        let mut consumer = ConsumerCursor::new(CAPACITY, START);
        let mut expected = 1;
        while expected <= ENTRIES {
            let waiting = consumer.waiting(&*shared, 1).expect("the writer is honest");
            if waiting == 0 {
                thread::yield_now();
            }
            for ahead in 0..waiting {
                // SAFETY: the entry is the consumer's: `waiting` says so.
                let entry = shared.entries[consumer.place(ahead)].with(|entry| unsafe { *entry });
                assert_eq!(entry, expected);
                expected += 1;
            }
            if waiting > 0 {
                consumer.release(&*shared, waiting);
            }
        }
        writer.join().unwrap();
    });
}
