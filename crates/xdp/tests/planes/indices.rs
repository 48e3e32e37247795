//! The index that each switch gives a request towards its server, and that the server's packets carry: a slot, and a count of the times that the slot
//! was taken, which begins at a hash of seed and slot.

use crate::UnderWay;
use crate::common::maps::map_of;
use aya::maps::{Array, Map};
use headway_xdp::XdpSwitch;
use std::collections::HashMap;

/// The slots of either switch.
const SLOTS: u32 = 65_536;
/// Slots at the beginning of each CPU's ring whose count is at its end.
const ROLLING: u32 = 64;
/// Where the configuration has the seed.
const SEED_AT: usize = 40;
type NatBytes = [u8; 64];

/// The indices of both switches.
pub(crate) struct Indices {
    seed: u64,
    /// The control plane's own index, which no request gets.
    question: u32,
    /// Slots of a CPU.
    ring: u32,
    /// Slots that each CPU took or passed over.
    taken: Vec<u32>,
    in_kernel: HashMap<u32, u32>,
    in_user: HashMap<u32, u32>,
}

impl Indices {
    /// Those of a switch that has got no packet yet. Some of its slots act as if they had been taken so often that their count begins anew.
    pub(crate) fn of(xdp: &mut XdpSwitch) -> Self {
        let config = Map::Array(map_of(xdp, ".rodata"));
        let config: Array<_, [u8; 64]> = config.try_into().expect("the configuration");
        let config = config.get(&0, 0).expect("its bytes");
        let seed = config[SEED_AT..SEED_AT + 8]
            .try_into()
            .expect("eight bytes");
        let cpus = aya::util::nr_cpus().expect("the number of CPUs");
        let ring = SLOTS / cpus.next_power_of_two() as u32;
        let mut all = Self {
            seed: u64::from_ne_bytes(seed),
            question: xdp.question_index(),
            ring,
            taken: vec![0; cpus],
            in_kernel: HashMap::new(),
            in_user: HashMap::new(),
        };
        let entries = Map::Array(map_of(xdp, "nat"));
        let mut entries: Array<_, NatBytes> = entries.try_into().expect("the entries");
        for slot in (0..SLOTS).filter(|slot| slot % ring < ROLLING) {
            let index = slot | !(SLOTS - 1);
            let mut bytes = [0; 64];
            bytes[..4].copy_from_slice(&index.to_ne_bytes());
            entries.set(slot, bytes, 0).expect("the slot");
            all.in_kernel.insert(slot, index);
        }
        all
    }

    /// The seed that both switches have.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The index that the program gives the next request on this CPU.
    pub(crate) fn next_in_kernel(&mut self, cpu: usize, under_way: &[UnderWay]) -> u32 {
        loop {
            let slot = cpu as u32 * self.ring + self.taken[cpu] % self.ring;
            self.taken[cpu] += 1;
            if under_way.iter().any(|at| at.xdp_index % SLOTS == slot) {
                continue;
            }
            // An index of 0 is that of a slot that was never taken.
            let before = self.in_kernel.get(&slot).filter(|index| **index != 0);
            let before = before.copied().unwrap_or(self.first(slot));
            let mut index = slot | (before & !(SLOTS - 1)).wrapping_add(SLOTS);
            if index == self.question {
                index = index.wrapping_add(SLOTS);
            }
            self.in_kernel.insert(slot, index);
            return index;
        }
    }

    /// Whether each CPU has taken all of its slots.
    pub(crate) fn come_round(&self) -> bool {
        let mut taken = self.taken.iter().filter(|&&taken| taken > 0);
        taken.all(|&taken| taken > self.ring)
    }

    /// Checks the index that the user-space switch gave a request. Its slot is any that is free.
    pub(crate) fn given_in_user(&mut self, index: u32, under_way: &[UnderWay]) {
        let slot = index % SLOTS;
        let is_free = |at: &UnderWay| at.user_index.is_none_or(|other| other % SLOTS != slot);
        assert!(under_way.iter().all(is_free), "slot {slot} is taken");
        let before = self.in_user.get(&slot).copied();
        let before = before.unwrap_or(slot | (self.first(slot) & !(SLOTS - 1)));
        assert_eq!(index, before.wrapping_add(SLOTS), "slot {slot}");
        self.in_user.insert(slot, index);
    }

    /// Where the count of a slot begins, in the bits above the slot's number: the finaliser of SplitMix64.
    fn first(&self, slot: u32) -> u32 {
        let mut mixed = self.seed ^ (u64::from(slot) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb_u64)] {
            mixed = (mixed ^ (mixed >> shift)).wrapping_mul(factor);
        }
        (mixed >> 32) as u32
    }
}
