//! `headway-world`: lives through deterministic worlds, one or many.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use headway_policy::server::systems::ServerSpec;
use headway_world::{Faults, WorldEngine, WorldSearch, live, silence_expected_panics};

/// Runs the live engines in deterministic worlds and checks what must always hold
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The world's seed, or the first one's
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many worlds, by consecutive seeds; one is also described
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Stops after so many seconds, however many worlds are left
    #[arg(long)]
    seconds: Option<u64>,
    /// What goes wrong, joined by commas: cores, network, buffers, handlers, orders, all, none
    #[arg(long, default_value = "all")]
    faults: Faults,
    /// What lives in the worlds: server, rack, host
    #[arg(long, default_value = "server")]
    engine: WorldEngine,
    /// The policy of every world, in place of one that the seed chooses
    #[arg(long)]
    policy: Option<ServerSpec>,
    /// Lives through each world twice, and compares the two to the bit
    #[arg(long)]
    twice: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    silence_expected_panics();
    if args.seeds == 1 {
        let verdict = live(args.engine, args.seed, args.faults, args.policy.as_ref());
        println!(
            "{}: {} turns, fingerprint {:016x}",
            verdict.scenario, verdict.turns, verdict.fingerprint
        );
    }
    let begun = Instant::now();
    let search = WorldSearch {
        seeds: args.seed..args.seed.saturating_add(args.seeds),
        engine: args.engine,
        faults: args.faults,
        policy: args.policy,
        twice: args.twice,
        until: args
            .seconds
            .map(|seconds| begun + Duration::from_secs(seconds)),
        side_by_side: std::thread::available_parallelism().map_or(1, usize::from),
    };
    match search.run() {
        Ok(searched) => {
            let (worlds, turns, took) = (searched.worlds, searched.turns, begun.elapsed());
            println!(
                "{worlds} worlds, {turns} turns, nothing amiss, {:.1} s",
                took.as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(found) => {
            println!("{found}");
            ExitCode::FAILURE
        }
    }
}
