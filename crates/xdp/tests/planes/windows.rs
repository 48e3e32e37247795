//! The end of a window of bursts (Pallas, section 4.5).

use crate::addresses::{CLIENTS_SIDE, Family};
use crate::agree::objects_in_namespaces;
use crate::common::maps::map_of;
use crate::common::*;
use crate::{Planes, WINDOW_NS};
use aya::maps::{Array, Map};
use headway_net::header::{Flag, Header};
use headway_policy::rack::{Cloning, Overflow};
use std::time::{Duration, Instant};

/// The bits of an arrival's number by which the program reads the clock no more often than it must.
const BETWEEN_LOOKS: u64 = 0x3ff;

impl Planes {
    /// A window passes. The test's own clock moves on; for the program, whose clock is the kernel's, the arrivals so far become those of the window before,
    /// and the next one reads the clock.
    pub(crate) fn pass_window(&mut self) {
        self.now_ns = (self.now_ns / WINDOW_NS + 1) * WINDOW_NS;
        let registers = Map::Array(map_of(&mut self.xdp, "bursts"));
        let mut registers: Array<_, u64> = registers.try_into().expect("the registers of bursts");
        for group in 0..registers.len() {
            let arrivals = registers.get(&group, 0).expect("a register");
            let (window, arrivals) = (arrivals >> 32, arrivals & 0xffff_ffff);
            let before = (window as u32).wrapping_sub(1);
            let passed = u64::from(before) << 32 | arrivals | BETWEEN_LOOKS;
            registers.set(group, passed, 0).expect("set");
        }
    }

    /// Whether the program sends a request of type 0 to two servers.
    fn is_cloned(&mut self, index: u32) -> bool {
        let header = Header {
            class: 0,
            flag: Flag::REQUEST,
            index,
            time_ns: 0,
        };
        let frame = self.client_frame(header);
        let ran = self.xdp_run(CLIENTS_SIDE, &frame.bytes());
        ran.order.is_some()
    }
}

/// On the kernel's own clock.
#[test]
fn a_burst_ends_with_its_window() {
    let Some(objects) = objects_in_namespaces("the end of a window") else {
        return;
    };
    net::enter_namespace();
    const WINDOW: Duration = Duration::from_millis(20);
    let cloning = Cloning::Calmest(WINDOW.as_nanos() as u64);
    let excess = (cloning, Overflow::Off);
    let mut planes = Planes::new(&objects.rack, Family::Ip4, excess, 5);
    let begun = Instant::now();
    for round in 0..3 {
        // Two requests of a window are a burst, where even one takes longer than a window.
        let burst = (0..).find(|index| planes.is_cloned(*index));
        assert!(burst > Some(0), "round {round}: one request is no burst");
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(2 * WINDOW);
    }
}
