//! What people use instead of Headway, beside it: a bare loop, Tokio, rayon and Go on the same arrivals, the same clock and all cores.
//!
//! Rounds are interleaved: every system serves a round's arrivals before the next round is drawn, in an order that rotates. No system has
//! a core for a generator or a dispatcher of its own.

mod bare_loop;
mod cores;
mod go_program;
mod headway;
mod peer;
mod rayon_pool;
mod report;
mod schedule;
mod tokio_runtime;

use crate::cores::Cores;
use crate::peer::Peer;
use crate::report::MeasuredRun;
use crate::schedule::Schedule;
use anyhow::{Result, anyhow, ensure};
use clap::{Parser, ValueEnum};
use headway_bench::Trial;
use headway_machine::MachineDescription;
use headway_policy::server::systems::ServerSpec;
use headway_report::Run;
use headway_sim::{Experiment, Length};
use headway_workload::{Workload, duration};
use std::path::PathBuf;

#[derive(Parser)]
#[command(about)]
struct Args {
    /// A workload by name or file; repeat for more
    #[arg(long = "workload", value_name = "NAME|FILE", default_values_t = ["high-bimodal".to_owned(), "extreme-bimodal".to_owned()])]
    workloads: Vec<String>,
    /// Offered load: rate × mean service time / workers
    #[arg(long, value_name = "FRACTION", default_value_t = 0.7)]
    load: f64,
    /// Workers, each on a core of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    workers: u8,
    /// Rounds, each system once in each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Time during which requests arrive in each round
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    duration: u64,
    /// Of the first round's arrivals; each round adds one
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What to measure Headway against; repeat for more [default: all]
    #[arg(long = "peer", value_name = "PEER", value_enum)]
    peers: Vec<Peer>,
    /// A policy of Headway's; repeat for more [default: c-fcfs, srpt, synergy, tiny-quanta, darc]
    #[arg(long = "policy", value_name = "NAME[,KEY=VALUE…]")]
    policies: Vec<ServerSpec>,
    /// Also write all runs to this file, as `headway bench --format json` does
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What serves the arrivals.
enum Contender {
    Peer(Peer),
    Headway(ServerSpec),
}

impl Contender {
    fn name(&self) -> String {
        match self {
            Self::Peer(peer) => peer.name().to_owned(),
            Self::Headway(policy) => format!("Headway, {policy}"),
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let systems = args.systems()?;
    let experiments = args.experiments()?;
    // Before minutes are spent on runs that cannot be written.
    let json = args.json.as_deref().map(report::JsonFile::create);
    let json = json.transpose()?;
    println!(
        "{} workers, load {}, {} rounds of {}\n{}\n",
        args.workers,
        args.load,
        args.rounds,
        duration::format(args.duration),
        MachineDescription::read()
            .map_or_else(|error| error.to_string(), |machine| machine.to_string())
    );
    let cores = Cores::of(usize::from(args.workers));
    let mut outcomes = Vec::new();
    for experiment in &experiments {
        for round in 0..args.rounds {
            outcomes.extend(play_round(&systems, experiment, round, &cores)?);
        }
    }
    let names: Vec<String> = systems.iter().map(Contender::name).collect();
    let workloads = experiments.iter().map(|one| one.workload.name.clone());
    let reference = systems
        .iter()
        .position(|system| matches!(system, Contender::Headway(_)))
        .expect("a policy of Headway's is always among them");
    let workloads: Vec<String> = workloads.collect();
    println!(
        "{}",
        report::table(&outcomes, &names, &workloads, reference)
    );
    report::warn(&outcomes, &names, &workloads);
    json.map_or(Ok(()), |file| file.write(outcomes))
}

/// Every system once, on the same arrivals. Each round begins with another one, so that none always follows the same.
fn play_round(
    systems: &[Contender],
    experiment: &Experiment,
    round: u64,
    cores: &Cores,
) -> Result<Vec<MeasuredRun>> {
    let experiment = experiment.clone().seed(experiment.seed + round);
    let schedule = Schedule::leaked(Trial::new(experiment.clone()).arrivals()?);
    let mut outcomes = Vec::new();
    for turn in 0..systems.len() {
        let system = (turn + round as usize) % systems.len();
        let run: Run = match &systems[system] {
            Contender::Peer(peer) => peer.run(&experiment, schedule, cores)?,
            Contender::Headway(policy) => headway::run(policy, &experiment)?,
        };
        outcomes.push(MeasuredRun { system, run });
    }
    Ok(outcomes)
}

impl Args {
    /// Those that can run here, the peers first.
    fn systems(&self) -> Result<Vec<Contender>> {
        let peers = if self.peers.is_empty() {
            Peer::value_variants()
        } else {
            &self.peers
        };
        let mut systems = Vec::new();
        for &peer in peers {
            if peer.prepare()? {
                systems.push(Contender::Peer(peer));
            }
        }
        let defaults = headway::POLICIES.map(|policy| policy.parse::<ServerSpec>());
        let policies = if self.policies.is_empty() {
            defaults.into_iter().collect::<Result<_, _>>()?
        } else {
            self.policies.clone()
        };
        systems.extend(policies.into_iter().map(Contender::Headway));
        Ok(systems)
    }

    /// One a workload. Its policy is that of nobody: every policy of Headway's runs in a copy.
    fn experiments(&self) -> Result<Vec<Experiment>> {
        ensure!(
            self.load > 0.0 && self.load < 1.0,
            "--load {} is not a load that can be served: a fraction above 0 and below 1, such as 0.7",
            self.load
        );
        let experiment = |name: &String| {
            let workload =
                Workload::resolve(name).map_err(|error| anyhow!("--workload: {error}"))?;
            let mut experiment = Experiment::new(workload, headway::POLICIES[0].parse()?)
                .workers(usize::from(self.workers))
                .load(self.load)
                .seed(self.seed);
            experiment.length = Length::Duration(self.duration);
            experiment.check()?;
            Ok(experiment)
        };
        self.workloads.iter().map(experiment).collect()
    }
}
