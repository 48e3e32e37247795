//! A network that loses, reorders and duplicates packets by a seed. It stands between the lanes of a data plane and those of an application, or between two
//! devices. Not every kernel has a queueing discipline for that (`tc … netem`), and none counts what it did by direction.

use headway_rings::lane::{LANE_BYTES, LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_rings::mapping::SharedMapping;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One packet of so many.
const LOST_OF: u32 = 200;
const TWICE_OF: u32 = 50;
const LATE_OF: u32 = 50;
/// A delayed packet arrives behind those of the next milliseconds.
const DELAY: Duration = Duration::from_millis(2);

/// An end of a link: packets come and go by it.
pub(crate) trait LinkEnd {
    /// The next packet, if one waits.
    fn next(&mut self) -> Option<Vec<u8>>;

    /// Sends a packet; loses it when there is no room, as any queue does.
    fn put(&mut self, packet: &[u8]);
}

impl LinkEnd for LaneEnds {
    fn next(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; MOST_PACKET_BYTES];
        match self.receiver.receive(&mut buffer) {
            Ok(Taken::Packet(length)) => Some(buffer[..length].to_vec()),
            _ => None,
        }
    }

    fn put(&mut self, packet: &[u8]) {
        let _ = self.sender.send(packet);
    }
}

/// The network.
pub(crate) struct BadNetwork<E> {
    sides: [Vec<E>; 2],
    held: Vec<Held>,
    /// By the side that packets come from.
    faults: [Faults; 2],
    /// The packets that came by either side.
    pub(crate) counts: [BadCounts; 2],
}

/// The counts of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BadCounts {
    /// Packets that came.
    pub(crate) came: u32,
    pub(crate) lost: u32,
    pub(crate) twice: u32,
    pub(crate) late: u32,
}

impl BadCounts {
    /// Packets that arrive on the other side, once none is held.
    pub(crate) fn arrive(self) -> u32 {
        self.came + self.twice - self.lost
    }

    /// The counts from an earlier moment on.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            came: self.came - before.came,
            lost: self.lost - before.lost,
            twice: self.twice - before.twice,
            late: self.late - before.late,
        }
    }

    /// Asserts that the network was a bad one in this direction.
    pub(crate) fn assert_bad(self) {
        let Self {
            lost, twice, late, ..
        } = self;
        assert!(lost > 0 && twice > 0 && late > 0, "{self:?}");
    }
}

struct Held {
    until: Instant,
    side: usize,
    lane: usize,
    packet: Vec<u8>,
}

/// What befalls the packets of one direction.
struct Faults {
    lost: OneOfEach,
    twice: OneOfEach,
    late: OneOfEach,
}

impl Faults {
    fn new(seed: u32) -> Self {
        Self {
            lost: OneOfEach::new(LOST_OF, seed),
            twice: OneOfEach::new(TWICE_OF, seed + 1),
            late: OneOfEach::new(LATE_OF, seed + 2),
        }
    }
}

/// Chooses one packet of each block, at a random place. If each packet had a chance of its own, one run in hundreds would lose none of a thousand.
struct OneOfEach {
    block: u32,
    passed: u32,
    chosen: u32,
    state: u32,
}

impl OneOfEach {
    fn new(block: u32, seed: u32) -> Self {
        let mut this = Self {
            block,
            passed: 0,
            chosen: 0,
            state: seed,
        };
        this.choose();
        this
    }

    fn choose(&mut self) {
        self.state = self
            .state
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.chosen = (self.state >> 8) % self.block;
    }

    /// Whether the next packet is the chosen one of its block.
    fn next(&mut self) -> bool {
        let is_chosen = self.passed == self.chosen;
        self.passed += 1;
        if self.passed == self.block {
            self.passed = 0;
            self.choose();
        }
        is_chosen
    }
}

impl BadNetwork<LaneEnds> {
    /// A network between two memories of lanes: the data plane's and an application's.
    pub(crate) fn between(
        plane: &Arc<SharedMapping>,
        own: &Arc<SharedMapping>,
        lanes: usize,
    ) -> Self {
        let ends = |of: fn(&Arc<SharedMapping>, usize) -> Option<LaneEnds>, memory| {
            let ends = (0..lanes).map(|lane| of(memory, lane * LANE_BYTES));
            ends.collect::<Option<Vec<_>>>().expect("the lanes fit")
        };
        Self::new([
            ends(LaneEnds::of_application, plane),
            ends(LaneEnds::of_plane, own),
        ])
    }
}

impl<E: LinkEnd> BadNetwork<E> {
    /// A network of links, each with an end on either side.
    pub(crate) fn new(sides: [Vec<E>; 2]) -> Self {
        Self {
            sides,
            held: Vec::new(),
            faults: [Faults::new(11), Faults::new(1011)],
            counts: [BadCounts::default(); 2],
        }
    }

    /// Moves the waiting packets; returns whether there were any.
    pub(crate) fn turn(&mut self) -> bool {
        let mut moved = false;
        for side in 0..2 {
            for lane in 0..self.sides[side].len() {
                while let Some(packet) = self.sides[side][lane].next() {
                    moved = true;
                    self.carry(side, lane, packet);
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
            self.sides[held.side][held.lane].put(&held.packet);
        }
        moved
    }

    fn carry(&mut self, from: usize, lane: usize, packet: Vec<u8>) {
        let side = 1 - from;
        self.counts[from].came += 1;
        if self.faults[from].lost.next() {
            self.counts[from].lost += 1;
            return;
        }
        if self.faults[from].twice.next() {
            self.counts[from].twice += 1;
            self.sides[side][lane].put(&packet);
        }
        if self.faults[from].late.next() {
            self.counts[from].late += 1;
            let until = Instant::now() + DELAY;
            self.held.push(Held {
                until,
                side,
                lane,
                packet,
            });
        } else {
            self.sides[side][lane].put(&packet);
        }
    }
}
