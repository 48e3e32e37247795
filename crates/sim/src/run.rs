//! One server fed by a workload: arrivals go in, measurements come out.

use crate::Costs;
use crate::backlog::Backlog;
use crate::engine::Engine;
use crate::experiment::{Classifier, Experiment, Length};
use crate::outcome::{Outcome, Totals, expected_waste_of, reservation_of};
use crate::replicated::Replicated;
use crate::server::{NEVER, Request, Sink, Work};
use crate::simulated::Simulated;
use crate::timeline::Timeline;
use headway_policy::role::{Ingress, Local, Monitor};
use headway_policy::spec::Params;
use headway_policy::systems::{Replicas, System, Visit};
use headway_policy::{Plan, Rng, Shape};
use headway_report::{ClassMeta, Recorder, Reservation};
use headway_workload::{Arrival, Generator};

/// A revision of the plan, for showing how reservations followed the traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanChange {
    /// When, in virtual time.
    pub at_ns: u64,
    /// The plan from then on.
    pub reservation: Vec<Reservation>,
}

/// Runs an experiment under whatever system its policy names.
pub(crate) struct Run<'a>(pub(crate) &'a Experiment);

impl Visit for Run<'_> {
    type Output = Outcome;

    fn visit<I, L, M>(self, mut system: System<I, L, M>) -> Outcome
    where
        I: Ingress,
        L: Local,
        M: Monitor,
    {
        let what = (system.name, std::mem::take(&mut system.params));
        self.run(what, |shape, costs| Engine::new(system, shape, costs))
    }

    fn visit_replicas<I, L, M>(self, mut replicas: Replicas<I, L, M>) -> Outcome
    where
        I: Ingress,
        L: Local,
        M: Monitor,
    {
        let first = &mut replicas.instances[0];
        let what = (first.name, std::mem::take(&mut first.params));
        self.run(what, |shape, costs| Replicated::new(replicas, shape, costs))
    }
}

impl Run<'_> {
    fn run<S: Simulated>(
        self,
        (name, params): (&str, Params),
        build: impl FnOnce(&Shape, Costs) -> S,
    ) -> Outcome {
        let experiment = self.0;
        let mut server = build(&experiment.shape(), experiment.costs);
        server.record(experiment.trace_window.clone());
        let mut measures = Measures::new(experiment);
        drive(experiment, &mut server, &mut measures);
        let slices = server.take_slices();
        let mut outcome = measures.into_outcome(server.work(), server.plan(), name, &params);
        outcome.slices = slices;
        outcome
    }
}

/// Until nothing is left: after the last arrival the system drains. On a tie what ends comes
/// before what begins.
fn drive(experiment: &Experiment, server: &mut impl Simulated, measures: &mut Measures<'_>) {
    let mut arrivals = Arrivals::new(experiment);
    let mut changes = experiment.core_changes.iter().peekable();
    loop {
        let change_ns = changes.peek().map_or(NEVER, |change| change.at_ns);
        let outside_ns = arrivals.next_ns().min(change_ns);
        while server.next_ns() <= outside_ns {
            if outside_ns == NEVER && server.next_work_ns() == NEVER {
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

/// Arrivals drawn at a time.
const DRAWN: usize = 64;

/// The arrivals still to come.
pub(crate) struct Arrivals<'a> {
    generator: Generator,
    /// The next ones, drawn together: what is read was written long ago, and drawing does not wait for what
    /// happens in the server.
    drawn: Vec<Arrival>,
    /// The first of them that is still to come.
    next: usize,
    left: u64,
    until_ns: u64,
    /// Arrivals before this index are not measured.
    counted_from: u64,
    index: u64,
    classes: usize,
    classifier: Rng,
    recognition: Rng,
    experiment: &'a Experiment,
}

impl<'a> Arrivals<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> Self {
        let (left, until_ns) = match experiment.length {
            Length::Requests(requests) => (requests, u64::MAX),
            Length::Duration(ns) => (u64::MAX, ns),
        };
        let mut arrivals = Self {
            generator: Generator::new(&experiment.workload, experiment.offered, experiment.seed),
            drawn: Vec::with_capacity(DRAWN),
            next: 0,
            left,
            until_ns,
            counted_from: (experiment.warm_up * experiment.expected_requests()) as u64,
            index: 0,
            classes: experiment.workload.class_names().len(),
            classifier: Rng::new(experiment.seed ^ 0xC1A5_51F1_E72A_4D03),
            recognition: Rng::new(experiment.seed ^ 0x0DD5_0A11_57A7_E5E1),
            experiment,
        };
        arrivals.draw();
        arrivals
    }

    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        let next = self.drawn.get(self.next);
        next.map_or(NEVER, |arrival| arrival.at_ns)
    }

    /// The next one, in the order of time.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Request> {
        let arrival = *self.drawn.get(self.next)?;
        let taken_for = self.classify(arrival.class);
        let request = Request {
            tag: self.index,
            arrived_ns: arrival.at_ns,
            service_ns: arrival.service_ns,
            flow: arrival.flow,
            class: arrival.class,
            taken_for,
            counted: self.index >= self.counted_from,
        };
        self.index += 1;
        self.next += 1;
        if self.next == self.drawn.len() {
            self.draw();
        }
        Some(request)
    }

    /// What the server takes a request of the class for; nothing is drawn for an exact classifier that knows them all.
    #[inline]
    fn classify(&mut self, class: u16) -> u16 {
        let unknown_share = self.experiment.unknown_share;
        let unit = |word: u64| (word >> 11) as f64 / (1_u64 << 53) as f64;
        if unknown_share > 0.0 && unit(self.recognition.next_u64()) < unknown_share {
            return self.classes as u16;
        }
        match self.experiment.classifier {
            Classifier::Exact => class,
            Classifier::Random => self.classifier.below(self.classes) as u16,
        }
    }

    /// Draws the next ones; none are left where none are drawn.
    fn draw(&mut self) {
        let (until_ns, count) = (self.until_ns, self.left.min(DRAWN as u64));
        self.drawn.clear();
        self.generator
            .draw(count as usize, until_ns, &mut self.drawn);
        self.left -= self.drawn.len() as u64;
        self.next = 0;
    }
}

