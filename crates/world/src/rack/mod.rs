//! A rack in the world: its switch, its control plane and its agents as they are, and model servers and clients, over a network with faults.

mod book;
mod port;
mod room;
mod scenario;

use headway_policy::ClassHint;
use headway_policy::rack::{RackShape, RackSystem, RackVisit, Switch, systems};

use crate::random::Random;
use crate::scheduler::{CoreCosts, CoreFaults, Watched, World};
use crate::verdict::WorldVerdict;
use room::RackRoom;
use scenario::{ROOM, RackScenario};

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

struct RackPlay<'a>(&'a RackScenario);

impl RackVisit for RackPlay<'_> {
    type Output = (Vec<String>, u64);

    fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output {
        let mut room = RackRoom::new(self.0, system);
        room.play();
        room.finish()
    }
}
