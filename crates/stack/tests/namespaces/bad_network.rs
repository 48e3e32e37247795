//! A network that loses, reorders and duplicates packets by a seed. It stands between the lanes of a data plane and those of an application. Not every kernel
//! has a queueing discipline for that.

use headway_rings::lane::{LANE_BYTES, LaneEnds, MOST_PACKET_BYTES, PacketReceiver, Taken};
use headway_rings::mapping::SharedMapping;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The rates per thousand packets.
const LOST: u32 = 5;
const TWICE: u32 = 20;
const LATE: u32 = 20;
/// A delayed packet arrives behind those of the next milliseconds.
const DELAY: Duration = Duration::from_millis(2);

/// The network.
pub(crate) struct BadNetwork {
    /// The lanes towards the data plane, then those towards the application.
    sides: [Vec<LaneEnds>; 2],
    held: Vec<Held>,
    state: u32,
    pub(crate) counts: BadCounts,
}

/// The network's counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BadCounts {
    pub(crate) lost: u32,
    pub(crate) twice: u32,
    pub(crate) late: u32,
}

struct Held {
    until: Instant,
    side: usize,
    lane: usize,
    packet: Vec<u8>,
}

impl BadNetwork {
    /// A network between two memories of lanes: the data plane's and an application's.
    pub(crate) fn new(plane: &Arc<SharedMapping>, own: &Arc<SharedMapping>, lanes: usize) -> Self {
        let ends = |of: fn(&Arc<SharedMapping>, usize) -> Option<LaneEnds>, memory| {
            let ends = (0..lanes).map(|lane| of(memory, lane * LANE_BYTES));
            ends.collect::<Option<Vec<_>>>().expect("the lanes fit")
        };
        Self {
            sides: [
                ends(LaneEnds::of_application, plane),
                ends(LaneEnds::of_plane, own),
            ],
            held: Vec::new(),
            state: 11,
            counts: BadCounts::default(),
        }
    }

    fn chance(&mut self, of_thousand: u32) -> bool {
        self.state = self
            .state
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        (self.state >> 8) % 1000 < of_thousand
    }

    /// Moves the waiting packets; returns whether there were any.
    pub(crate) fn turn(&mut self) -> bool {
        let mut moved = false;
        for side in 0..2 {
            for lane in 0..self.sides[side].len() {
                while let Some(packet) = next(&mut self.sides[side][lane].receiver) {
                    moved = true;
                    self.carry(1 - side, lane, packet);
                }
            }
        }
        let now = Instant::now();
        let mut at = 0;
        while at < self.held.len() {
            if self.held[at].until > now {
                at += 1;
                continue;
            }
            let held = self.held.remove(at);
            self.put(held.side, held.lane, &held.packet);
        }
        moved
    }

    fn carry(&mut self, side: usize, lane: usize, packet: Vec<u8>) {
        if self.chance(LOST) {
            self.counts.lost += 1;
            return;
        }
        if self.chance(TWICE) {
            self.counts.twice += 1;
            self.put(side, lane, &packet);
        }
        if self.chance(LATE) {
            self.counts.late += 1;
            let until = Instant::now() + DELAY;
            self.held.push(Held {
                until,
                side,
                lane,
                packet,
            });
        } else {
            self.put(side, lane, &packet);
        }
    }

    /// A full lane loses the packet, as any queue.
    fn put(&mut self, side: usize, lane: usize, packet: &[u8]) {
        let _ = self.sides[side][lane].sender.send(packet);
    }
}

fn next(receiver: &mut PacketReceiver) -> Option<Vec<u8>> {
    let mut buffer = [0; MOST_PACKET_BYTES];
    match receiver.receive(&mut buffer) {
        Ok(Taken::Packet(length)) => Some(buffer[..length].to_vec()),
        _ => None,
    }
}
