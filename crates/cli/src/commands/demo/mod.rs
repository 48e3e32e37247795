//! `headway demo`: the main thing in one go. A real service under a mixed load, several policies, a table and a
//! page.

mod findings;
mod interrupt;
mod live;
mod objection;
mod page;
mod rate;
mod rounds;
mod show;
mod stage;
mod theory;
mod verdict;

use crate::args::{self, Destination};
use crate::error::usage;
use crate::output::{self, Format};
use crate::progress;
use anyhow::Result;
use findings::Findings;
use headway_policy::spec::Spec;
use indicatif::ProgressBar;
use interrupt::Interrupt;
use live::Offer;
use rounds::{Entrant, Lane};
use stage::Stage;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What the others are compared with, where it takes part.
const BASE: &str = "c-fcfs";
/// Part of each run that is not measured. DARC begins as c-FCFS, so its first window must be over by then.
const WARM_UP: f64 = 0.2;
/// DARC's window, as part of a run at [`TYPICAL_LOAD`]. The paper's 50 000 requests are many runs of this length.
const WINDOW: f64 = 0.08;
const TYPICAL_LOAD: f64 = 0.4;
/// Time in which runs that do not count may be repeated, as part of the time for all rounds.
const REPEATS: f64 = 0.25;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A policy and its parameters; repeat for more
    #[arg(long = "policy", value_name = "NAME[,KEY=VALUE…]",
          default_values = ["c-fcfs", "fixed-priority", "darc", "darc-stable"])]
    policies: Vec<String>,
    /// Offered load, 0.01 to 1.5; by default the highest at which no policy starves a class, by simulation
    #[arg(long, value_name = "FRACTION", value_parser = args::load)]
    load: Option<f64>,
    /// Workers of the server; 2 to 4 by default, by the number of cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    workers: Option<u64>,
    /// Rounds, in each of which every policy runs once
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(2..=1000))]
    rounds: u64,
    /// Seconds for all rounds together
    #[arg(long, value_name = "N", default_value_t = 54.0)]
    seconds: f64,
    /// Shorter and less sure: 4 rounds in 10 seconds
    #[arg(long, conflicts_with_all = ["rounds", "seconds"])]
    quick: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "headway-report.html")]
    html: PathBuf,
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.check()?;
        let specs = args::policies(&self.policies)?;
        let interrupt = Interrupt::listen()?;
        let bar = progress::bar(self.rounds() * specs.len() as u64, "demo");
        let findings = self.find_out(specs, &bar, &interrupt)?;
        bar.set_message("writing the page");
        page::page(&findings).write(&self.html)?;
        bar.finish_and_clear();
        let writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            Format::Json => show::json(&findings, &self.html, writer)?,
            Format::Csv => output::runs_csv(&findings.merged(), writer)?,
            Format::Table => show::text(&findings, &self.html, writer)?,
        }
        Ok(match findings.runs.is_empty() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }

    fn check(&self) -> Result<()> {
        const SECONDS: std::ops::RangeInclusive<f64> = 1.0..=36_000.0;
        if !SECONDS.contains(&self.seconds) {
            return Err(usage(
                "--seconds",
                format!("'{}' must be 1 to 36000", self.seconds),
            ));
        }
        if self.load.is_some_and(|load| !(0.01..=1.5).contains(&load)) {
            return Err(usage("--load", "must be 0.01 to 1.5"));
        }
        Ok(())
    }

    fn rounds(&self) -> u64 {
        if self.quick { 4 } else { self.rounds }
    }

    fn seconds(&self) -> f64 {
        if self.quick { 10.0 } else { self.seconds }
    }

    /// The length of one policy's run in one round.
    fn run_length(&self) -> Duration {
        Duration::from_secs_f64(
            self.seconds() / (self.rounds() * self.policies.len() as u64) as f64,
        )
    }

    fn find_out(
        &self,
        specs: Vec<Spec>,
        bar: &ProgressBar,
        interrupt: &Interrupt,
    ) -> Result<Findings> {
        let workers = self
            .workers
            .map_or_else(stage::default_workers, |workers| workers as usize);
        bar.set_message("filling a store, measuring GETs and SCANs");
        let mut stage = Stage::set(workers, self.seed, interrupt)?;
        let window = self.window(&stage);
        let entrants: Vec<Entrant> = specs
            .into_iter()
            .map(|spec| entrant(spec, window))
            .collect();
        bar.set_message("simulating, to choose a load");
        let load = match self.load {
            Some(load) => load,
            None => rate::highest_load(&stage, &entrants, interrupt)?,
        };
        let predicted = rate::starved(&stage, &entrants, load)?;
        let offer = Offer {
            rate_rps: stage.workload.rate_for_load(load, workers),
            duration: self.run_length(),
            seed: self.seed,
            warm_up: WARM_UP,
        };
        bar.reset_eta();
        let begun = Instant::now();
        let mut lanes = rounds::play(&mut stage, &entrants, &offer, self.rounds(), bar, interrupt)?;
        lanes.iter_mut().for_each(|lane| lane.judge(&predicted));
        bar.set_message("repeating runs that were disturbed");
        let end = begun + Duration::from_secs_f64(self.seconds() * (1.0 + REPEATS));
        let repeated = rounds::repeat(&stage, &mut lanes, &entrants, &offer, end, interrupt)?;
        lanes.iter_mut().for_each(|lane| lane.judge(&predicted));
        bar.set_message("simulating more workers");
        let here = theory::curves(&stage, &entrants, workers, self.seed, interrupt)?;
        let beyond = theory::curves(&stage, &entrants, theory::WORKERS, self.seed, interrupt)?;
        let base = lanes.iter().position(|lane| lane.name == BASE).unwrap_or(0);
        let (ratios, ranking) = findings::judge(&lanes, base);
        let merged = |lane: &Lane| Some((lane.name.clone(), lane.run(&stage)?));
        Ok(Findings {
            runs: lanes.iter().filter_map(merged).collect(),
            base: lanes[base].name.clone(),
            load_given: self.load.is_some(),
            command: self.command(),
            stage,
            offer,
            load,
            window,
            repeated,
            lanes,
            ratios,
            ranking,
            here,
            beyond,
        })
    }

    /// Completions in DARC's window.
    fn window(&self, stage: &Stage) -> u64 {
        let load = self.load.unwrap_or(TYPICAL_LOAD);
        let rate_rps = stage.workload.rate_for_load(load, stage.workers);
        ((rate_rps * self.run_length().as_secs_f64() * WINDOW) as u64).max(1)
    }

    /// What to type for the same again.
    fn command(&self) -> String {
        let mut words = vec!["headway demo".to_owned()];
        words.extend(
            self.policies
                .iter()
                .map(|policy| format!("--policy {policy}")),
        );
        words.extend(self.load.map(|load| format!("--load {load}")));
        words.extend(self.workers.map(|workers| format!("--workers {workers}")));
        match self.quick {
            true => words.push("--quick".into()),
            false => words.push(format!(
                "--rounds {} --seconds {}",
                self.rounds, self.seconds
            )),
        }
        words.push(format!("--seed {}", self.seed));
        words.join(" ")
    }
}

/// The policy with a window that fits into the warm-up, unless the user chose one.
fn entrant(mut policy: Spec, window: u64) -> Entrant {
    let name = policy.to_string();
    let plans = matches!(
        headway_policy::systems::find(&policy.name),
        Some("darc" | "darc-stable")
    );
    if plans && !policy.params.iter().any(|(key, _)| key == "window") {
        policy.params.push(("window".into(), window.to_string()));
    }
    Entrant { name, policy }
}
