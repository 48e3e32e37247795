//! The indices of a ring against a queue, from any start, and against a side that lies.

use headway_rings::cursor::{BrokenRing, ConsumerCursor, ProducerCursor, SharedIndices};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

struct Indices {
    producer: AtomicU32,
    consumer: AtomicU32,
}

impl Indices {
    fn at(start: u32) -> Self {
        Self {
            producer: AtomicU32::new(start),
            consumer: AtomicU32::new(start),
        }
    }
}

impl SharedIndices for Indices {
    fn producer(&self) -> &AtomicU32 {
        &self.producer
    }

    fn consumer(&self) -> &AtomicU32 {
        &self.consumer
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Write up to so many.
    Write(u32),
    /// Read up to so many.
    Read(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..40u32).prop_map(Step::Write),
        (1..40u32).prop_map(Step::Read)
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn a_ring_is_a_bounded_queue_from_any_start(
        steps in steps(), power in 0..6u32, start in prop_oneof![Just(0), Just(u32::MAX - 20), any::<u32>()],
    ) {
        let capacity = 1 << power;
        let shared = Indices::at(start);
        let (mut producer, mut consumer) = (ProducerCursor::new(capacity, start), ConsumerCursor::new(capacity, start));
        let (mut entries, mut model, mut next) = (vec![0u64; capacity as usize], VecDeque::new(), 1u64);
        for step in steps {
            match step {
                Step::Write(wanted) => {
                    let room = producer.room(&shared, wanted).unwrap();
                    let truly = capacity - model.len() as u32;
                    // It may know of less room than there is only where that is enough.
                    prop_assert!(room <= truly && (room == truly || room >= wanted));
                    let count = wanted.min(room);
                    for ahead in 0..count {
                        entries[producer.place(ahead)] = next;
                        model.push_back(next);
                        next += 1;
                    }
                    producer.publish(&shared, count);
                    prop_assert_eq!(producer.unread(&shared), model.len() as u32);
                }
                Step::Read(wanted) => {
                    let waiting = consumer.waiting(&shared, wanted).unwrap();
                    prop_assert!(waiting as usize <= model.len());
                    prop_assert!(waiting as usize == model.len() || waiting >= wanted);
                    let count = wanted.min(waiting);
                    for ahead in 0..count {
                        prop_assert_eq!(Some(entries[consumer.place(ahead)]), model.pop_front());
                    }
                    consumer.release(&shared, count);
                }
            }
        }
    }

    #[test]
    fn no_lie_of_the_other_side_leads_outside(
        lies in proptest::collection::vec(any::<u32>(), 1..50), power in 0..12u32, start in any::<u32>(),
    ) {
        let capacity = 1u32 << power;
        let shared = Indices::at(start);
        let (mut producer, mut consumer) = (ProducerCursor::new(capacity, start), ConsumerCursor::new(capacity, start));
        for lie in lies {
            shared.consumer.store(lie, Ordering::Relaxed);
            let used = capacity - producer.room(&shared, 0).unwrap();
            match producer.room(&shared, capacity + 1) {
                Ok(room) => prop_assert!((capacity - used..=capacity).contains(&room)),
                Err(BrokenRing { claimed, .. }) => prop_assert!(claimed > used),
            }
            prop_assert!(producer.place(lie) < capacity as usize);
            shared.producer.store(lie, Ordering::Relaxed);
            let known = consumer.waiting(&shared, 0).unwrap();
            match consumer.waiting(&shared, capacity + 1) {
                Ok(waiting) => prop_assert!((known..=capacity).contains(&waiting)),
                Err(BrokenRing { claimed, .. }) => prop_assert!(!(known..=capacity).contains(&claimed)),
            }
            prop_assert!(consumer.place(lie) < capacity as usize);
        }
    }
}

#[test]
#[should_panic(expected = "a power of two of entries, not 12")]
fn a_capacity_that_cannot_be_masked_is_refused() {
    let _ = ProducerCursor::new(12, 0);
}
