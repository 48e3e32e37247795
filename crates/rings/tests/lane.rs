//! Lanes: packets cross whole and in order, and a side that writes anything anywhere harms nobody but itself.

use headway_rings::lane::{LANE_BYTES, LANE_PACKETS, LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_rings::mapping::SharedMapping;
use proptest::prelude::*;
use std::sync::Arc;

fn lane() -> (Arc<SharedMapping>, LaneEnds, LaneEnds) {
    let mapping = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let plane = LaneEnds::of_plane(&mapping, 0).expect("it fits");
    let application = LaneEnds::of_application(&mapping, 0).expect("it fits");
    (mapping, plane, application)
}

fn packet(number: u64) -> Vec<u8> {
    let length = (number * 37 % (MOST_PACKET_BYTES as u64 + 1)) as usize;
    (0..length).map(|at| (at as u64 ^ number) as u8).collect()
}

#[test]
fn packets_cross_both_ways_whole_and_in_order() {
    const COUNT: u64 = 20_000;
    let (_, plane, application) = lane();
    let run = |mut ends: LaneEnds| {
        let mut buffer = [0; MOST_PACKET_BYTES];
        let (mut sent, mut received) = (0, 0);
        while sent < COUNT || received < COUNT {
            if sent < COUNT && ends.sender.send(&packet(sent)).expect("honest") {
                sent += 1;
            }
            match ends.receiver.receive(&mut buffer).expect("honest") {
                Taken::Packet(length) => {
                    assert_eq!(buffer[..length], packet(received));
                    received += 1;
                }
                Taken::Invalid => panic!("nobody lies"),
                Taken::Nothing => std::thread::yield_now(),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(plane));
        run(application);
    });
}

#[test]
fn a_full_ring_and_a_long_packet_are_refused() {
    let (_, mut plane, _) = lane();
    let taken = (0..1000).filter(|_| plane.sender.send(b"x").expect("honest"));
    assert_eq!(taken.count(), LANE_PACKETS as usize);
    let (_, mut plane, _) = lane();
    let long = [0; MOST_PACKET_BYTES + 1];
    assert_eq!(plane.sender.send(&long), Ok(false));
    assert_eq!(plane.sender.send(&long[1..]), Ok(true));
}

proptest! {
    /// The application writes anything anywhere, also over lengths and indices.
    #[test]
    fn whatever_the_application_writes_the_plane_keeps_its_bounds(
        writes in proptest::collection::vec((prop_oneof![Just(0usize), Just(8), Just(16), Just(24), 0..LANE_BYTES / 8], any::<u64>()), 1..60),
    ) {
        let (mapping, mut plane, mut application) = lane();
        let words = mapping.words(0, LANE_BYTES / 8).expect("all of it");
        let mut buffer = [0; MOST_PACKET_BYTES];
        for (place, word) in writes {
            let _ = application.sender.send(b"honest");
            words.set(place, word);
            let received = (0..1000).take_while(|_| matches!(plane.receiver.receive(&mut buffer), Ok(Taken::Packet(_) | Taken::Invalid)));
            prop_assert!(received.count() <= LANE_PACKETS as usize);
            let sent = (0..1000).take_while(|_| matches!(plane.sender.send(&[7; 100]), Ok(true)));
            prop_assert!(sent.count() <= LANE_PACKETS as usize);
        }
    }

    #[test]
    fn an_impossible_length_costs_its_packet_alone(length in MOST_PACKET_BYTES as u64 + 1..) {
        let (mapping, mut plane, mut application) = lane();
        for number in 0..3 {
            application.sender.send(&packet(number)).expect("honest");
        }
        // The second slot towards the plane.
        let slots = 4096 + LANE_PACKETS as usize * 2048;
        mapping.words(slots + 2048, 1).expect("the slot").set(0, length);
        let mut buffer = [0; MOST_PACKET_BYTES];
        let mut receive = || plane.receiver.receive(&mut buffer).expect("possible indices");
        prop_assert_eq!(receive(), Taken::Packet(packet(0).len()));
        prop_assert_eq!(receive(), Taken::Invalid);
        prop_assert_eq!(receive(), Taken::Packet(packet(2).len()));
        prop_assert_eq!(receive(), Taken::Nothing);
    }
}
