//! The description of one live run of a policy, on replayed arrivals or over loopback.

use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Facts, Preemption};
use headway_policy::spec::SpecError;
use headway_report::ClassMeta;
use headway_runtime::{DeclaredClass, Idle, Layout, Mechanism, Pin, ShutdownError, StartError};
use headway_sim::{Experiment, Length, ThreadLayout, class_hints};
use headway_workload::{Arrival, Generator};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The description of a live run. The experiment gives arrivals, policy and workers; its costs are
/// ignored, since the machine has its own.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The experiment, as for a simulation.
    pub experiment: Experiment,
    /// The layout: the thread that runs the dispatcher.
    pub layout: Layout,
    /// The behaviour of threads without work.
    pub idle: Idle,
    /// Whether threads are bound to cores.
    pub pin: Pin,
    /// The interruption mechanism of a policy that interrupts.
    pub mechanism: Mechanism,
    /// How often busy workers look for arrivals while a request runs; the server's own choice where it is `None`.
    pub look_every: Option<Duration>,
    /// Whether requests come over loopback UDP, from a client in this process, in place of replay.
    pub over_udp: bool,
    /// Once it is true the run is given up.
    pub cutoff: Option<Arc<AtomicBool>>,
}

/// Why a trial failed.
#[derive(thiserror::Error)]
pub enum TrialError {
    /// The experiment is wrong.
    #[error(transparent)]
    Experiment(#[from] headway_sim::SimError),
    /// The policy is wrong.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server did not stop.
    #[error(transparent)]
    Shutdown(#[from] ShutdownError),
    /// The arrivals could not be scheduled.
    #[error("cannot replay the arrivals: {0}")]
    Replay(#[from] std::io::Error),
    /// The memory for the stacks of the interruption's measurement is missing.
    #[error("cannot measure an interruption: {0}")]
    Stacks(std::io::Error),
    /// The client could not send.
    #[error("cannot send requests over loopback: {0}")]
    Load(String),
    /// The run was given up before its end.
    #[error("the run was cut off")]
    CutOff,
    /// The run is too long: a live run's arrivals are drawn beforehand.
    #[error("{requests} requests are too many for one live run; at most {most}")]
    TooLong {
        /// Requests asked for.
        requests: u64,
        /// The most requests allowed.
        most: u64,
    },
}

headway_words::debug_is_display!(TrialError);

impl Trial {
    /// A trial with the server's own defaults.
    #[must_use]
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            layout: Layout::Auto,
            idle: Idle::Spin,
            pin: Pin::Auto,
            mechanism: Mechanism::Flag,
            look_every: None,
            over_udp: false,
            cutoff: None,
        }
    }

    /// The interruption mechanism of the trial's policy; `None` for a policy that never interrupts.
    ///
    /// # Errors
    /// [`SpecError`] when there is no such policy.
    pub fn interrupted_by(&self) -> Result<Option<Mechanism>, SpecError> {
        Ok(match self.experiment.policy.server()?.facts().preemption {
            Preemption::None => None,
            Facts::BY_DISPATCHER => Some(self.mechanism),
            Preemption::ByMonitor { .. } if self.layout == Layout::Dedicated => {
                Some(Mechanism::Flag)
            }
            Preemption::ByMonitor { .. } | Preemption::BySlices => Some(Mechanism::Tsc),
        })
    }

    /// Who dispatches and interrupts: a layout that was not chosen has no thread beside the workers.
    ///
    /// # Errors
    /// [`SpecError`] when there is no such policy.
    pub fn thread_layout(&self) -> Result<ThreadLayout, SpecError> {
        let facts = self.experiment.policy.server()?.facts();
        Ok(ThreadLayout::of(&facts, self.layout == Layout::Dedicated))
    }

    /// The experiment for the simulator. Where workers take turns as the dispatcher, there is no core beside theirs for one that also works.
    ///
    /// # Errors
    /// [`SpecError`] when there is no such policy.
    pub fn simulated(&self) -> Result<Experiment, SpecError> {
        let policy = self.experiment.policy.server()?;
        let mut experiment = self.experiment.clone();
        if policy.facts().dispatchers_work && self.layout != Layout::Dedicated {
            let alone = policy
                .clone()
                .with_param("dispatcher", "dedicated".into())?;
            experiment.policy = alone.into();
        }
        Ok(experiment)
    }

    /// Whether a monitor interrupts requests without a dispatcher; the layout then gives the monitor its thread.
    ///
    /// # Errors
    /// [`SpecError`] when there is no such policy.
    pub fn has_monitor(&self) -> Result<bool, SpecError> {
        let facts = self.experiment.policy.server()?.facts();
        let by_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
        Ok(facts.owner == Owner::Steering && by_monitor)
    }

    /// Whether workers look for arrivals while a request runs: under a policy that interrupts, unless a dispatcher has a thread for it.
    ///
    /// # Errors
    /// [`SpecError`] when there is no such policy.
    pub fn polls_at_work(&self) -> Result<bool, SpecError> {
        let facts = self.experiment.policy.server()?.facts();
        let looks = facts.owner != Owner::Dispatcher || self.layout == Layout::Inline;
        Ok(looks && facts.interrupts())
    }

    /// The arrivals, drawn like the simulator's.
    ///
    /// # Errors
    /// [`TrialError::TooLong`] when there are too many to be drawn beforehand.
    pub fn arrivals(&self) -> Result<Vec<Arrival>, TrialError> {
        const MOST: u64 = 50_000_000;
        let experiment = &self.experiment;
        let generator = Generator::new(&experiment.workload, experiment.offered, experiment.seed);
        let requests = experiment.expected_requests();
        if requests > MOST as f64 {
            return Err(TrialError::TooLong {
                requests: requests as u64,
                most: MOST,
            });
        }
        let mut arrivals: Vec<Arrival> = match experiment.length {
            Length::Requests(requests) => generator.take(requests as usize).collect(),
            Length::Duration(ns) => generator.take_while(|arrival| arrival.at_ns < ns).collect(),
        };
        if let Some(flows) = experiment.flows {
            let flows = flows.drawn(experiment.seed);
            for arrival in &mut arrivals {
                arrival.flow = flows.hash(arrival.flow);
            }
        }
        Ok(arrivals)
    }

    /// The same hints as the simulator's policy gets.
    pub(crate) fn classes(&self) -> Vec<DeclaredClass> {
        let workload = &self.experiment.workload;
        workload
            .union()
            .zip(class_hints(workload))
            .map(|(class, hint)| DeclaredClass {
                name: class.name.clone(),
                hint,
            })
            .collect()
    }

    /// The classes for the report.
    pub(crate) fn class_metas(&self) -> Vec<ClassMeta> {
        self.experiment
            .workload
            .union()
            .map(|class| ClassMeta::new(&class.name, class.mean_ns()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::ClassHint;
    use headway_workload::Workload;

    /// Without equal hints, `--compare-sim` would compare two policies.
    #[test]
    fn the_server_is_told_of_the_classes_what_the_simulator_is() {
        let text = r#"
            [[class]]
            name = "short"
            share = 0.9
            service = { dist = "constant", mean = "2us" }
            slo = "latency.p99<=30us"

            [[class]]
            name = "long"
            share = 0.1
            service = { dist = "constant", mean = "5us" }
            slo = "slowdown.p99<=4"
            long = true
        "#;
        let workload = Workload::from_toml_str(text, "mix.toml").unwrap();
        let trial = Trial::new(Experiment::new(workload, "edf".parse().unwrap()));
        let classes = trial.classes();
        let told = |class: &DeclaredClass| (class.hint.slo_ns, class.hint.long, class.hint.mean_ns);
        assert_eq!(told(&classes[0]), (Some(30_000), None, 2_000.0));
        assert_eq!(told(&classes[1]), (Some(20_000), Some(true), 5_000.0));
        let hints: Vec<ClassHint> = classes.iter().map(|class| class.hint).collect();
        assert_eq!(hints, class_hints(&trial.experiment.workload));
    }

    /// The simulator would give Concord's working dispatcher a core that serves too, which workers in turn do not have.
    #[test]
    fn workers_in_turn_are_simulated_without_a_dispatcher_that_works() {
        let simulated = |layout| {
            let workload = Workload::named("zippydb").unwrap();
            let experiment = Experiment::new(workload, "concord,q=5us".parse().unwrap());
            let trial = Trial {
                layout,
                ..Trial::new(experiment.workers(2).load(0.7).requests(1_000))
            };
            trial.simulated().unwrap().run().unwrap().run.extras
        };
        let inline = simulated(Layout::Inline);
        assert_eq!(inline.serving_cores, Some(2));
        assert_eq!(simulated(Layout::Dedicated).serving_cores, Some(3));
    }
}
