//! The live engines in many worlds: `HEADWAY_WORLDS` says how many, `headway-world` repeats one.

use headway_world::{Faults, WorldEngine, WorldSearch, silence_expected_panics};

/// Worlds in which something did not hold once, by their seeds of then, and what it was.
const ONCE_AMISS: [(u64, &str); 8] = [
    (
        260,
        "workers spun beside the requests that they would not begin any more, while their server gave up",
    ),
    (
        1033,
        "a worker gave a suspended request back after the dispatcher had looked for the last time: it was in no count",
    ),
    (1317, "the same, of an earlier commit"),
    (
        4398,
        "a dispatcher slept before a worker had begun what it was given, and interrupted nobody beside a request that waited",
    ),
    (
        137,
        "longs that were refused held the buffers that are kept for shorts",
    ),
    (
        649,
        "a worker whose core was revoked gave a request back, and the arbiter saw nothing of it: it waited beside a free core",
    ),
    (
        990,
        "a worker that had to leave its core waited to be heard by a leader that might use no worker",
    ),
    (
        640,
        "requests waited, since the limit of the workers left out the one with a core",
    ),
];

fn nothing_amiss(search: &WorldSearch) {
    silence_expected_panics();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let search = WorldSearch {
        side_by_side: cores,
        ..search.clone()
    };
    match search.run() {
        Ok(searched) => println!("{} worlds, {} turns", searched.worlds, searched.turns),
        Err(found) => panic!("{found}"),
    }
}

fn all_faults(seeds: std::ops::Range<u64>) -> WorldSearch {
    WorldSearch {
        seeds,
        engine: WorldEngine::Server,
        faults: Faults::ALL,
        policy: None,
        twice: false,
        until: None,
        side_by_side: 1,
    }
}

#[test]
fn worlds_that_were_amiss_are_not_any_more() {
    for (seed, what) in ONCE_AMISS {
        println!("seed {seed}: {what}");
        nothing_amiss(&all_faults(seed..seed + 1));
    }
}

#[test]
fn a_seed_repeats_a_world_to_the_bit() {
    nothing_amiss(&WorldSearch {
        twice: true,
        ..all_faults(1_000_000..1_000_050)
    });
}

#[test]
fn nothing_is_amiss_in_any_world() {
    let worlds = std::env::var("HEADWAY_WORLDS")
        .map_or(500, |worlds| worlds.parse().expect("a number of worlds"));
    nothing_amiss(&all_faults(1..1 + worlds));
    nothing_amiss(&WorldSearch {
        faults: Faults::NONE,
        ..all_faults(1..1 + worlds / 10)
    });
}
