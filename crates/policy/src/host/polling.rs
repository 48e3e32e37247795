//! Lane polling: which kthreads' egress lanes a data plane reads in a turn (Shenango § 4.2, "Polling transmission queues").
//!
//! The paper reads the lanes of kthreads with a core only, so that the cost grows with the cores and not with the kthreads. It leaves open what happens to
//! packets in other lanes. We chose:
//!
//! - The lane of a kthread that lost its core is read until it is found empty, since the kthread's last packets are still in it.
//! - Every [`FULL_LOOK_TURNS`]th turn reads all lanes, since an application's other threads write to lanes of kthreads without a core too.
//! - So does the first turn after the engine slept, since those threads may have written meanwhile.
//!
//! In each turn an engine asks [`FullLooks::next_turn`], calls [`look_everywhere`](LanePolling::look_everywhere) when a full look is due, then
//! [`set_active`](LanePolling::set_active). It reads the lanes that [`polled`](LanePolling::polled) names, and reports those that it
//! [found empty](LanePolling::found_empty).

use super::{KthreadId, MOST_KTHREADS};

/// The number of turns from one look at all lanes to the next. It bounds how long a packet waits in the lane of a kthread without a core.
pub const FULL_LOOK_TURNS: u32 = 256;

/// The rhythm of a data plane's looks at all lanes of all applications.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FullLooks {
    turns: u32,
}

impl FullLooks {
    /// Begins a turn. Returns whether it looks at all lanes.
    #[inline]
    #[must_use]
    pub fn next_turn(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(FULL_LOOK_TURNS)
    }
}

/// The choice of lanes of one application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LanePolling {
    /// All kthreads, one bit each.
    all: u64,
    /// Kthreads that have a core.
    active: u64,
    /// Kthreads without a core whose lanes may hold packets.
    draining: u64,
}

impl LanePolling {
    /// The choice for an application whose kthreads have no core yet and whose lanes are empty. `None` when `kthreads` is 0 or above [`MOST_KTHREADS`].
    #[must_use]
    pub fn new(kthreads: usize) -> Option<Self> {
        let is_possible = (1..=MOST_KTHREADS).contains(&kthreads);
        is_possible.then(|| Self {
            all: u64::MAX >> (MOST_KTHREADS - kthreads),
            active: 0,
            draining: 0,
        })
    }

    /// Sets which kthreads have a core, one bit each. Bits beyond the kthreads are ignored.
    #[inline]
    pub fn set_active(&mut self, active: u64) {
        let active = active & self.all;
        self.draining = (self.draining | self.active) & !active;
        self.active = active;
    }

    /// Has every lane read until it is found empty: a full look is due, or the engine slept.
    #[inline]
    pub fn look_everywhere(&mut self) {
        self.draining = self.all;
    }

    /// The kthreads whose lanes this turn reads, one bit each.
    #[inline]
    #[must_use]
    pub fn polled(&self) -> u64 {
        self.active | self.draining
    }

