//! Idle cores and waiting requests of all servers, and the time that cores idle while something waits.

use crate::server::Server;

/// Of one server, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    idle: usize,
    waiting: usize,
}

/// How the servers of a rack stand. A rack wastes a core that idles while a request waits anywhere: at another server or in
/// the switch, of which the servers themselves see nothing.
#[derive(Clone, Debug)]
pub(super) struct Standings {
    each: Vec<Standing>,
    total: Standing,
    wasted_ns: u64,
}

impl Standings {
    /// Of servers with so many cores each, all idle.
    pub(super) fn new(servers: usize, cores: usize) -> Self {
        let idle = |idle| Standing { idle, waiting: 0 };
        Self {
            each: vec![idle(cores); servers],
            total: idle(servers * cores),
            wasted_ns: 0,
        }
    }

    /// The server has acted.
    #[inline]
    pub(super) fn note(&mut self, at: usize, server: &dyn Server) {
        let now = Standing {
            idle: server.idle(),
            waiting: server.waiting(),
        };
        let before = std::mem::replace(&mut self.each[at], now);
        self.total.idle = self.total.idle - before.idle + now.idle;
        self.total.waiting = self.total.waiting - before.waiting + now.waiting;
    }

    /// So much time passed, while the switch held `held` requests.
    #[inline]
    pub(super) fn elapsed(&mut self, ns: u64, held: usize) {
        if self.total.waiting + held > 0 {
            self.wasted_ns += self.total.idle as u64 * ns;
        }
    }

    /// Core time idle while a request waited, ns.
    pub(super) fn wasted_ns(&self) -> u64 {
        self.wasted_ns
    }
}
