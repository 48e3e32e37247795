//! The measurement: every system at every place in turn, live and simulated.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headway_load::{Load, LoadReport};
use headway_policy::spec::Spec;
use headway_report::Histogram;
use headway_sim::host::{App, HostExperiment, HostOutcome, RateStep};
use headway_workload::{Arrivals, Generator, Offered, Trace, TraceRecord, TraceWriter, Workload};
use tempfile::TempDir;

use super::batch::{BatchError, BatchProgram};
use super::experiment::{HostedExperiment, HostedPlace, HostedSystem};
use super::processes::{DaemonCounts, HostProcesses};
use super::run::{HostedFigures, HostedRun};
use crate::measured::client::keep_every_answer;
use crate::measured::rounds::{CompleteRounds, PlannedRun, complete_rounds, planned_runs};
use crate::measured::{ClientCounts, MeasuredExperiment as _, MeasuredSettings};
use crate::{ExperimentFile, ProcessError, ReproduceError, Reproduction, RunLength, run};

/// Time that the client waits for the last answers.
const TIMEOUT_NS: u64 = 1_000_000_000;
/// Length of the windows over which the worst tail is taken (Shenango § 7.2).
const WINDOW_NS: u64 = 10_000_000;

/// The errors of a measurement.
#[derive(thiserror::Error)]
pub enum HostedError {
    /// The file is invalid.
    #[error("{0}")]
    File(String),
    /// The machine is too small.
    #[error(
        "{asked} cores are to be dealt out, and this machine has {there}: change `cores` in a copy of the file"
    )]
    TooFewCores {
        /// Cores that the file asks for.
        asked: usize,
        /// Processors of this machine.
        there: usize,
    },
    /// The batch program failed.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A process of the host failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The client failed.
    #[error(transparent)]
    Load(#[from] headway_load::LoadError),
    /// The simulation failed.
    #[error(transparent)]
    Sim(#[from] headway_sim::SimError),
    /// The simulation of the paper's host failed.
    #[error(transparent)]
    Papers(#[from] ReproduceError),
    /// The folder of the run is not writable.
    #[error("a folder for the run: {0}")]
    Folder(#[from] std::io::Error),
}

headway_words::debug_is_display!(HostedError);

pub(super) struct HostedSession<'a> {
    experiment: &'a HostedExperiment,
    settings: &'a MeasuredSettings,
    workload: Workload,
    folder: TempDir,
    program: BatchProgram,
}

impl<'a> HostedSession<'a> {
    pub(super) fn new(
        experiment: &'a HostedExperiment,
        settings: &'a MeasuredSettings,
    ) -> Result<Self, HostedError> {
        let workload = experiment.host.workload(&experiment.name);
        let there = std::thread::available_parallelism().map_or(1, usize::from);
        let asked = experiment.host.cores;
        if asked > there {
            return Err(HostedError::TooFewCores { asked, there });
        }
        let folder = tempfile::tempdir()?;
        Ok(Self {
            program: BatchProgram::new(folder.path())?,
            workload: workload.map_err(HostedError::File)?,
            folder,
            experiment,
            settings,
        })
    }

    /// Runs the measurement. `progress` gets the finished runs, all runs, and the next run's system, and says whether it goes on.
    pub(super) fn measure(
        &self,
        mut progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
    ) -> Result<Option<CompleteRounds<HostedRun>>, HostedError> {
        let systems: Vec<usize> = (0..self.experiment.system.len()).collect();
        let rounds = self.experiment.extent(self.settings.fast).rounds;
        let plan = planned_runs(rounds, self.experiment.place.len(), &systems);
        let system = |planned: PlannedRun| &self.experiment.system[planned.system];
        complete_rounds(
            &plan,
            rounds,
            |place, next| progress(place, plan.len(), &system(next).name),
            |planned| self.run(planned, system(planned)),
        )
    }

    /// Simulates the paper's own host at a tenth of the full length, if the file names its experiment.
    pub(super) fn simulate_papers_host(&self) -> Result<Option<Reproduction>, HostedError> {
        let papers = self.experiment.papers.as_ref();
        let Some(file) = papers.and_then(|name| ExperimentFile::named(name)) else {
            return Ok(None);
        };
        let threads = headway_sim::available_threads();
        let mut results = run(&[file], RunLength::Fast, threads, None, |_, _| {})?;
        Ok(results.pop())
    }

    fn run(&self, planned: PlannedRun, system: &HostedSystem) -> Result<HostedRun, HostedError> {
        let place = &self.experiment.place[planned.load];
        let seed = self.settings.seed.wrapping_add(planned.seed());
        let host = HostProcesses::start(
            &self.settings.command,
            self.folder.path(),
            &self.experiment.host,
            system,
            &self.program,
        )?;
        let mut load = Load::new(
            host.addr,
            self.arrivals(place, seed)?,
            // Ignored: a trace has its requests' due times.
            Offered::Rate(1.0),
            headway_load::Extent::Duration {
                ns: length_ns(place)?,
            },
        );
        load.seed = seed;
        keep_every_answer(&mut load);
        load.timeout_ns = TIMEOUT_NS;
        load.policy = system.policy.clone();
        load.workers = self.experiment.host.cores;
        let (before, done) = (host.counts()?, self.program.done());
        let report = load.run(|_| ControlFlow::Continue(()))?;
        let (after, done) = (host.counts()?, self.program.done() - done);
        Ok(HostedRun {
            round: planned.round,
            system: system.name.clone(),
            place: place.name.clone(),
            client: ClientCounts::of(&report),
            live: self.live(&report, before, after, done),
            simulated: self.simulated(system, place, seed)?,
        })
    }

    /// The workload's arrivals at the rates of a place, one after the other.
    fn arrivals(&self, place: &HostedPlace, seed: u64) -> Result<Workload, HostedError> {
        let classes = self.workload.class_names().into_iter().map(str::to_owned);
        let mut writer = TraceWriter::new(Vec::new(), classes.collect())?;
        let mut begin_ns = 0;
        for (index, step) in place.steps.iter().enumerate() {
            let lasts_ns = step.lasts_ns().map_err(HostedError::File)?;
            let seed = seed.wrapping_add((index as u64) << 16);
            let generator = Generator::new(&self.workload, Offered::Rate(step.rate), seed);
            for arrival in generator.take_while(|arrival| arrival.at_ns < lasts_ns) {
                writer.write(&TraceRecord {
                    at_ns: begin_ns + arrival.at_ns,
                    class: arrival.class,
                    service_ns: arrival.service_ns,
                })?;
            }
            begin_ns += lasts_ns;
        }
        let text = String::from_utf8(writer.finish()?).unwrap_or_default();
        let trace = Trace::from_csv_str(&text, &place.name);
        let trace = trace.map_err(|error| HostedError::File(error.to_string()))?;
        let mut workload = self.workload.clone();
        workload.arrivals = Arrivals::Trace(trace.into());
        Ok(workload)
    }

    fn live(
        &self,
        report: &LoadReport,
        before: DaemonCounts,
        after: DaemonCounts,
        batch_done: u64,
    ) -> HostedFigures {
        let begin_ns = report.answers.iter().map(|answer| answer.due_ns).min();
        let begin_ns = begin_ns.unwrap_or(0);
        let mut all = Histogram::new();
        let mut windows: BTreeMap<u64, Histogram> = BTreeMap::new();
        for answer in &report.answers {
            all.record(answer.since_due_ns);
            let window = (answer.due_ns - begin_ns) / WINDOW_NS;
            windows
                .entry(window)
                .or_default()
                .record(answer.since_due_ns);
        }
        let worst = windows.values().map(p999_us).fold(f64::NAN, f64::max);
        let span_s = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let had_ns = after.server_core_ns.saturating_sub(before.server_core_ns);
        let served_ns: f64 = report
            .answers
            .iter()
            .map(|answer| self.service_ns(answer.class))
            .sum();
        HostedFigures {
            p999_us: p999_us(&all),
            worst_p999_us: worst,
            batch_cores: batch_done as f64 / span_s / self.program.per_core_s,
            efficiency: served_ns / had_ns as f64,
            reallocations_per_s: after.grants.saturating_sub(before.grants) as f64 / span_s,
        }
    }

    /// The mean service time of a class, ns.
    fn service_ns(&self, class: usize) -> f64 {
        self.workload.classes[class].mean_ns()
    }

    fn simulated(
        &self,
        system: &HostedSystem,
        place: &HostedPlace,
        seed: u64,
    ) -> Result<HostedFigures, HostedError> {
        let spec: Result<Spec, _> = system.policy.parse();
        let spec = spec.map_err(|error| HostedError::File(error.to_string()))?;
        let steps: Result<Vec<RateStep>, String> = place
            .steps
            .iter()
            .map(|step| {
                Ok(RateStep {
                    lasts_ns: step.lasts_ns()?,
                    rate_rps: step.rate,
                })
            })
            .collect();
        let app = App::server("server", self.workload.clone(), 1.0)
            .guaranteed(system.guaranteed)
            .steps(&steps.map_err(HostedError::File)?)
            .policy("c-fcfs".parse().expect("a policy of servers"));
        let mut host = HostExperiment::new(self.experiment.host.cores, spec)
            .app(app)
            .seed(seed);
        if system.batch {
            host = host.app(App::batch("pricer"));
        }
        host.duration_ns = length_ns(place)?;
        host.warm_up = 0.0;
        host.window_ns = Some(WINDOW_NS);
        let outcome: HostOutcome = host.run()?;
        let served = &outcome.apps[0];
        let worst_ns = served.windows.iter().map(|window| window.p999_ns).max();
        Ok(HostedFigures {
            p999_us: served.latency_us.map_or(f64::NAN, |latency| latency.p999),
            worst_p999_us: worst_ns.map_or(f64::NAN, |ns| ns as f64 / 1e3),
            batch_cores: outcome.apps.get(1).map_or(0.0, |batch| batch.useful_cores),
            efficiency: served.efficiency,
            reallocations_per_s: outcome.host.reallocations_per_s,
        })
    }
}

fn p999_us(latency_ns: &Histogram) -> f64 {
    latency_ns
        .quantile(0.999)
        .map_or(f64::NAN, |ns| ns as f64 / 1e3)
}

fn length_ns(place: &HostedPlace) -> Result<u64, HostedError> {
    let mut length_ns = 0;
    for step in &place.steps {
        length_ns += step.lasts_ns().map_err(HostedError::File)?;
    }
    Ok(length_ns)
}