/// What is noted while it runs.
pub(crate) struct Measures<'a> {
    experiment: &'a Experiment,
    recorder: Recorder,
    backlog: Backlog,
    totals: Totals,
    plan_changes: Vec<PlanChange>,
    timeline: Option<Timeline>,
}

impl<'a> Measures<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> Self {
        let classes: Vec<ClassMeta> = experiment
            .workload
            .union()
            .map(|class| ClassMeta::new(&class.name, class.mean_ns()))
            .collect();
        Self {
            experiment,
            backlog: Backlog::new(classes.len(), experiment.expected_requests() as u64),
            recorder: Recorder::new(&classes),
            totals: Totals::default(),
            plan_changes: Vec::new(),
            timeline: experiment
                .timeline_ns
                .map(|interval_ns| Timeline::new(interval_ns, classes.len())),
        }
    }

    #[inline]
    pub(crate) fn arrived(&mut self, request: &Request) {
        self.totals.arrived(request);
        self.backlog.entered(usize::from(request.class));
    }

    fn reservation(&self, plan: Option<&Plan>) -> Option<Vec<Reservation>> {
        let names = self.experiment.workload.class_names();
        plan.map(|plan| reservation_of(plan, &names))
    }

    pub(crate) fn into_outcome(
        mut self,
        work: Work,
        plan: Option<&Plan>,
        policy: &str,
        params: &Params,
    ) -> Outcome {
        let reservation = self.reservation(plan);
        let starved = self.backlog.starved(self.experiment.workers);
        self.totals.work = work;
        let mut outcome = Outcome::new(
            self.experiment,
            policy,
            params,
            &self.totals,
            self.recorder,
            &starved,
        );
        outcome.run.extras.reservation = reservation;
        outcome.run.extras.expected_waste_cores =
            plan.and_then(|plan| expected_waste_of(plan, self.experiment.workers));
        outcome.plan_changes = self.plan_changes;
        outcome.timeline = self
            .timeline
            .map(Timeline::into_intervals)
            .unwrap_or_default();
        outcome
    }
}

impl Sink for Measures<'_> {
    #[inline]
    fn finished(&mut self, now_ns: u64, request: &Request) {
        let class = usize::from(request.class);
        self.backlog.left(class);
        let latency_ns = now_ns - request.arrived_ns + self.experiment.network_ns;
        if let Some(timeline) = &mut self.timeline {
            timeline.record(request.arrived_ns, class, latency_ns);
        }
        if request.counted {
            self.recorder.record(class, latency_ns, request.service_ns);
            self.totals.last_completion_ns = now_ns;
        }
    }

    fn shed(&mut self, _now_ns: u64, request: &Request) {
        let class = usize::from(request.class);
        self.backlog.left(class);
        if request.counted {
            self.recorder.dropped(class);
        }
    }

    fn replanned(&mut self, now_ns: u64, plan: Option<&Plan>) {
        let reservation = self.reservation(plan).unwrap_or_default();
        self.plan_changes.push(PlanChange {
            at_ns: now_ns,
            reservation,
        });
    }
}
