//! The measurement: every system in turn, live and simulated.

use std::ops::{ControlFlow, Range};

use headway_load::{Load, LoadReport};
use headway_policy::PolicySpec;
use headway_report::Histogram;
use headway_sim::{Experiment, Length, Offered};
use headway_workload::Workload;

use super::experiment::{RackedExperiment, RackedSystem};
use super::processes::RackProcesses;
use super::run::{PhasePart, RackedRun, RackedTail};
use crate::ProcessError;
use crate::measured::client::keep_every_answer;
use crate::measured::rounds::{CompleteRounds, PlannedRun, complete_rounds, planned_runs};
use crate::measured::{ClientCounts, MeasuredExperiment as _, MeasuredSettings};

/// Time that the client waits for the last answers.
const TIMEOUT_NS: u64 = 2_000_000_000;

/// The errors of a measurement.
#[derive(thiserror::Error)]
pub enum RackedError {
    /// The file is invalid.
    #[error("{0}")]
    File(String),
    /// A process of the rack failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The client failed.
    #[error(transparent)]
    Load(#[from] headway_load::LoadError),
    /// The simulation failed.
    #[error(transparent)]
    Sim(#[from] headway_sim::SimError),
}

headway_words::debug_is_display!(RackedError);

pub(super) struct RackedSession<'a> {
    experiment: &'a RackedExperiment,
    settings: &'a MeasuredSettings,
    workload: Workload,
    change_ns: u64,
}

impl<'a> RackedSession<'a> {
    pub(super) fn new(
        experiment: &'a RackedExperiment,
        settings: &'a MeasuredSettings,
    ) -> Result<Self, RackedError> {
        let workload = experiment.rack.workload(&experiment.name);
        Ok(Self {
            workload: workload.map_err(RackedError::File)?,
            change_ns: experiment.rack.change_ns().map_err(RackedError::File)?,
            experiment,
            settings,
        })
    }

    /// Runs the measurement. `progress` gets the finished runs, all runs, and the next run's system, and says whether it goes on.
    pub(super) fn measure(
        &self,
        mut progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
    ) -> Result<Option<CompleteRounds<RackedRun>>, RackedError> {
        let systems: Vec<usize> = (0..self.experiment.system.len()).collect();
        let rounds = self.experiment.extent(self.settings.fast).rounds;
        let plan = planned_runs(rounds, 1, &systems);
        let system = |planned: PlannedRun| &self.experiment.system[planned.system];
        complete_rounds(
            &plan,
            rounds,
            |place, next| progress(place, plan.len(), &system(next).name),
            |planned| self.run(planned, system(planned)),
        )
    }

    fn run(&self, planned: PlannedRun, system: &RackedSystem) -> Result<RackedRun, RackedError> {
        let seed = self.settings.seed.wrapping_add(planned.seed());
        let rack = RackProcesses::start(
            &self.settings.command,
            &self.experiment.rack,
            &self.workload,
            system,
        )?;
        let length = headway_load::Extent::Duration {
            ns: self.length_ns(),
        };
        let mut load = Load::new(rack.addr, self.workload.clone(), self.offered(), length);
        load.seed = seed;
        keep_every_answer(&mut load);
        load.timeout_ns = TIMEOUT_NS;
        load.policy = system.policy.clone();
        load.workers = self.workers();
        let report = load.run(|_| ControlFlow::Continue(()))?;
        Ok(RackedRun {
            round: planned.round,
            system: system.name.clone(),
            client: ClientCounts::of(&report),
            live: self.live(&report),
            simulated: self.simulated(system, seed)?,
        })
    }

    fn workers(&self) -> usize {
        self.experiment.rack.servers * self.experiment.rack.workers
    }

    fn offered(&self) -> Offered {
        Offered::Load {
            load: self.experiment.rack.load,
            workers: self.workers(),
        }
    }

    fn length_ns(&self) -> u64 {
        let phases = self.workload.phases.iter();
        phases.map(|phase| phase.duration_ns).sum()
    }

    /// Each part of each phase, with its time span.
    fn parts(&self) -> Vec<(usize, PhasePart, Range<u64>)> {
        let mut parts = Vec::new();
        let mut begin_ns = 0;
        for (index, phase) in self.workload.phases.iter().enumerate() {
            let (settled_ns, end_ns) = (begin_ns + self.change_ns, begin_ns + phase.duration_ns);
            parts.push((index + 1, PhasePart::Change, begin_ns..settled_ns));
            parts.push((index + 1, PhasePart::Settled, settled_ns..end_ns));
            begin_ns = end_ns;
        }
        parts
    }

    /// Tails of each class in each part of each phase; `sent_in` returns the latencies of a class's requests in a span.
    fn tails(&self, sent_in: impl Fn(usize, Range<u64>) -> Histogram) -> Vec<RackedTail> {
        let names = self.workload.class_names();
        let mut tails = Vec::new();
        for (phase, during, span_ns) in self.parts() {
            for (class, name) in names.iter().enumerate() {
                let latency_ns = sent_in(class, span_ns.clone());
                tails.push(RackedTail::new(phase, during, name, &latency_ns));
            }
        }
        tails
    }

    fn live(&self, report: &LoadReport) -> Vec<RackedTail> {
        let dues = report.answers.iter().map(|answer| answer.due_ns);
        let begin_ns = dues.min().unwrap_or(0);
        self.tails(|class, span_ns| {
            let mut latency_ns = Histogram::new();
            let answers = report.answers.iter();
            for answer in answers.filter(|answer| answer.class == class) {
                if span_ns.contains(&(answer.due_ns - begin_ns)) {
                    latency_ns.record(answer.since_due_ns);
                }
            }
            latency_ns
        })
    }

    fn simulated(&self, system: &RackedSystem, seed: u64) -> Result<Vec<RackedTail>, RackedError> {
        let spec: Result<PolicySpec, _> = system.simulated().parse();
        let spec = spec.map_err(|error| RackedError::File(error.to_string()))?;
        let mut simulation = Experiment::new(self.workload.clone(), spec)
            .servers(self.experiment.rack.servers)
            .workers(self.experiment.rack.workers)
            .offered(self.offered())
            .seed(seed);
        simulation.length = Length::Duration(self.length_ns());
        simulation.warm_up = 0.0;
        simulation.timeline_ns = Some(self.change_ns);
        let outcome = simulation.run()?;
        Ok(self.tails(|class, span_ns| {
            let mut latency_ns = Histogram::new();
            let intervals = outcome.timeline.iter();
            for interval in intervals.filter(|interval| span_ns.contains(&interval.from_ns)) {
                latency_ns.merge(&interval.classes[class]);
            }
            latency_ns
        }))
    }
}
