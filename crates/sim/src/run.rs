//! One server fed by a workload: arrivals go in, measurements come out.

use crate::admission::{Admitting, Driven};
use crate::arrivals::RequestStream;
use crate::engine::Engine;
use crate::error::SimError;
use crate::experiment::Experiment;
use crate::measures::Measures;
use crate::outcome::Outcome;
use crate::replicated::Replicated;
use crate::server::{NEVER, Recorded, Simulated};
use crate::span::check_end;
use crate::{Costs, fluid, rack};
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::{self, Replicas, System, Visit};
use headway_policy::spec::Params;
use headway_policy::{PolicySpec, Shape};

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// [`SimError`] when the policy, the workload or a figure is not valid.
    pub fn run(&self) -> Result<Outcome, SimError> {
        self.check()?;
        match &self.policy {
            PolicySpec::Server(policy) => {
                let run = RunSystem { experiment: self };
                systems::with(policy, &self.shape(), run)?
            }
            PolicySpec::Fluid => Ok(fluid::run(self)),
            PolicySpec::Rack { spec, inner, .. } => rack::run(self, spec, inner.as_ref()),
            PolicySpec::Host { spec, .. } => Err(SimError::of_host(spec)),
        }
    }

    /// Runs the given system instead of the policy's: this simulates a new composition before it
    /// has a name.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_system<I, L, M>(
        &self,
        build: impl FnOnce(&Shape) -> System<I, L, M>,
    ) -> Result<Outcome, SimError>
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        self.check()?;
        RunSystem { experiment: self }.visit(build(&self.shape()))
    }
}

/// Runs an experiment under the system that its policy names.
struct RunSystem<'a> {
    experiment: &'a Experiment,
}

impl Visit for RunSystem<'_> {
    type Output = Result<Outcome, SimError>;

    fn visit<I, L, M>(self, mut system: System<I, L, M>) -> Self::Output
    where
        I: Ingress,
        L: Local,
        M: Monitor,
    {
        let (name, params) = (system.name, std::mem::take(&mut system.params));
        self.run(name, &params, |shape, costs| {
            Engine::new(system, shape, costs)
        })
    }

    fn visit_replicas<I, L, M>(self, mut replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress,
        L: Local,
        M: Monitor,
    {
        let first = &mut replicas.instances[0];
        let (name, params) = (first.name, std::mem::take(&mut first.params));
        self.run(name, &params, |shape, costs| {
            Replicated::new(replicas, shape, costs)
        })
    }
}

impl RunSystem<'_> {
    fn run<S: Simulated + Recorded>(
        self,
        name: &str,
        params: &Params,
        build: impl FnOnce(&Shape, Costs) -> S,
    ) -> Result<Outcome, SimError> {
        let experiment = self.experiment;
        let mut server = build(&experiment.shape(), experiment.costs);
        server.record(experiment.trace_window.clone());
        let mut measures = Measures::new(experiment);
        match experiment.begun_at_most {
            Some(requests) => {
                let mut admitting = Admitting::new(&mut server, experiment, requests);
                drive(experiment, &mut admitting, &mut measures);
                assert_eq!(
                    admitting.waiting(),
                    0,
                    "whoever leaves makes room for the next"
                );
            }
            None => drive(experiment, &mut server, &mut measures),
        }
        check_end(experiment, server.in_flight())?;
        let slices = server.take_slices();
        let mut outcome = measures.into_server_outcome(server.work(), server.plan(), name, params);
        outcome.slices = slices;
        Ok(outcome)
    }
}

/// Runs until the system has drained after the last arrival. On a tie, ends come before beginnings.
fn drive(experiment: &Experiment, server: &mut impl Driven, measures: &mut Measures<'_>) {
    let mut arrivals = RequestStream::new(experiment);
    let mut changes = experiment.core_changes.iter().peekable();
    loop {
        let change_ns = changes.peek().map_or(NEVER, |change| change.at_ns);
        let outside_ns = arrivals.next_ns().min(change_ns);
        while server.next_ns() <= outside_ns {
            if outside_ns == NEVER && server.next_work_ns() == NEVER {
                measures.totals.cut_off = arrivals.is_cut_off();
                return;
            }
            server.step(measures);
        }
        if change_ns == outside_ns {
            if let Some(change) = changes.next() {
                server.set_worker(change.at_ns, change.worker, change.present, measures);
            }
        } else if let Some(request) = arrivals.take() {
            measures.arrived(&request);
            server.arrive(request.arrived_ns, request, measures);
        }
    }
}
