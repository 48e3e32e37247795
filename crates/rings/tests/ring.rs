//! Rings in memory: entries as they were written, across threads, and beside a side that writes anything.

use headway_rings::mapping::SharedMapping;
use headway_rings::ring::{ConsumerRing, PacketDescriptor, ProducerRing, RingPlaces};
use proptest::prelude::*;
use std::sync::Arc;

const PLACES: RingPlaces = RingPlaces {
    producer: 0,
    consumer: 64,
    flags: 128,
    entries: 192,
};

fn memory() -> Arc<SharedMapping> {
    Arc::new(SharedMapping::anonymous(4096).expect("memory"))
}

#[test]
fn descriptors_cross_from_thread_to_thread_in_order() {
    const COUNT: u64 = 200_000;
    let mapping = memory();
    let mut producer = ProducerRing::<2>::new(&mapping, PLACES, 64).expect("it fits");
    let mut consumer = ConsumerRing::<2>::new(&mapping, PLACES, 64).expect("it fits");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..COUNT {
                let packet = PacketDescriptor {
                    address: number << 11,
                    length: number as u32,
                    options: !(number as u32),
                };
                while !producer.push(packet.words()) {
                    producer.publish();
                    std::thread::yield_now();
                }
                if number.is_multiple_of(7) {
                    producer.publish();
                }
            }
            producer.publish();
        });
        for number in 0..COUNT {
            let words = loop {
                match consumer.pop() {
                    Some(words) => break words,
                    None => consumer.release(),
                }
                std::thread::yield_now();
            };
            let packet = PacketDescriptor::of_words(words);
            assert_eq!(packet.address, number << 11);
            assert_eq!(
                (packet.length, packet.options),
                (number as u32, !(number as u32))
            );
        }
    });
}

#[test]
fn a_ring_that_does_not_fit_its_memory_is_none() {
    let mapping = memory();
    assert!(ProducerRing::<2>::new(&mapping, PLACES, 128).is_some());
    assert!(ProducerRing::<2>::new(&mapping, PLACES, 256).is_none());
    let odd = RingPlaces {
        producer: 2,
        ..PLACES
    };
    assert!(ConsumerRing::<1>::new(&mapping, odd, 8).is_none());
}

proptest! {
    /// The other side writes anything anywhere: no panic, and never more entries than the ring has.
    #[test]
    fn whatever_the_other_side_writes_the_ends_keep_their_bounds(
        writes in proptest::collection::vec((0..512usize, any::<u64>()), 1..200),
    ) {
        let mapping = memory();
        let words = mapping.words(0, 512).expect("all of it");
        let mut producer = ProducerRing::<2>::new(&mapping, PLACES, 16).expect("it fits");
        let mut consumer = ConsumerRing::<1>::new(&mapping, PLACES, 16).expect("it fits");
        for (place, word) in writes {
            words.set(place, word);
            let pushed = (0..40).take_while(|_| producer.push([1, 2])).count();
            prop_assert!(pushed <= 16);
            producer.publish();
            words.set(place, word);
            let popped = (0..40).take_while(|_| consumer.pop().is_some()).count();
            prop_assert!(popped <= 16);
            consumer.release();
        }
    }
}
