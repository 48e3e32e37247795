//! `headway-world`: lives through worlds, one or many, and says how to repeat one in which something did not hold.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use headway_policy::server::systems::ServerSpec;
use headway_world::{Faults, describe, live};

/// Runs the live engines in deterministic worlds and checks what must always hold
#[derive(Parser)]
struct Args {
    /// The first world's seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many worlds, by consecutive seeds
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Stops after so many seconds, however many worlds are left
    #[arg(long)]
    seconds: Option<u64>,
    /// Every so many seeds only, so that several processes share the seeds
    #[arg(long, default_value_t = 1)]
    step: u64,
    /// What goes wrong, joined by commas: cores, network, buffers, handlers, orders, all, none
    #[arg(long, default_value = "all", value_parser = parse_faults)]
    faults: Faults,
    /// The policy of every world, in place of one that the seed chooses
    #[arg(long)]
    policy: Option<ServerSpec>,
    /// Lives through each world twice, and compares the two to the bit
    #[arg(long)]
    twice: bool,
}

fn parse_faults(text: &str) -> Result<Faults, String> {
    let mut faults = Faults::NONE;
    for word in text.split(',') {
        match word {
            "all" => faults = Faults::ALL,
            "none" => {}
            "cores" => faults.cores = true,
            "network" => faults.network = true,
            "buffers" => faults.buffers = true,
            "handlers" => faults.handlers = true,
            "orders" => faults.orders = true,
            other => {
                return Err(format!(
                    "no fault '{other}': choose among cores, network, buffers, handlers, orders, all, none"
                ));
            }
        }
    }
    Ok(faults)
}

fn main() -> ExitCode {
    let args = Args::parse();
    let text = std::env::args().skip_while(|arg| arg != "--faults").nth(1);
    let (faults, policy) = (args.faults, args.policy.as_ref());
    silence_expected_panics();
    let begun = Instant::now();
    let (mut worlds, mut turns) = (0_u64, 0_u64);
    for seed in (0..args.seeds).map(|number| args.seed + number * args.step) {
        if args
            .seconds
            .is_some_and(|seconds| begun.elapsed() > Duration::from_secs(seconds))
        {
            break;
        }
        let replay = Replay {
            seed,
            faults: text.as_deref(),
            policy,
        };
        let watch = replay.watch(faults);
        let verdict = live(seed, faults, policy);
        drop(watch);
        worlds += 1;
        turns += verdict.turns;
        if args.seeds == 1 {
            println!(
                "{}: {} turns, fingerprint {:016x}",
                verdict.scenario, verdict.turns, verdict.fingerprint
            );
        }
        let mut found = verdict.faults;
        if args.twice {
            let again = live(seed, faults, policy);
            if again.fingerprint != verdict.fingerprint {
                found.push("the same seed went another way the second time".to_owned());
            }
        }
        if !found.is_empty() {
            println!("seed {seed}: {}", verdict.scenario);
            for fault in found.iter().take(20) {
                println!("  {fault}");
            }
            println!("  again: {replay}");
            return ExitCode::FAILURE;
        }
    }
    println!(
        "{worlds} worlds, {turns} turns, nothing amiss, {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}

/// How to live through a world again.
struct Replay<'a> {
    seed: u64,
    faults: Option<&'a str>,
    policy: Option<&'a ServerSpec>,
}

impl std::fmt::Display for Replay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cargo run --release -p headway-world -- --seed {}",
            self.seed
        )?;
        if let Some(faults) = self.faults {
            write!(f, " --faults {faults}")?;
        }
        if let Some(policy) = self.policy {
            write!(f, " --policy '{policy}'")?;
        }
        Ok(())
    }
}

impl Replay<'_> {
    /// A world in which a thread of the system gets stuck does not end: says which it is, and ends the process.
    fn watch(&self, faults: Faults) -> std::sync::mpsc::Sender<()> {
        const PATIENCE: Duration = Duration::from_secs(60);
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let (again, scenario) = (self.to_string(), describe(self.seed, faults, self.policy));
        std::thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                println!(
                    "{scenario}\n  a thread got stuck outside of the world's sight\n  again: {again}"
                );
                std::process::exit(1);
            }
        });
        ended
    }
}

/// Panics of handlers that a scenario asked for are no news. Any other panic ends the process: the world would wait for its thread.
fn silence_expected_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let expected = panic.payload().downcast_ref::<String>();
        if expected.is_some_and(|message| message.contains(headway_world::EXPECTED_PANIC)) {
            return;
        }
        report(panic);
    }));
}
