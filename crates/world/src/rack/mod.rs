//! A rack in the world: its switch, its control plane and its agents as they are, and model servers and clients, over a network with faults.

mod port;
mod room;

use std::collections::HashMap;
use std::net::SocketAddr;

use headway_net::header::Header;
use headway_policy::ClassHint;
use headway_policy::rack::{RackShape, RackSystem, RackVisit, Switch, systems};

use crate::WorldVerdict;
use crate::random::Random;
use crate::scheduler::{CoreCosts, CoreFaults, Watched, World};
use room::RackRoom;

/// The time that a policy with a control plane may still send to a server that left, ns: until the control plane looks, 10 ms, with the delays of
/// its report and of its tables.
const KNOWN_DEAD_NS: u64 = 16_000_000;

/// The silence after which a server leaves, ns.
const SILENT_NS: u64 = 40_000_000;

/// The longest delay of a packet, ns.
const DELAY_MAX_NS: u64 = 8_000_000;

/// A rack, what comes to it, and what goes wrong.
struct RackScenario {
    policy: &'static str,
    cores: Vec<usize>,
    /// When each request leaves its client, ns after the start, and its type.
    requests: Vec<(u64, u8)>,
    clients: u64,
    /// When a server goes, for how long, and how, ns.
    absences: Vec<(u64, u64, usize, Absence)>,
    /// When the clock jumps, and by how much, ns.
    jumps: Vec<(u64, u64)>,
    /// Whether the network loses, repeats, reorders and delays.
    bad_network: bool,
    /// Whether clients send packets that are cut or forged.
    liars: bool,
    /// One in so many requests is handed back by its server; none where it is 0.
    handed_back: u64,
    answer_ns: u64,
    has_agents: bool,
}

/// How a server goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Absence {
    /// It loses what it holds, and says nothing.
    Crash,
    /// It stands still, and answers afterwards.
    Hang,
    /// Its agent says that it leaves.
    Leave,
}

impl RackScenario {
    fn draw(random: &mut Random) -> Self {
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

/// The scenario of a seed, in a line.
pub(crate) fn describe(seed: u64) -> String {
    RackScenario::draw(&mut Random::new(seed)).to_string()
}

/// Lives through the rack's world of this seed.
pub(crate) fn live(seed: u64, watched: Watched) -> WorldVerdict {
    let mut random = Random::new(seed);
    let scenario = RackScenario::draw(&mut random);
    let text = scenario.to_string();
    let (verdict, past) = World::run(
        watched,
        random,
        CoreCosts::TINY,
        CoreFaults::default(),
        || {
            let shape = RackShape {
                cores: scenario.cores.clone(),
                types: vec![ClassHint::new(10e3, 0.8), ClassHint::new(100e3, 0.2)],
                room: ROOM,
                seed,
            };
            let policy = scenario.policy.parse().expect("a name of ours");
            systems::with(&policy, &shape, RackPlay(&scenario)).expect("a policy of this rack")
        },
    );
    WorldVerdict {
        scenario: text,
        faults: verdict.0,
        fingerprint: verdict.1,
        turns: past.turns,
    }
}

/// Requests that the switch may hold.
const ROOM: usize = 8;

struct RackPlay<'a>(&'a RackScenario);

impl RackVisit for RackPlay<'_> {
    type Output = (Vec<String>, u64);

    fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output {
        let mut room = RackRoom::new(self.0, system);
        room.play();
        room.finish()
    }
}

/// What became of each request: what must hold of responses.
#[derive(Default)]
struct RequestBook {
    /// Deliveries at the switch, and its responses, by client and index.
    requests: HashMap<(SocketAddr, u32), (u32, u32)>,
    deliveries: u64,
    responses: u64,
}

impl RequestBook {
    fn delivered(&mut self, client: SocketAddr, index: u32) {
        self.requests.entry((client, index)).or_default().0 += 1;
        self.deliveries += 1;
    }

    /// A response on its way to a client: says what is wrong with it.
    fn responded(&mut self, client: SocketAddr, header: Header, body: &[u8]) -> Option<String> {
        self.responses += 1;
        let index = header.index;
        let Some((delivered, responded)) = self.requests.get_mut(&(client, index)) else {
            return Some(format!(
                "{client} gets a response to {index}, and never asked"
            ));
        };
        *responded += 1;
        if responded > delivered {
            return Some(format!(
                "{client} asked {index} {delivered} times, and gets response {responded}"
            ));
        }
        let is_own = body.is_empty() || body == identity(client, index);
        (!is_own).then(|| format!("{client} gets another's response as that to {index}"))
    }
}

/// The body of a request, which its server echoes.
fn identity(client: SocketAddr, index: u32) -> [u8; 6] {
    let [a, b] = client.port().to_be_bytes();
    let [c, d, e, f] = index.to_be_bytes();
    [a, b, c, d, e, f]
}
