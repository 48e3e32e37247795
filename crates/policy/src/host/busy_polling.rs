//! Busy polling: whether a daemon without a core of its own polls its device, sleeps until the device wakes it, or sleeps without it.
//!
//! The paper's daemon spins on a core of its own (Shenango § 4). One that shares its cores with applications may only spin while nobody else wants the core
//! beneath it. It then saves the wake-up of an idle core, which costs 10 to 50 µs on a virtual machine. We chose to poll for [`BUSY_POLL_NS`] after the last
//! packet: about the cost of one wake-up, so that polling in vain costs about as much again.
//!
//! A daemon with a real-time priority that never slept would be stopped for 50 ms of every second, or others in its place (sched(7)). So one that is limited
//! does not poll in the last fifth of every [`BUSY_POLL_WINDOW_NS`].
//!
//! While every application behind the device is awake, the device does not wake the daemon, as a driver switches a card's interrupts off while it polls: the
//! application rings when it runs out of packets, and the daemon's regular looks find those that come while it computes.

/// How long a daemon polls after the last packet, ns.
pub const BUSY_POLL_NS: u64 = 50_000;

/// The time of which a limited daemon polls at most four fifths, ns.
pub const BUSY_POLL_WINDOW_NS: u64 = 100_000_000;

/// The choice between polling and sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusyPolling {
    until_ns: u64,
    is_limited: bool,
}

impl BusyPolling {
    /// `is_limited`: the system stops real-time threads that keep a core, and the daemon is one.
    #[must_use]
    pub fn new(is_limited: bool) -> Self {
        Self {
            until_ns: 0,
            is_limited,
        }
    }

    /// Packets moved at this time.
    #[inline]
    pub fn packets_moved(&mut self, now_ns: u64) {
        self.until_ns = now_ns.saturating_add(BUSY_POLL_NS);
    }

    /// Whether a packet must wake the daemon from its sleep, for the sake of an application behind the device that has so many cores. `parks`: kthreads
    /// without work give their cores back; else they sleep on them.
    #[inline]
    #[must_use]
    pub fn is_woken_for(cores: usize, parks: bool) -> bool {
        cores == 0 || !parks
    }

    /// Whether to poll on. `has_idle_core`: no application has the core on which the daemon runs.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, now_ns: u64, has_idle_core: bool) -> bool {
        let rests = self.is_limited && now_ns % BUSY_POLL_WINDOW_NS >= BUSY_POLL_WINDOW_NS / 5 * 4;
        has_idle_core && now_ns < self.until_ns && !rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_polls_for_its_span_after_the_last_packet_on_an_idle_core_only(
            moved in proptest::collection::vec(0..1u64 << 18, 0..8), after_ns in 0..1u64 << 18, base_ns in 0..1u64 << 40, has_idle_core: bool,
        ) {
            let now_ns = base_ns + after_ns;
            let mut moved: Vec<u64> = moved.iter().map(|moved_ns| base_ns + moved_ns).collect();
            moved.sort_unstable();
            let (mut polling, mut limited) = (BusyPolling::new(false), BusyPolling::new(true));
            for &moved_ns in moved.iter().filter(|&&moved_ns| moved_ns <= now_ns) {
                polling.packets_moved(moved_ns);
                limited.packets_moved(moved_ns);
            }
            let is_recent = moved
                .iter()
                .any(|&moved_ns| moved_ns <= now_ns && now_ns - moved_ns < BUSY_POLL_NS);
            prop_assert_eq!(polling.goes_on(now_ns, has_idle_core), is_recent && has_idle_core);
            let rests = now_ns % 100_000_000 >= 80_000_000;
            prop_assert_eq!(limited.goes_on(now_ns, has_idle_core), is_recent && has_idle_core && !rests);
        }
    }

    #[test]
    fn a_packet_wakes_the_daemon_for_applications_that_may_be_asleep() {
        for parks in [true, false] {
            assert!(BusyPolling::is_woken_for(0, parks));
            assert_eq!(BusyPolling::is_woken_for(1, parks), !parks);
        }
    }

    #[test]
    fn before_the_first_packet_and_at_the_end_of_time_it_is_right_as_well() {
        assert!(!BusyPolling::new(false).goes_on(0, true));
        let mut polling = BusyPolling::new(false);
        polling.packets_moved(u64::MAX - 1);
        assert!(polling.goes_on(u64::MAX - 1, true));
    }
}
