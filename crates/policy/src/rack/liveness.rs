//! Which servers answer: a silent one leaves the turns, is asked now and then, and comes back by and by.

use super::ServerId;
use alloc::vec::Vec;

/// When a server counts as silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LivenessRules {
    /// A server that was sent a request and says nothing for so long leaves, ns; [`Self::NEVER`]: none leaves for that. More than the longest
    /// request takes, unless servers say otherwise that they live.
    pub silent_ns: u64,
    /// The longest time between two questions to a silent server, ns. The first comes after `silent_ns`, each later one after twice the
    /// time.
    pub ask_ns: u64,
}

impl LivenessRules {
    /// The `silent_ns` by which silent servers stay.
    pub const NEVER: u64 = NEVER;
}

impl Default for LivenessRules {
    /// 50 ms, and a question a second.
    fn default() -> Self {
        Self {
            silent_ns: 50_000_000,
            ask_ns: 1_000_000_000,
        }
    }
}

/// What is to be done about a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LivenessChange {
    /// It counts as having so many cores from now on: 0 when it leaves.
    Cores(usize),
    /// It is to be asked whether it answers.
    Ask,
}

/// What is known of each server. Times are those of the engine.
#[derive(Clone, Debug)]
pub struct Liveness {
    rules: LivenessRules,
    servers: Vec<ServerLife>,
    /// Servers that have not left.
    present: usize,
}

#[derive(Clone, Debug)]
struct ServerLife {
    /// All it has.
    cores: usize,
    /// Those it counts as having.
    counted: usize,
    /// When it was sent a request after it was last heard of; [`NEVER`] when nothing was sent since.
    sent_ns: u64,
    /// Whether it was heard of since it left.
    heard: bool,
    /// When something is next due: a question to one that left, a step to one that comes back.
    next_ns: u64,
    /// From this question to the next.
    gap_ns: u64,
}

const NEVER: u64 = u64::MAX;

impl ServerLife {
    /// A place without a server.
    const NONE: Self = Self {
        cores: 0,
        counted: 0,
        sent_ns: NEVER,
        heard: false,
        next_ns: 0,
        gap_ns: 0,
    };
}

impl Liveness {
    /// Servers of so many cores, all of them present.
    #[must_use]
    pub fn new(cores: &[usize], rules: LivenessRules) -> Self {
        let servers = cores.iter().map(|&cores| ServerLife {
            cores,
            counted: cores,
            ..ServerLife::NONE
        });
        Self {
            rules,
            servers: servers.collect(),
            present: cores.iter().filter(|&&cores| cores > 0).count(),
        }
    }

    /// A request went to the server.
    #[inline]
    pub fn sent(&mut self, server: ServerId, now_ns: u64) {
        let life = &mut self.servers[server.index()];
        if life.sent_ns == NEVER {
            life.sent_ns = now_ns;
        }
    }

    /// Something came from the server, a response or another sign of life.
    #[inline]
    pub fn heard(&mut self, server: ServerId) {
        let life = &mut self.servers[server.index()];
        life.sent_ns = NEVER;
        life.heard = true;
    }

    /// The server says that it has so many cores. One that left keeps that for its return. One that has none leaves, unless it is the last
    /// that is present, and is not asked before it says that it has some.
    pub fn capacity(&mut self, server: ServerId, cores: usize) -> Option<LivenessChange> {
        let life = &mut self.servers[server.index()];
        let was_whole = life.counted == life.cores;
        life.cores = cores;
        if cores == 0 && life.counted > 0 {
            if self.present == 1 {
                return None;
            }
            self.present -= 1;
            life.counted = 0;
            life.sent_ns = NEVER;
            return Some(LivenessChange::Cores(0));
        }
        if life.counted == 0 || life.counted == cores || (!was_whole && life.counted < cores) {
            return None;
        }
        life.counted = cores.max(1);
        Some(LivenessChange::Cores(life.counted))
    }

    /// A server of so many cores takes the place of `server`, which has none, or had cores of another number. It counts with all of them.
    pub fn join(&mut self, server: ServerId, cores: usize) {
        let life = &mut self.servers[server.index()];
        self.present += usize::from(life.counted == 0 && cores > 0);
        self.present -= usize::from(life.counted > 0 && cores == 0);
        *life = ServerLife {
            cores,
            counted: cores,
            ..ServerLife::NONE
        };
    }

    /// The server is to take no more requests, be it the last that is present. It is not asked, and stays away until it [joins](Self::join).
    pub fn leave(&mut self, server: ServerId) {
        self.join(server, 0);
    }

