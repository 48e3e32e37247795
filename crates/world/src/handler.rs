//! The handlers of the world: they take virtual time, and meet probes.

use headway_fiber::checkpoint_at;
use headway_runtime::{Call, Service};

use crate::network::{HandlerRun, SharedLog};
use crate::scheduler::{draw, now_ns, spend, this_thread};

/// The message of a handler's panic that a scenario asked for.
pub(crate) const PANIC: &str = "the scenario asked for a panic";

/// Takes the time that each request asks for.
pub(crate) struct Worker {
    pub(crate) log: SharedLog,
    /// The longest way between two probes, ns.
    pub(crate) probe_gap_ns: u64,
    /// Whether handlers meet probes at all.
    pub(crate) probes: bool,
    /// One in so many handlers panics; none where it is 0.
    pub(crate) panics: u64,
}

impl Service for Worker {
    fn handle(&self, call: &mut Call<'_>) {
        let body = call.payload().first_chunk();
        let delivery = u32::from_be_bytes(*body.expect("the network wrote it"));
        let begun_ns = now_ns();
        self.log.fate(delivery, |fate| fate.begun_ns.push(begun_ns));
        let mut left_ns = call.service_hint_ns();
        while left_ns > 0 {
            let step_ns = left_ns.min(draw(self.probe_gap_ns) + 1);
            let from_ns = now_ns();
            let to_ns = spend(step_ns);
            self.log.lock().runs.push(HandlerRun {
                thread: this_thread(),
                from_ns,
                to_ns,
            });
            left_ns -= step_ns;
            if self.probes {
                checkpoint_at(now_ns());
            }
        }
        assert!(self.panics == 0 || draw(self.panics) > 0, "{PANIC}");
        call.reply(b"done");
    }
}
