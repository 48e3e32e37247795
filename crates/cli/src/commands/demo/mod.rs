//! `headway demo`: runs a real service with a mixed load under several policies, and shows a table and a page.

#[cfg(test)]
mod coverage;
mod entrant;
mod findings;
mod interrupted;
mod lane;
mod live;
mod page;
mod pilot;
mod rate;
mod rounds;
mod setup;
mod show;
mod stage;
mod stopped;
mod theory;
mod untouched;
mod verdict;

use crate::args::{self, Destination};
use crate::commands::admission::{self, Refused};
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::output::{self, Output, OutputFormat};
use crate::policy_flag::{self, Runs};
use crate::progress;
use anyhow::Result;
use entrant::{Entrant, Offer};
use findings::Findings;
use headway_policy::Shape;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::Layout;
use indicatif::ProgressBar;
use lane::{ALL, Lane};
use rounds::{Course, RoundLimits};
use setup::Setup;
use stage::Stage;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The policy that the others are compared with, where it takes part.
const BASE: &str = "c-fcfs";
/// Part of each run that is not measured. DARC begins as c-FCFS, so its first window must be over by then.
const WARM_UP: f64 = 0.2;
/// DARC's window, as part of a run at [`TYPICAL_LOAD`]. The paper's 50 000 requests are many runs of this length.
const WINDOW: f64 = 0.08;
const TYPICAL_LOAD: f64 = 0.4;
/// The time of the interim look, as a fraction of all rounds. The demo ends there if every comparison is decided.
const LOOK: f64 = 0.625;
/// The time allowed for starting and stopping servers, as a fraction of the rounds' time.
const OVERHEAD: f64 = 0.25;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A policy and its parameters; repeat for more
    #[arg(long = "policy", value_name = policy_flag::VALUE, value_parser = Runs::Live, hide_possible_values = true, long_help = Runs::Live.help("A policy and its parameters; repeat for more"),
          default_values = ["c-fcfs", "fixed-priority", "darc", "darc-stable", "srpt"])]
    policies: Vec<String>,
    /// Offered load, 0.01 to 1.5 [default: the highest at which no policy starves a class in simulation]
    #[arg(long, value_name = "FRACTION", value_parser = args::load)]
    load: Option<f64>,
    /// Workers of the server [default: 2 to 4, by the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    workers: Option<u64>,
    /// Largest number of rounds; each runs every policy once. The demo stops after five of eight if these decide every comparison
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=1000))]
    rounds: u64,
    /// Seconds for all rounds together
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    seconds: f64,
    /// A shorter run with wider intervals: at most 4 rounds in 10 seconds
    #[arg(long, conflicts_with_all = ["rounds", "seconds"])]
    quick: bool,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File for the HTML page
    #[arg(long, value_name = "FILE", default_value = "headway-report.html")]
    html: PathBuf,
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.check()?;
        let specs = self.specs()?;
        let interrupt = Interrupt::listen()?;
        let bar = progress::bar(self.rounds() * specs.len() as u64, "demo");
        let mut writer = output::open(self.to.output.as_deref())?;
        let setup = self.set_up(specs, &bar, &interrupt)?;
        if self.to.format == OutputFormat::Table {
            // Simulation takes seconds, so the user can read its result while the rounds run.
            bar.suspend(|| show::preface(&setup, self.to.output.as_deref(), &mut writer))?;
            // A flush completes a file, which still lacks the results of the rounds.
            if self.to.output.is_none() {
                writer.flush()?;
            }
        }
        let findings = self.find_out(setup, &bar, &interrupt)?;
        bar.set_message("writing the page");
        output::page(&self.html, &page::page(&findings))?;
        bar.finish_and_clear();
        self.print(&findings, writer)?;
        Ok(if findings.cut_off {
            Interrupt::status()
        } else if findings.runs.is_empty() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    /// The policies, all of which a live server runs.
    fn specs(&self) -> Result<Vec<ServerSpec>> {
        let workers = self
            .workers
            .map_or_else(stage::default_workers, |workers| workers as usize);
        let shape = Shape::new(workers);
        self.policies
            .iter()
            .map(|text: &String| {
                let spec = args::server_policy(text).map_err(|error| usage("--policy", error))?;
                admission::admit(&spec, &shape, Layout::Auto).map_err(Refused::of_flags)?;
                Ok(spec)
            })
            .collect()
    }

    fn print(&self, findings: &Findings, writer: Output) -> Result<()> {
        match self.to.format {
            OutputFormat::Json => show::json(findings, &self.html, writer),
            OutputFormat::Csv => output::runs_csv(&findings.merged(), writer),
            OutputFormat::Table => {
                show::text(findings, &self.html, self.to.output.as_deref(), writer)
            }
        }
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

    /// The setup that is known before the first live round.
    fn set_up(
        &self,
        specs: Vec<ServerSpec>,
        bar: &ProgressBar,
        interrupt: &Interrupt,
    ) -> Result<Setup> {
        let workers = self
            .workers
            .map_or_else(stage::default_workers, |workers| workers as usize);
        bar.set_message("filling a store, measuring GETs and SCANs");
        let stage = Stage::set(workers, self.seed, interrupt)?;
        let window = self.window(&stage);
        let entrants: Vec<Entrant> = specs
            .into_iter()
            .map(|spec| entrant(spec, window))
            .collect::<Result<_>>()?;
        bar.set_message("simulating, to choose a load");
        let load = match self.load {
            Some(load) => load,
            None => rate::highest_load(&stage, &entrants, interrupt)?,
        };
        bar.set_message("simulating all loads");
        let theory = theory::Theory::of(&stage, &entrants, load, self.seed, interrupt)?;
        Ok(Setup {
            offer: Offer {
                rate_rps: stage.workload.rate_for_load(load, workers),
                duration: self.run_length(),
                seed: self.seed,
                warm_up: WARM_UP,
            },
            load,
            load_given: self.load.is_some(),
            window,
            entrants,
            theory,
            stage,
        })
    }

    /// Plays the rounds and judges them.
    fn find_out(
        &self,
        mut setup: Setup,
        bar: &ProgressBar,
        interrupt: &Interrupt,
    ) -> Result<Findings> {
        let mut lanes = setup.lanes();
        let base = lanes.iter().position(|lane| lane.name == BASE).unwrap_or(0);
        bar.reset_eta();
        let mut course = Course {
            limits: self.limits(),
            stage: &mut setup.stage,
            entrants: &setup.entrants,
            offer: setup.offer,
            bar,
            interrupt,
        };
        let lowered = match self.load {
            Some(_) => None,
            None => course.set_pace(&mut lanes)?,
        };
        let cut_off = course.play(&mut lanes, base)?;
        setup.offer = course.offer;
        Ok(Findings {
            runs: lanes
                .iter()
                .filter_map(|lane: &Lane| Some((lane.name.clone(), lane.run(&setup.stage, ALL)?)))
                .collect(),
            base: lanes[base].name.clone(),
            command: self.command(),
            ratios: verdict::ratios(&lanes, &lanes[base]),
            ranking: verdict::ranking(&lanes),
            rounds_most: self.rounds(),
            cut_off,
            setup,
            lowered,
            lanes,
        })
    }

    fn limits(&self) -> RoundLimits {
        let most = self.rounds();
        RoundLimits {
            look: ((most as f64 * LOOK).ceil() as u64).max(2),
            most,
            end: Instant::now() + Duration::from_secs_f64(self.seconds() * (1.0 + OVERHEAD)),
        }
    }

    /// Completions in DARC's window.
    fn window(&self, stage: &Stage) -> u64 {
        let load = self.load.unwrap_or(TYPICAL_LOAD);
        let rate_rps = stage.workload.rate_for_load(load, stage.workers);
        ((rate_rps * self.run_length().as_secs_f64() * WINDOW) as u64).max(1)
    }

    /// The command that repeats the demonstration.
    fn command(&self) -> String {
        let mut words = vec!["headway demo".to_owned()];
        words.extend(
            self.policies
                .iter()
                .map(|policy| format!("--policy {policy}")),
        );
        words.extend(self.load.map(|load| format!("--load {load}")));
        words.extend(self.workers.map(|workers| format!("--workers {workers}")));
        if self.quick {
            words.push("--quick".into());
        } else {
            words.push(format!(
                "--rounds {} --seconds {}",
                self.rounds, self.seconds
            ));
        }
        words.push(format!("--seed {}", self.seed));
        words.join(" ")
    }
}

/// The policy with a window that fits into the warm-up, unless the user chose one.
fn entrant(mut policy: ServerSpec, window: u64) -> Result<Entrant> {
    let name = policy.to_string();
    let plans = matches!(policy.name(), "darc" | "darc-paper" | "darc-stable");
    if plans && !policy.gives("window") {
        policy = policy.with_param("window", window.to_string())?;
    }
    Ok(Entrant { name, policy })
}
