//! Which engine lives in a world, and how to live through one.

use std::fmt;
use std::str::FromStr;

use headway_policy::server::systems::ServerSpec;

use crate::random::Random;
use crate::scenario::Faults;
use crate::scheduler::{Watched, WorldProgress};
use crate::verdict::WorldVerdict;
use crate::{check, host, play, rack, trials};

/// How to live through a world again.
#[derive(Clone, Debug)]
pub(crate) struct WorldReplay {
    pub(crate) seed: u64,
    pub(crate) engine: WorldEngine,
    pub(crate) faults: Faults,
    pub(crate) policy: Option<ServerSpec>,
}

impl fmt::Display for WorldReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            engine,
            faults,
            ..
        } = self;
        // Builds with debug assertions have more places at which threads change.
        let build = if cfg!(debug_assertions) {
            "cargo run"
        } else {
            "cargo run --release"
        };
        write!(f, "{build} -p headway-world --")?;
        if *engine != WorldEngine::Server {
            return write!(f, " --engine {engine} --seed {seed}");
        }
        write!(f, " --seed {seed} --faults {faults}")?;
        match &self.policy {
            Some(policy) => write!(f, " --policy '{policy}'"),
            None => Ok(()),
        }
    }
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

impl fmt::Display for WorldEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, engine)| engine == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for WorldEngine {
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
    live_watched(engine, seed, faults, policy, &WorldProgress::default())
}

/// The same, watched from outside.
pub(crate) fn live_watched(
    engine: WorldEngine,
    seed: u64,
    faults: Faults,
    policy: Option<&ServerSpec>,
    progress: &WorldProgress,
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
    let scenario = trials::draw(&mut random, faults, policy);
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
        WorldEngine::Server => trials::draw(&mut Random::new(seed), faults, policy).to_string(),
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
