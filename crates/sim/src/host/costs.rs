//! The costs of moving a core.

use serde::{Deserialize, Serialize};

/// Costs of a host's machinery, ns. By default Shenango's: 5.9 µs from the decision to the new kthread's
/// first instruction, of which less than 2 µs of the daemon's (§ 3.1, Table 1 and Figure 6). The paper
/// gives the two sums; their division into steps is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostCosts {
    /// The daemon's serial work for one step: signalling a kthread to leave, or waking one. Moving a core
    /// between applications takes both steps.
    pub daemon_ns: u64,
    /// From the daemon's signal until the kthread has left.
    pub leave_ns: u64,
    /// From the daemon's wake-up until the kthread runs.
    pub wake_ns: u64,
    /// From a kthread's decision to park until the daemon has its core. Linux switches processes in
    /// about 600 ns (§ 4.1.1).
    pub park_ns: u64,
    /// The time that a kthread looks for work before it parks: a couple of microseconds (§ 5).
    pub spin_ns: u64,
    /// The daemon's serial work per request, where requests pass through it; 154 ns are the paper's 6.5
    /// million a second (§ 8). 0: requests bypass the daemon.
    pub packet_ns: u64,
    /// A kthread's work per request besides the service itself.
    pub overhead_ns: u64,
}

impl Default for HostCosts {
    fn default() -> Self {
        Self {
            daemon_ns: 950,
            leave_ns: 1_500,
            wake_ns: 2_500,
            park_ns: 600,
            spin_ns: 2_000,
            packet_ns: 0,
            overhead_ns: 0,
        }
    }
}

impl HostCosts {
    /// All costs are zero.
    pub const FREE: Self = Self {
        daemon_ns: 0,
        leave_ns: 0,
        wake_ns: 0,
        park_ns: 0,
        spin_ns: 0,
        packet_ns: 0,
        overhead_ns: 0,
    };

    /// The time from the decision to move a core until it runs the other application.
    #[must_use]
    pub fn reallocation_ns(&self) -> u64 {
        2 * self.daemon_ns + self.leave_ns + self.wake_ns
    }
}

#[cfg(test)]
mod tests {
    use super::HostCosts;

    #[test]
    fn the_defaults_add_up_to_the_papers_figures() {
        let costs = HostCosts::default();
        assert_eq!(costs.reallocation_ns(), 5_900);
        assert!(2 * costs.daemon_ns < 2_000);
    }
}
