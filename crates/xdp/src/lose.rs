//! The end of what a removed server had.

use crate::XdpSwitch;
use crate::layout::{LOST_SLOTS, NAT_SLOTS};
use crate::switch::{SwitchError, xdp};
use aya::programs::{TestRun, TestRunOptions};
use headway_policy::rack::ServerId;

impl XdpSwitch {
    /// Ends what a removed server has: nobody awaits its answers any more, and those that still come match no request. Returns the copies of requests that it
    /// had. Publish tables without it first: `without` is their generation. Waits until no packet goes by older ones: not at all where
    /// [that is so](Self::settled_generation).
    ///
    /// # Errors
    /// [`SwitchError`] when the kernel refuses.
    pub fn lose(&mut self, server: ServerId, without: u64) -> Result<u64, SwitchError> {
        let before = self.registers()?.counts.lost;
        self.grace.wait(without);
        for first in (0..NAT_SLOTS).step_by(LOST_SLOTS) {
            let mut packet = [0; 64];
            packet[..4].copy_from_slice(&u32::from(server.0).to_ne_bytes());
            packet[4..8].copy_from_slice(&(first as u32).to_ne_bytes());
            xdp(&mut self.program, "lose")?
                .test_run(TestRunOptions {
                    data_in: Some(&packet),
                    ..TestRunOptions::default()
                })
                .map_err(SwitchError::Program)?;
        }
        Ok(self.registers()?.counts.lost - before)
    }
}