    /// The server was silent when an earlier watch ended: it is asked at once, and comes back as one that left. Nothing changes for the last that is
    /// present.
    pub fn was_silent(&mut self, server: ServerId, now_ns: u64) {
        let life = &mut self.servers[server.index()];
        if life.counted == 0 || self.present == 1 {
            return;
        }
        self.present -= 1;
        life.counted = 0;
        life.heard = false;
        life.gap_ns = self.rules.silent_ns / 2;
        life.next_ns = now_ns;
    }

    /// What is due for the server now. The last server that is present never leaves: then it is not the servers that are silent, or
    /// there is nobody to take over.
    pub fn look(&mut self, server: ServerId, now_ns: u64) -> Option<LivenessChange> {
        let LivenessRules { silent_ns, ask_ns } = self.rules;
        let life = &mut self.servers[server.index()];
        if life.counted == 0 {
            if life.cores == 0 {
                return None;
            }
            if life.heard {
                self.present += 1;
                life.counted = life.cores.min(1);
                life.next_ns = now_ns.saturating_add(silent_ns);
                return Some(LivenessChange::Cores(life.counted));
            }
            if now_ns < life.next_ns {
                return None;
            }
            life.gap_ns = life.gap_ns.saturating_mul(2).min(ask_ns.max(silent_ns));
            life.next_ns = now_ns.saturating_add(life.gap_ns);
            return Some(LivenessChange::Ask);
        }
        let is_silent = silent_ns != NEVER
            && life.sent_ns != NEVER
            && now_ns.saturating_sub(life.sent_ns) >= silent_ns;
        if is_silent && self.present > 1 {
            self.present -= 1;
            life.counted = 0;
            life.heard = false;
            life.sent_ns = NEVER;
            life.gap_ns = silent_ns;
            life.next_ns = now_ns.saturating_add(silent_ns);
            return Some(LivenessChange::Cores(0));
        }
        if life.counted < life.cores && !is_silent && now_ns >= life.next_ns {
            life.counted = (2 * life.counted).min(life.cores);
            life.next_ns = now_ns.saturating_add(silent_ns);
            return Some(LivenessChange::Cores(life.counted));
        }
        None
    }

    /// The cores that the server counts as having.
    #[must_use]
    pub fn cores(&self, server: ServerId) -> usize {
        self.servers[server.index()].counted
    }
}

#[cfg(test)]
mod tests {
    use super::LivenessChange::{Ask, Cores};
    use super::*;

    const MS: u64 = 1_000_000;
    const ONE: ServerId = ServerId(0);
    const OTHER: ServerId = ServerId(1);

    /// Every change of a server until `until_ms`, looked for every millisecond, with the ms at which it came.
    fn changes(
        life: &mut Liveness,
        server: ServerId,
        from_ms: u64,
        until_ms: u64,
    ) -> Vec<(u64, LivenessChange)> {
        let looks = (from_ms..until_ms).map(|ms| (ms, life.look(server, ms * MS)));
        looks
            .filter_map(|(ms, change)| Some((ms, change?)))
            .collect()
    }

    #[test]
    fn a_server_without_cores_leaves_unasked_until_it_has_some() {
        let mut life = Liveness::new(&[2, 2], LivenessRules::default());
        assert_eq!(life.capacity(ONE, 0), Some(Cores(0)));
        assert_eq!(changes(&mut life, ONE, 0, 1000), []);
        assert_eq!(life.capacity(OTHER, 0), None, "the last one stays");
        assert_eq!(life.cores(OTHER), 2);
        life.heard(ONE);
        assert_eq!(life.capacity(ONE, 2), None);
        let back = changes(&mut life, ONE, 1000, 1100);
        assert_eq!(back, [(1000, Cores(1)), (1050, Cores(2))]);
    }

