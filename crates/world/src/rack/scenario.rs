//! What happens in the rack's world of a seed.

use headway_policy::rack::systems;

use crate::random::Random;

/// Requests that the switch may hold.
pub(super) const ROOM: usize = 8;

/// The time that a policy with a control plane may still send to a server that left, ns: until the control plane looks, 10 ms, with the delays of
/// its report and of its tables.
pub(super) const KNOWN_DEAD_NS: u64 = 16_000_000;

/// The silence after which a server leaves, ns.
pub(super) const SILENT_NS: u64 = 40_000_000;

/// The longest delay of a packet, ns.
pub(super) const DELAY_MAX_NS: u64 = 8_000_000;

/// A rack, what comes to it, and what goes wrong.
pub(super) struct RackScenario {
    pub(super) policy: &'static str,
    pub(super) cores: Vec<usize>,
    /// When each request leaves its client, ns after the start, and its type.
    pub(super) requests: Vec<(u64, u8)>,
    pub(super) clients: u64,
    /// When a server goes, for how long, and how, ns.
    pub(super) absences: Vec<(u64, u64, usize, Absence)>,
    /// When the clock jumps, and by how much, ns.
    pub(super) jumps: Vec<(u64, u64)>,
    /// Whether the network loses, repeats, reorders and delays.
    pub(super) bad_network: bool,
    /// Whether clients send packets that are cut or forged.
    pub(super) liars: bool,
    /// One in so many requests is handed back by its server; none where it is 0.
    pub(super) handed_back: u64,
    pub(super) answer_ns: u64,
    pub(super) has_agents: bool,
}

/// How a server goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Absence {
    /// It loses what it holds, and says nothing.
    Crash,
    /// It stands still, and answers afterwards.
    Hang,
    /// Its agent says that it leaves.
    Leave,
}

impl RackScenario {
    pub(super) fn draw(random: &mut Random) -> Self {
        let servers = 2 + random.below(4) as usize;
        let cores = (0..servers).map(|_| 1 + random.below(4) as usize).collect();
        let gap_ns = random.one_of(&[100_000.0, 500_000.0, 2_000_000.0]);
        let mut at_ns = 5_000_000;
        let mut requests = Vec::new();
        for _ in 0..100 + random.below(300) {
            at_ns += random.exponential(gap_ns);
            requests.push((at_ns, u8::from(random.once_in(5))));
        }
        let end_ns = at_ns;
        let absences = (0..random.below(4)).map(|_| {
            let how = random.one_of(&[Absence::Crash, Absence::Hang, Absence::Leave]);
            let at_ns = random.below(end_ns);
            let server = random.below(servers as u64) as usize;
            (at_ns, random.below(300_000_000), server, how)
        });
        let absences = absences.collect();
        let jumps = (0..random.below(3)).map(|_| {
            let most_ns = random.one_of(&[3_000_000, 100_000_000, 2_000_000_000]);
            (random.below(end_ns), random.below(most_ns))
        });
        let jumps = jumps.collect();
        Self {
            policy: random.one_of(systems::NAMES),
            cores,
            requests,
            clients: 1 + random.below(3),
            absences,
            jumps,
            bad_network: random.once_in(2),
            liars: random.once_in(2),
            handed_back: random.one_of(&[0, 0, 30]),
            answer_ns: random.one_of(&[60_000_000, 500_000_000]),
            has_agents: random.once_in(2),
        }
    }
}

impl std::fmt::Display for RackScenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rack of {} before servers of {:?} cores, {} requests, absences {:?}, jumps {:?}{}{}{}",
            self.policy,
            self.cores,
            self.requests.len(),
            self.absences,
            self.jumps,
            if self.has_agents { ", agents" } else { "" },
            if self.bad_network {
                ", a bad network"
            } else {
                ""
            },
            if self.liars { ", liars" } else { "" },
        )
    }
}
