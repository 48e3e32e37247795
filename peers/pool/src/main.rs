//! headway-pool beside rayon and Tokio: what a job costs, how soon it starts, how many end a second. Rounds are interleaved.

mod compute;
mod contender;
mod http;
mod lost;
mod measures;
mod replay;
mod report;
mod shift;
mod stops;
mod system;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use contender::Kind;
use headway_machine::MachineDescription;
use lost::MachineLook;
use measures::Measure;

#[derive(Parser)]
#[command(about, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    bench: Option<Bench>,
    /// What to measure; repeat for more [default: all]
    #[arg(long = "measure", value_enum)]
    measures: Vec<Measure>,
    /// What to compare; repeat for more [default: all]
    #[arg(long = "contender", value_enum)]
    contenders: Vec<Kind>,
    /// Workers of each pool
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Rounds, each contender once in each
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

/// What else is measured; without any of these, pools in process.
#[derive(Subcommand)]
enum Bench {
    /// An axum service with points and reports, each way that programs run them, before an open-loop client
    Http(http::HttpArgs),
    /// How soon a pool follows a workload that changes its shape
    Shift(shift::ShiftArgs),
}

fn main() -> Result<()> {
    let args = Args::parse();
    match &args.bench {
        Some(Bench::Http(chosen)) => http::run(chosen),
        Some(Bench::Shift(chosen)) => shift::run(chosen),
        None => in_process(&args),
    }
}

fn in_process(args: &Args) -> Result<()> {
    ensure!(
        args.rounds > 0 && args.workers > 0,
        "at least one round and one worker"
    );
    let chosen = |kinds: &[Kind]| {
        if kinds.is_empty() {
            Kind::value_variants().to_vec()
        } else {
            kinds.to_vec()
        }
    };
    let measures = if args.measures.is_empty() {
        Measure::value_variants().to_vec()
    } else {
        args.measures.clone()
    };
    println!(
        "{} workers, {} rounds\n{}\n",
        args.workers,
        args.rounds,
        MachineDescription::read()
            .map_or_else(|error| error.to_string(), |machine| machine.to_string())
    );
    let contenders = chosen(&args.contenders);
    for measure in measures {
        let mut figures = vec![Vec::new(); contenders.len()];
        let mut lost = vec![Vec::new(); contenders.len()];
        let mut least = Vec::new();
        for round in 0..args.rounds {
            least.extend(measure.least(args.workers, round));
            // Each round begins with another one, so that none always follows the same.
            for turn in 0..contenders.len() {
                let at = (round + turn) % contenders.len();
                let before = MachineLook::take()?;
                figures[at].push(measure.take(contenders[at], args.workers, round)?);
                lost[at].push(before.others_since()?);
            }
        }
        println!(
            "{}",
            report::table(measure, &contenders, &figures, &lost, &least)
        );
    }
    Ok(())
}