    #[test]
    fn a_silent_server_leaves_is_asked_ever_less_often_and_comes_back_step_by_step() {
        let mut life = Liveness::new(&[8, 8], LivenessRules::default());
        assert_eq!(changes(&mut life, ONE, 0, 1000), [], "nothing was sent");
        life.sent(ONE, 1000 * MS);
        life.sent(ONE, 1040 * MS);
        let asked = changes(&mut life, ONE, 1000, 5000);
        let expected = [
            (1050, Cores(0)),
            (1100, Ask),
            (1200, Ask),
            (1400, Ask),
            (1800, Ask),
            (2600, Ask),
            (3600, Ask),
            (4600, Ask),
        ];
        assert_eq!(asked, expected);
        assert_eq!(life.cores(ONE), 0);
        life.heard(ONE);
        let steps = changes(&mut life, ONE, 5000, 6000);
        let expected = [
            (5000, Cores(1)),
            (5050, Cores(2)),
            (5100, Cores(4)),
            (5150, Cores(8)),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn one_that_answers_now_and_then_stays_and_one_that_fails_again_leaves_again() {
        let mut life = Liveness::new(&[4, 4], LivenessRules::default());
        for ms in (0..400).step_by(40) {
            life.sent(ONE, ms * MS);
            assert_eq!(changes(&mut life, ONE, ms, ms + 40), []);
            life.heard(ONE);
        }
        life.sent(ONE, 400 * MS);
        assert_eq!(changes(&mut life, ONE, 400, 451), [(450, Cores(0))]);
        life.heard(ONE);
        assert_eq!(life.look(ONE, 460 * MS), Some(Cores(1)));
        life.sent(ONE, 461 * MS);
        let again = changes(&mut life, ONE, 461, 512);
        assert_eq!(again, [(510, Cores(2)), (511, Cores(0))]);
    }

    #[test]
    fn the_last_one_stays() {
        let mut life = Liveness::new(&[1, 1], LivenessRules::default());
        life.sent(ONE, 0);
        life.sent(OTHER, 0);
        assert_eq!(life.look(ONE, 60 * MS), Some(Cores(0)));
        assert_eq!(life.look(OTHER, 60 * MS), None);
        // Once the other one is back, it may leave.
        life.heard(ONE);
        assert_eq!(life.look(ONE, 61 * MS), Some(Cores(1)));
        assert_eq!(life.look(OTHER, 61 * MS), Some(Cores(0)));
    }

    #[test]
    fn a_server_that_joins_counts_at_once_and_one_that_is_ordered_to_leave_stays_away() {
        let mut life = Liveness::new(&[2, 0], LivenessRules::default());
        life.sent(ONE, 0);
        assert_eq!(life.look(ONE, 60 * MS), None, "the last one stays");
        life.join(OTHER, 4);
        assert_eq!(life.cores(OTHER), 4);
        assert_eq!(life.look(ONE, 61 * MS), Some(Cores(0)));
        life.heard(ONE);
        assert_eq!(life.look(ONE, 62 * MS), Some(Cores(1)));
        // Ordered away it goes, whatever it says and although it is the last one then.
        life.leave(ONE);
        life.leave(OTHER);
        life.heard(ONE);
        assert_eq!(changes(&mut life, ONE, 63, 2000), []);
        assert_eq!((life.cores(ONE), life.cores(OTHER)), (0, 0));
        life.join(ONE, 2);
        life.sent(ONE, 2000 * MS);
        assert_eq!(
            life.look(ONE, 2100 * MS),
            None,
            "the only one that is present"
        );
    }

    #[test]
    fn without_a_time_of_silence_none_leaves_for_it() {
        let rules = LivenessRules {
            silent_ns: LivenessRules::NEVER,
            ..LivenessRules::default()
        };
        let mut life = Liveness::new(&[2, 2], rules);
        life.sent(ONE, 0);
        assert_eq!(life.look(ONE, NEVER), None);
        assert_eq!(life.capacity(ONE, 0), Some(Cores(0)));
        life.capacity(ONE, 2);
        life.heard(ONE);
        assert_eq!(life.look(ONE, 5), Some(Cores(1)));
    }

    #[test]
    fn one_that_an_earlier_watch_missed_is_asked_at_once() {
        let mut life = Liveness::new(&[2, 2], LivenessRules::default());
        life.was_silent(ONE, 7 * MS);
        life.was_silent(OTHER, 7 * MS);
        assert_eq!((life.cores(ONE), life.cores(OTHER)), (0, 2));
        assert_eq!(changes(&mut life, ONE, 7, 60), [(7, Ask), (57, Ask)]);
        life.heard(ONE);
        assert_eq!(life.look(ONE, 60 * MS), Some(Cores(1)));
    }

    #[test]
    fn a_report_of_other_cores_counts_unless_the_server_left() {
        let mut life = Liveness::new(&[2, 2], LivenessRules::default());
        assert_eq!(life.capacity(ONE, 2), None);
        assert_eq!(life.capacity(ONE, 4), Some(Cores(4)));
        life.sent(ONE, 0);
        assert_eq!(life.look(ONE, 50 * MS), Some(Cores(0)));
        assert_eq!(life.capacity(ONE, 2), None);
        life.heard(ONE);
        let steps = changes(&mut life, ONE, 51, 200);
        assert_eq!(steps, [(51, Cores(1)), (101, Cores(2))]);
    }
}
