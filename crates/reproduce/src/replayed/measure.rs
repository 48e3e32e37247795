//! The measurement: the costs of this machine, then every system at every load in turn, live and simulated.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_bench::calibrate::{calibrate, steps};
use headway_bench::compare::Comparison;
use headway_bench::{Trial, TrialError};
use headway_runtime::Layout;
use headway_sim::{Experiment, Length, MachineCosts, Offered, ThreadLayout, available_threads};
use headway_workload::Workload;

use super::experiment::{ReplayedExperiment, ReplayedSystem};
use super::run::{ReplayedFigures, ReplayedRun};
use crate::measured::rounds::{CompleteRounds, PlannedRun, complete_rounds, planned_runs};
use crate::measured::{LoadsExtent, MeasuredExperiment as _, MeasuredSettings};

/// The errors of a measurement.
#[derive(thiserror::Error)]
pub enum ReplayedError {
    /// Fewer cores than spinning threads.
    #[error(
        "{workers} workers{} need as many cores, and this machine has {cores}: measure on a machine with more, or change `workers` in a file of your own",
        if *.dedicated { " and a dispatcher" } else { "" }
    )]
    TooFewCores {
        /// Number of workers.
        workers: usize,
        /// Whether a dispatcher needs another core.
        dedicated: bool,
        /// Number of cores.
        cores: usize,
    },
    /// The costs lack a layout that a system runs under.
    #[error(
        "no costs of the layout '{layout}', which a system of the figure has: 'headway calibrate -o FILE' measures those of all layouts"
    )]
    NotMeasured {
        /// Name of the layout.
        layout: &'static str,
    },
    /// The file is invalid.
    #[error("{0}")]
    File(String),
    /// The server did not start or stop.
    #[error(transparent)]
    Trial(#[from] TrialError),
}

headway_words::debug_is_display!(ReplayedError);

pub(super) struct ReplayedSession<'a> {
    experiment: &'a ReplayedExperiment,
    settings: &'a MeasuredSettings,
    costs: Option<&'a MachineCosts>,
    extent: &'a LoadsExtent,
    workload: Workload,
}

impl<'a> ReplayedSession<'a> {
    pub(super) fn new(
        experiment: &'a ReplayedExperiment,
        settings: &'a MeasuredSettings,
        costs: Option<&'a MachineCosts>,
    ) -> Result<Self, ReplayedError> {
        let dedicated = experiment.system.iter().any(|system| system.dedicated);
        let (workers, cores) = (experiment.replay.workers, available_threads());
        if workers + usize::from(dedicated) > cores {
            return Err(ReplayedError::TooFewCores {
                workers,
                dedicated,
                cores,
            });
        }
        let workload = Workload::resolve(&experiment.replay.workload)
            .map_err(|error| ReplayedError::File(error.to_string()))?;
        Ok(Self {
            experiment,
            settings,
            costs,
            extent: experiment.extent(settings.fast),
            workload,
        })
    }

    /// Runs the measurement. `progress` gets the finished steps, all steps, and the next step's name, and says whether it goes on.
    pub(super) fn measure(
        &self,
        mut progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
    ) -> Result<Option<CompleteRounds<ReplayedRun>>, ReplayedError> {
        let systems: Vec<usize> = (0..self.experiment.system.len()).collect();
        let plan = planned_runs(self.extent.rounds, self.extent.loads.len(), &systems);
        let Some(costs) = self.costs(&mut progress)? else {
            return Ok(None);
        };
        complete_rounds(
            &plan,
            self.extent.rounds,
            |place, next| progress(place, plan.len(), &self.experiment.system[next.system].name),
            |planned| self.run(planned, &costs),
        )
    }

    /// The costs that were given, or else those measured now; `None` where `progress` ends the measurement.
    fn costs(
        &self,
        progress: &mut impl FnMut(usize, usize, &str) -> ControlFlow<()>,
    ) -> Result<Option<MachineCosts>, ReplayedError> {
        let layouts = self.layouts()?;
        if let Some(given) = self.costs {
            let missing = layouts
                .iter()
                .find(|layout| given.measured(**layout).is_none());
            return match missing {
                Some(layout) => Err(ReplayedError::NotMeasured {
                    layout: layout.name(),
                }),
                None => Ok(Some(*given)),
            };
        }
        let all = steps(layouts.len());
        let cutoff = Arc::new(AtomicBool::new(false));
        let calibrated = calibrate(&layouts, Some(&cutoff), |step| {
            let is_over = progress(step, all, "calibrating").is_break();
            cutoff.store(is_over, Ordering::Relaxed);
        });
        match calibrated {
            Err(TrialError::CutOff) => Ok(None),
            calibrated => Ok(Some(calibrated?.layouts)),
        }
    }

    /// The layouts of all systems, each once.
    fn layouts(&self) -> Result<Vec<ThreadLayout>, ReplayedError> {
        let mut layouts: Vec<ThreadLayout> = Vec::new();
        for system in &self.experiment.system {
            let facts = system.spec().map_err(ReplayedError::File)?.facts();
            let layout = ThreadLayout::of(&facts, system.dedicated);
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        Ok(layouts)
    }

    fn run(&self, planned: PlannedRun, costs: &MachineCosts) -> Result<ReplayedRun, ReplayedError> {
        let system = &self.experiment.system[planned.system];
        let trial = self.trial(planned).map_err(ReplayedError::File)?;
        let costs = costs.of(trial.thread_layout().map_err(TrialError::Policy)?);
        let observed = trial.run()?;
        let (renewals, lost_fraction) = (observed.renewals, observed.lost_fraction());
        let compared = Comparison::of(&trial, observed, costs)?;
        let (live, simulated) = (&compared.live, &compared.simulated);
        let untouched = &compared.untouched;
        let each = |run: &headway_report::Run| {
            run.meta.preemptions as f64 / run.meta.requests.max(1) as f64
        };
        Ok(ReplayedRun {
            round: planned.round,
            load: self.extent.loads[planned.load],
            system: system.name.clone(),
            counts: untouched.is_enough() && live.sustained(),
            untouched_fraction: untouched.fraction,
            lost_fraction,
            preemptions: live.meta.preemptions,
            renewals,
            live: ReplayedFigures {
                overall: untouched.overall.live,
                preemptions_each: each(live),
            },
            simulated: ReplayedFigures {
                overall: untouched.overall.simulated,
                preemptions_each: each(simulated),
            },
            all: live.overall,
        })
    }

    fn trial(&self, planned: PlannedRun) -> Result<Trial, String> {
        let system = &self.experiment.system[planned.system];
        let workers = self.experiment.replay.workers;
        let load = self.extent.loads[planned.load];
        let mut experiment = Experiment::new(self.workload.clone(), system.spec()?.into())
            .workers(workers)
            .offered(Offered::Load { load, workers })
            .seed(self.settings.seed.wrapping_add(planned.seed()));
        experiment.length = Length::Duration(self.extent.run().as_nanos() as u64);
        experiment.flows = system.flows()?;
        Ok(Trial {
            layout: layout_of(system),
            mechanism: system.mechanism()?,
            ..Trial::new(experiment)
        })
    }
}

fn layout_of(system: &ReplayedSystem) -> Layout {
    if system.dedicated {
        Layout::Dedicated
    } else {
        Layout::Inline
    }
}
