//! Packet steering: which kthread of an application gets a flow's packets (Shenango § 4.2, "Packet steering").
//!
//! The paper hashes a packet's flow and picks one of the application's cores by that hash. It leaves open where a flow goes when cores come and go. We chose
//! that few flows move, since a flow that moves may have its packets reordered:
//!
//! - each flow has a home among all kthreads, and is there while the home has a core;
//! - else it goes to the kthread with a core that has the greatest weight for this flow.
//!
//! So a kthread that loses its core moves its own flows only, and one that gains a core only takes flows to itself.

use super::KthreadId;

/// The most kthreads of an application that gets packets: one bit each in a word.
pub const MOST_KTHREADS: usize = 64;

/// The destination of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowPlace {
    /// The kthread.
    pub kthread: KthreadId,
    /// Whether that kthread has a core. If not, no kthread has one, and the application must be woken.
    pub is_active: bool,
}

/// The steering of one application's flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowSteering {
    /// At least 1 and at most [`MOST_KTHREADS`].
    kthreads: u32,
    active: u64,
}

impl FlowSteering {
    /// The steering of an application whose kthreads have no core yet. `None` when `kthreads` is 0 or above [`MOST_KTHREADS`].
    #[must_use]
    pub fn new(kthreads: usize) -> Option<Self> {
        let is_possible = (1..=MOST_KTHREADS).contains(&kthreads);
        is_possible.then_some(Self {
            kthreads: kthreads as u32,
            active: 0,
        })
    }

    /// Sets which kthreads have a core, one bit each. Bits beyond the kthreads are ignored.
    pub fn set_active(&mut self, active: u64) {
        self.active = active & (u64::MAX >> (MOST_KTHREADS as u32 - self.kthreads));
    }

    /// The kthreads that have a core, one bit each.
    #[inline]
    #[must_use]
    pub fn active(&self) -> u64 {
        self.active
    }

    /// The destination of a flow with this hash.
    #[inline]
    #[must_use]
    pub fn steer(&self, flow: u32) -> FlowPlace {
        let home = flow % self.kthreads;
        let kthread = if self.active >> home & 1 == 1 {
            home
        } else {
            self.heaviest(flow).unwrap_or(home)
        };
        FlowPlace {
            kthread: KthreadId(kthread as u16),
            is_active: self.active != 0,
        }
    }

    /// The kthread with a core that has the greatest weight for this flow.
    fn heaviest(&self, flow: u32) -> Option<u32> {
        let mut left = self.active;
        let kthreads = core::iter::from_fn(|| {
            let kthread = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(kthread)
        });
        kthreads.max_by_key(|&kthread| weight(flow, kthread))
    }
}

/// The weight of a kthread for a flow: a hash of both, without ties between the kthreads of one flow, since each step can be undone.
fn weight(flow: u32, kthread: u32) -> u32 {
    let mut bits = flow ^ (kthread + 1).wrapping_mul(0x9E37_79B9);
    bits = (bits ^ bits >> 16).wrapping_mul(0x7FEB_352D);
    bits = (bits ^ bits >> 15).wrapping_mul(0x846C_A68B);
    bits ^ bits >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn steering(kthreads: usize, active: u64) -> FlowSteering {
        let mut steering = FlowSteering::new(kthreads).expect("a possible number");
        steering.set_active(active);
        steering
    }

    fn has(active: u64, kthread: KthreadId) -> bool {
        active >> kthread.0 & 1 == 1
    }

    #[test]
    fn an_application_has_one_to_64_kthreads() {
        assert_eq!(FlowSteering::new(0), None);
        assert_eq!(FlowSteering::new(MOST_KTHREADS + 1), None);
        assert_eq!(steering(3, u64::MAX).active(), 0b111);
        assert_eq!(steering(MOST_KTHREADS, u64::MAX).active(), u64::MAX);
    }

    proptest! {
        /// Any hash and any set have a place, always the same one; it has a core where any has one.
        #[test]
        fn every_flow_goes_to_a_kthread_with_a_core(
            kthreads in 1..=MOST_KTHREADS, active: u64, flow: u32,
        ) {
            let steering = steering(kthreads, active);
            let place = steering.steer(flow);
            prop_assert!(place.kthread.index() < kthreads);
            prop_assert_eq!(place.is_active, steering.active() != 0);
            prop_assert_eq!(has(steering.active(), place.kthread), place.is_active);
            prop_assert_eq!(place, steering.steer(flow));
        }

        /// A flow is at home while its home has a core, whatever happens to the others.
        #[test]
        fn a_flow_stays_at_home(
            kthreads in 1..=MOST_KTHREADS, others in prop::collection::vec(any::<u64>(), 1..9), flow: u32,
        ) {
            let home = steering(kthreads, 0).steer(flow).kthread;
            for active in others {
                let steering = steering(kthreads, active | 1 << home.0);
                prop_assert_eq!(steering.steer(flow).kthread, home);
            }
        }

        /// Of a kthread that loses its core the flows move, and no others. So where it gains one, flows move to it only.
        #[test]
        fn a_flow_stays_while_its_kthread_has_a_core_and_none_comes(
            kthreads in 2..=MOST_KTHREADS, active: u64, lost: u64, flow: u32,
        ) {
            let before = steering(kthreads, active);
            let after = steering(kthreads, active & !lost);
            let (was, is) = (before.steer(flow).kthread, after.steer(flow).kthread);
            if has(after.active(), was) {
                prop_assert_eq!(was, is);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The flows of each set of kthreads with cores are divided evenly, also those that are not at home.
        #[test]
        fn flows_spread_evenly(
            kthreads in 1..=MOST_KTHREADS, active: u64, first: u32,
        ) {
            /// Flows for each kthread with a core. Six standard deviations of a random division are 85.
            const EACH: u32 = 200;
            let steering = steering(kthreads, active);
            prop_assume!(steering.active() != 0);
            let mut rng = crate::Rng::new(u64::from(first));
            let mut counts = vec![0u32; kthreads];
            for _ in 0..EACH * steering.active().count_ones() {
                let flow = rng.next_u64() as u32;
                counts[steering.steer(flow).kthread.index()] += 1;
            }
            for (kthread, count) in counts.into_iter().enumerate() {
                let expected = if has(steering.active(), KthreadId(kthread as u16)) {
                    EACH - 100..=EACH + 100
                } else {
                    0..=0
                };
                prop_assert!(expected.contains(&count), "kthread {kthread} has {count} flows");
            }
        }
    }
}
