//! A key-value server and a batch program share two cores, under a load that steps up and down: by a static split, an allocator that looks every
//! 50 ms, and Shenango's.
//!
//! `make demo-host` runs it in less than a minute. It prints a table, and writes a page to the file that its argument names: the tail in each 10
//! ms, and each core's tenants.

mod kv;
mod load;
mod page;
mod stage;

use load::{Answered, Step};
use stage::{Outcome, Stage};
use std::time::Duration;

/// Two rounds of each in turn spread a disturbance of the machine over all of them.
const POLICIES: [&str; 3] = ["static", "interval", "shenango"];
const ROUNDS: usize = 2;
const STEPS: [Step; 3] = [
    Step::new(1_500.0, Duration::from_millis(1_800)),
    Step::new(14_000.0, Duration::from_millis(1_800)),
    Step::new(1_500.0, Duration::from_millis(1_800)),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(role) = stage::role() {
        return role.run();
    }
    if let Some(why) = stage::missing() {
        println!("SKIPPED demo-host: {why}");
        return Ok(());
    }
    let page = std::env::args().nth(1).unwrap_or("demo-host.html".into());
    let stage = Stage::new()?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for round in 0..ROUNDS {
        for policy in POLICIES {
            eprintln!("{policy}, round {} of {ROUNDS}", round + 1);
            outcomes.push(stage.run(policy, &STEPS)?);
        }
    }
    println!("{}", page::setting());
    println!("{}", page::table(&outcomes));
    if let Some(sentence) = page::disturbance(&outcomes) {
        println!("{sentence}");
    }
    page::write(&page, &outcomes, &STEPS)?;
    println!("the tail in each 10 ms, and who had which core: {page}");
    Ok(())
}

/// The latencies of one part of a run, at this quantile, µs; `None` without answers.
fn quantile_us(answered: &[Answered], part: f64) -> Option<f64> {
    let mut latencies: Vec<u64> = answered.iter().map(|one| one.latency_ns).collect();
    latencies.sort_unstable();
    let rank = (part * latencies.len() as f64).ceil().max(1.0) as usize;
    latencies.get(rank - 1).map(|&ns| ns as f64 / 1e3)
}
