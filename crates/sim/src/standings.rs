//! Idle cores and waiting requests of all servers, and the time that cores idle while a request waits.

use crate::server::Standing;

/// The counts of one server, or of all servers.
#[derive(Clone, Copy, Debug, Default)]
struct StandingCounts {
    idle: usize,
    waiting: usize,
}

/// The counts of servers that form one system: the servers of a rack, or the instances of one server with several
/// dispatchers. Such a system wastes a core that idles while a request waits anywhere, at another server or in the switch.
/// A server alone cannot see that.
#[derive(Clone, Debug)]
pub(crate) struct Standings {
    each: Vec<StandingCounts>,
    total: StandingCounts,
    wasted_ns: u64,
}

impl Standings {
    /// Servers with these numbers of idle cores and no waiting request.
    pub(crate) fn new(idle: impl IntoIterator<Item = usize>) -> Self {
        let each: Vec<_> = idle
            .into_iter()
            .map(|idle| StandingCounts { idle, waiting: 0 })
            .collect();
        Self {
            total: StandingCounts {
                idle: each.iter().map(|counts| counts.idle).sum(),
                waiting: 0,
            },
            each,
            wasted_ns: 0,
        }
    }

    /// Updates a server's counts after it acted.
    #[inline]
    pub(crate) fn note(&mut self, at: usize, server: &(impl Standing + ?Sized)) {
        let now = StandingCounts {
            idle: server.idle(),
            waiting: server.waiting(),
        };
        let before = std::mem::replace(&mut self.each[at], now);
        self.total.idle = self.total.idle - before.idle + now.idle;
        self.total.waiting = self.total.waiting - before.waiting + now.waiting;
    }

    /// Accounts for `ns` nanoseconds during which the switch held `held` requests.
    #[inline]
    pub(crate) fn elapsed(&mut self, ns: u64, held: usize) {
        if self.total.waiting + held > 0 {
            self.wasted_ns += self.total.idle as u64 * ns;
        }
    }

    /// Cores that are idle.
    pub(crate) fn idle(&self) -> usize {
        self.total.idle
    }

    /// Requests that wait at the servers.
    pub(crate) fn waiting(&self) -> usize {
        self.total.waiting
    }

    /// Core time idle while a request waited, ns.
    pub(crate) fn wasted_ns(&self) -> u64 {
        self.wasted_ns
    }
}
