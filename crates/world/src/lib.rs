//! A deterministic world in which the live engines run: production code, a seed, a commit, the same run to the bit.
//!
//! | part | file |
//! |---|---|
//! | which thread runs, and each thread's virtual clock | [`scheduler`] |
//! | datagrams that are lost, repeated, reordered, delayed | [`network`] |
//! | handlers that take virtual time and meet probes | [`handler`] |
//! | what happens in the world of a seed | [`scenario`] |
//! | a live server in it, and its owner | [`play`] |
//! | what must hold | [`check`] |
//! | a rack: switch, control plane, agents | [`rack`] |
//! | a host's arbiter | [`host`] |
//! | many worlds, and how to repeat one | [`search`] |
//! | a given workload instead of a drawn one | [`served`] |
//!
//! The engines are those of `headway-runtime`, as they are: they read the [clock that they are given](headway_runtime::Builder::clock), and where
//! they would sleep they ask the [world's scheduler](headway_sync::world). One thread of the system runs at a time, so nothing but the seed decides what
//! happens. What a weak memory model would add is checked by loom instead.

mod check;
mod handler;
mod host;
mod network;
mod play;
mod rack;
mod random;
mod scenario;
mod scheduler;
mod search;
mod served;

use headway_policy::server::systems::ServerSpec;
pub use scenario::{Faults, UnknownFault};
pub use search::{AmissWorld, Searched, WorldSearch, silence_expected_panics};
pub use served::{ServedWorkload, TimedRequest};

use crate::random::Random;
use crate::scenario::Scenario;
use crate::scheduler::{Progress, Watched};
use crate::search::WorldReplay;

/// What a world showed.
#[derive(Debug)]
pub struct WorldVerdict {
    /// The scenario, in a line.
    pub scenario: String,
    /// What did not hold, a line each.
    pub faults: Vec<String>,
    /// A number that differs where anything differed that happened.
    pub fingerprint: u64,
    /// How often one thread made way for another.
    pub turns: u64,
}

/// What lives in a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorldEngine {
    /// A server of `headway-runtime`.
    Server,
    /// The switch, control plane and agents of `headway-rack`.
    Rack,
    /// The arbiter of `headway-host`.
    Host,
}

impl WorldEngine {
    const NAMED: [(&'static str, Self); 3] = [
        ("server", Self::Server),
        ("rack", Self::Rack),
        ("host", Self::Host),
    ];
}

impl std::fmt::Display for WorldEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = Self::NAMED.iter().find(|(_, engine)| engine == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl std::str::FromStr for WorldEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        named
            .map(|(_, engine)| *engine)
            .ok_or_else(|| format!("no engine '{text}': choose among server, rack, host"))
    }
}

/// Lives through the world of this seed. `faults` and `policy` are a server's: `policy` replaces the one that the seed chooses.
#[must_use]
pub fn live(
    engine: WorldEngine,
    seed: u64,
    faults: Faults,
    policy: Option<&ServerSpec>,
) -> WorldVerdict {
    live_watched(engine, seed, faults, policy, &Progress::default())
}

/// The same, watched from outside.
fn live_watched(
    engine: WorldEngine,
    seed: u64,
    faults: Faults,
    policy: Option<&ServerSpec>,
    progress: &Progress,
) -> WorldVerdict {
    let again = WorldReplay {
        seed,
        engine,
        faults,
        policy: policy.cloned(),
    };
    let watched = Watched {
        label: format!("seed {seed}, again: {again}"),
        progress: progress.clone(),
    };
    match engine {
        WorldEngine::Server => live_server(seed, faults, policy, watched),
        WorldEngine::Rack => rack::live(seed, watched),
        WorldEngine::Host => host::live(seed, watched),
    }
}

fn live_server(
    seed: u64,
    faults: Faults,
    policy: Option<&ServerSpec>,
    watched: Watched,
) -> WorldVerdict {
    let mut random = Random::new(seed);
    let scenario = Scenario::draw(&mut random, faults, policy);
    let outcome = play::play(&scenario, watched, random);
    WorldVerdict {
        faults: check::faults(&scenario, &outcome),
        fingerprint: fingerprint(&outcome),
        turns: outcome.past.turns,
        scenario: scenario.to_string(),
    }
}

/// The scenario of a seed, in a line, without living through it.
#[must_use]
pub fn describe(
    engine: WorldEngine,
    seed: u64,
    faults: Faults,
    policy: Option<&ServerSpec>,
) -> String {
    match engine {
        WorldEngine::Server => Scenario::draw(&mut Random::new(seed), faults, policy).to_string(),
        WorldEngine::Rack => rack::describe(seed),
        WorldEngine::Host => host::describe(seed),
    }
}

/// FNV-1a over the times of all that happened.
fn fingerprint(outcome: &play::WorldOutcome) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |word: u64| {
        for byte in word.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for fate in &outcome.log.fates {
        mix(fate.taken_ns.unwrap_or(0));
        for times in [&fate.begun_ns, &fate.answered_ns, &fate.refused_ns] {
            mix(times.len() as u64);
            times.iter().for_each(|time_ns| mix(*time_ns));
        }
    }
    mix(outcome.ended_ns);
    hash
}
