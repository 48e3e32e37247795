//! Worlds of rack and host: nothing is amiss in any, and a seed repeats a world to the bit.

use headway_world::{Faults, WorldEngine, live};

fn all_hold(engine: WorldEngine, seeds: u64) {
    for seed in 1..=seeds {
        let verdict = live(engine, seed, Faults::ALL, None);
        assert!(
            verdict.faults.is_empty(),
            "{}\n{:#?}\n  again: cargo run --release -p headway-world -- --engine {engine} --seed {seed}",
            verdict.scenario,
            verdict.faults,
        );
    }
}

fn repeats(engine: WorldEngine) {
    for seed in 1..=20 {
        let [one, other] = [(); 2].map(|()| live(engine, seed, Faults::ALL, None).fingerprint);
        assert_eq!(one, other, "seed {seed} went another way the second time");
    }
}

#[test]
fn racks_lose_nothing_without_a_count() {
    all_hold(WorldEngine::Rack, 1_500);
}

#[test]
fn cores_of_a_host_have_one_owner_and_come_back() {
    all_hold(WorldEngine::Host, 150);
}

#[test]
fn a_seed_repeats_a_world() {
    repeats(WorldEngine::Rack);
    repeats(WorldEngine::Host);
}
