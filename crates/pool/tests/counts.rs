//! The counts add up at any moment, whatever pools, jobs, cancellations, panics, nestings and ends a seed draws.
//!
//! `HEADWAY_POOL_SEED=17 cargo test -p headway-pool --test pool counts` draws the same pool and the same jobs again; its threads interleave
//! otherwise, so repeat it. `HEADWAY_POOL_ROUNDS` draws more pools.

use crate::common::until;
use crate::drawn::{alive, be_quiet_about_drawn_panics, in_time, live_through};

#[test]
fn counts_add_up_at_any_moment() {
    be_quiet_about_drawn_panics();
    let given = |key: &str| {
        std::env::var(key)
            .ok()
            .map(|text| text.parse::<u64>().expect("a number"))
    };
    let seeds = match given("HEADWAY_POOL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("HEADWAY_POOL_ROUNDS").unwrap_or(60),
    };
    for seed in seeds {
        in_time(seed, move || live_through(seed, 150));
        until("every job's closure is gone", || alive() == 0);
    }
}