    /// The engine read this kthread's lane and found no more packets in it.
    #[inline]
    pub fn found_empty(&mut self, kthread: KthreadId) {
        self.draining &= !(1 << kthread.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The packets that the engine of these tests takes from a lane in one turn, at most.
    const BATCH: u32 = 4;

    /// An engine with the lanes of one application.
    struct PollingEngine {
        polling: LanePolling,
        looks: FullLooks,
        /// Packets in each lane.
        packets: Vec<u32>,
    }

    /// A turn of the engine, one bit for each kthread.
    #[derive(Clone, Copy)]
    struct PolledTurn {
        /// Whether it was a full look.
        is_full: bool,
        active: u64,
        /// Lanes that had a packet before it.
        filled: u64,
        polled: u64,
        /// Lanes that were found empty.
        emptied: u64,
    }

    impl PollingEngine {
        fn new(kthreads: usize) -> Self {
            Self {
                polling: LanePolling::new(kthreads).expect("a possible number"),
                looks: FullLooks::default(),
                packets: vec![0; kthreads],
            }
        }

        fn write(&mut self, lanes: u64, packets: u32) {
            for (kthread, waiting) in self.packets.iter_mut().enumerate() {
                *waiting += packets * (lanes >> kthread & 1) as u32;
            }
        }

        fn turn(&mut self, active: u64) -> PolledTurn {
            let is_full = self.looks.next_turn();
            if is_full {
                self.polling.look_everywhere();
            }
            self.polling.set_active(active);
            let polled = self.polling.polled();
            let (mut filled, mut emptied) = (0, 0);
            for (kthread, waiting) in self.packets.iter_mut().enumerate() {
                filled |= u64::from(*waiting > 0) << kthread;
                if polled >> kthread & 1 == 1 {
                    if *waiting < BATCH {
                        emptied |= 1 << kthread;
                        self.polling.found_empty(KthreadId(kthread as u16));
                    }
                    *waiting = waiting.saturating_sub(BATCH);
                }
            }
            PolledTurn {
                is_full,
                active,
                filled,
                polled,
                emptied,
            }
        }
    }

    /// A while of an application's life: these kthreads have a core, packets come into these lanes, then turns follow.
    #[derive(Clone, Debug)]
    struct PollingPhase {
        active: u64,
        written: u64,
        packets: u32,
        turns: u32,
    }

    fn phases() -> impl Strategy<Value = Vec<PollingPhase>> {
        let turns = prop_oneof![1..10u32, 1..2 * FULL_LOOK_TURNS];
        let phase = (any::<u64>(), any::<u64>(), 0..3 * BATCH, turns);
        let phase = phase.prop_map(|(active, written, packets, turns)| PollingPhase {
            active,
            written,
            packets,
            turns,
        });
        prop::collection::vec(phase, 1..8)
    }

    /// The turns of an application that lives so.
    fn lived(kthreads: usize, phases: &[PollingPhase]) -> Vec<PolledTurn> {
        let mut engine = PollingEngine::new(kthreads);
        let mut turns = Vec::new();
        for phase in phases {
            engine.write(phase.written, phase.packets);
            turns.extend((0..phase.turns).map(|_| engine.turn(phase.active)));
        }
        turns
    }

    #[test]
    fn an_application_has_one_to_64_lanes() {
        assert_eq!(LanePolling::new(0), None);
        assert_eq!(LanePolling::new(MOST_KTHREADS + 1), None);
        for (kthreads, all) in [(1, 1), (3, 0b111), (MOST_KTHREADS, u64::MAX)] {
            let mut polling = LanePolling::new(kthreads).expect("a possible number");
            assert_eq!(polling.polled(), 0);
            polling.set_active(u64::MAX);
            assert_eq!(polling.polled(), all);
        }
    }

    #[test]
    fn every_256th_turn_is_a_full_look_also_where_the_count_wraps() {
        let mut looks = FullLooks {
            turns: u32::MAX - 2 * FULL_LOOK_TURNS + 1,
        };
        for _ in 0..4 {
            assert!((1..FULL_LOOK_TURNS).all(|_| !looks.next_turn()));
            assert!(looks.next_turn());
        }
    }

    proptest! {
        #[test]
        fn the_lane_of_a_kthread_with_a_core_is_read_every_turn(
            kthreads in 1..=MOST_KTHREADS, phases in phases(),
        ) {
            let all = u64::MAX >> (MOST_KTHREADS - kthreads);
            for turn in lived(kthreads, &phases) {
                prop_assert_eq!(turn.active & all & !turn.polled, 0);
                prop_assert_eq!(turn.polled & !all, 0, "there is no such lane");
            }
        }

        /// Whoever wrote the packet, and whether its kthread ever has a core.
        #[test]
        fn the_lane_of_a_packet_is_read_within_256_turns(
            kthreads in 1..=MOST_KTHREADS, phases in phases(),
        ) {
            let mut unread_turns = vec![0; kthreads];
            for turn in lived(kthreads, &phases) {
                for (kthread, unread_turns) in unread_turns.iter_mut().enumerate() {
                    let waits = (turn.filled & !turn.polled) >> kthread & 1 == 1;
                    *unread_turns = if waits { *unread_turns + 1 } else { 0 };
                    prop_assert!(*unread_turns < FULL_LOOK_TURNS, "kthread {kthread}");
                }
            }
        }

        /// A lane is read in every turn from the last one with a core, or from a full look, until it was found empty. Then it is left alone.
        #[test]
        fn a_drained_lane_without_a_core_is_not_read_until_the_next_full_look(
            kthreads in 1..=MOST_KTHREADS, phases in phases(),
        ) {
            let all = u64::MAX >> (MOST_KTHREADS - kthreads);
            let mut drained = all;
            for turn in lived(kthreads, &phases) {
                if turn.is_full {
                    drained = 0;
                }
                drained &= !turn.active;
                prop_assert_eq!(turn.polled, all & !drained);
                drained |= turn.emptied & !turn.active;
            }
        }

        #[test]
        fn a_kthread_that_loses_its_core_is_read_until_its_last_packet_is_out(
            kthreads in 1..=MOST_KTHREADS, lost in any::<prop::sample::Index>(), packets in 0..20 * BATCH,
        ) {
            let mut engine = PollingEngine::new(kthreads);
            let lost = 1 << lost.index(kthreads);
            let _ = engine.turn(u64::MAX);
            engine.write(lost, packets);
            for _ in 0..=packets / BATCH {
                prop_assert_eq!(engine.turn(!lost).polled & lost, lost);
            }
            prop_assert!(engine.packets.iter().all(|&waiting| waiting == 0));
            prop_assert_eq!(engine.turn(!lost).polled & lost, 0);
        }

        #[test]
        fn after_a_sleep_one_turn_reads_all_lanes(
            kthreads in 1..=MOST_KTHREADS, active: u64, written: u64,
        ) {
            let all = u64::MAX >> (MOST_KTHREADS - kthreads);
            let mut engine = PollingEngine::new(kthreads);
            let _ = engine.turn(active);
            engine.write(written, 1);
            engine.polling.look_everywhere();
            prop_assert_eq!(engine.turn(active).polled, all);
            prop_assert_eq!(engine.turn(active).polled, active & all);
            prop_assert!(engine.packets.iter().all(|&waiting| waiting == 0));
        }
    }
}
