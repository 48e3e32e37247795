//! The measurements of a run, of a server as of a rack.

use crate::backlog::BacklogSamples;
use crate::experiment::Experiment;
use crate::outcome::{Outcome, PlanChange, Totals, expected_waste_of, reservation_of};
use crate::server::{SimRequest, Sink, Work};
use crate::timeline::Timeline;
use headway_policy::Plan;
use headway_policy::spec::Params;
use headway_report::{ClassMeta, Recorder, Reservation};

/// The measurements of a run so far.
pub(crate) struct Measures<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) recorder: Recorder,
    backlog: BacklogSamples,
    pub(crate) totals: Totals,
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
            backlog: BacklogSamples::new(classes.len(), experiment.expected_requests() as u64),
            recorder: Recorder::new(&classes),
            totals: Totals::default(),
            plan_changes: Vec::new(),
            timeline: experiment
                .timeline_ns
                .map(|interval_ns| Timeline::new(interval_ns, classes.len())),
        }
    }

    #[inline]
    pub(crate) fn arrived(&mut self, request: &SimRequest) {
        self.totals.arrived(request);
        self.backlog.entered(usize::from(request.class));
    }

    /// Records an answer, `latency_ns` after the request's arrival, network excluded. Returns the slowdown in thousandths
    /// if the request is measured.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        now_ns: u64,
        request: &SimRequest,
        latency_ns: u64,
    ) -> Option<u64> {
        let class = usize::from(request.class);
        self.backlog.left(class);
        let latency_ns = latency_ns + self.experiment.network_ns;
        if let Some(timeline) = &mut self.timeline {
            timeline.record(request.arrived_ns, class, latency_ns);
        }
        if !request.counted {
            return None;
        }
        self.totals.last_completion_ns = now_ns;
        Some(self.recorder.record(class, latency_ns, request.service_ns))
    }

    pub(crate) fn dropped(&mut self, request: &SimRequest) {
        let class = usize::from(request.class);
        self.backlog.left(class);
        if request.counted {
            self.recorder.dropped(class);
        }
    }

    /// Records a revision of the plan.
    pub(crate) fn plan_changed(&mut self, at_ns: u64, reservation: Vec<Reservation>) {
        self.plan_changes.push(PlanChange { at_ns, reservation });
    }

    fn reservation(&self, plan: &Plan) -> Vec<Reservation> {
        reservation_of(plan, &self.experiment.workload.class_names())
    }

    /// The outcome of a server, from its `work` and its last plan.
    pub(crate) fn into_server_outcome(
        mut self,
        work: Work,
        plan: Option<&Plan>,
        policy: &str,
        params: &Params,
    ) -> Outcome {
        let workers = self.experiment.workers;
        let reservation = plan.map(|plan| self.reservation(plan));
        self.totals.work = work;
        let mut outcome = self.into_outcome(policy, params);
        outcome.run.extras.reservation = reservation;
        outcome.run.extras.expected_waste_cores =
            plan.and_then(|plan| expected_waste_of(plan, workers));
        outcome
    }

    /// The part of the outcome that a server and a rack have in common.
    pub(crate) fn into_outcome(self, policy: &str, params: &Params) -> Outcome {
        let starved = self.backlog.starved(self.experiment.total_workers());
        let mut outcome = Outcome::new(
            self.experiment,
            policy,
            params,
            &self.totals,
            self.recorder,
            &starved,
        );
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
    fn finished(&mut self, now_ns: u64, request: &SimRequest) {
        self.answered(now_ns, request, now_ns - request.arrived_ns);
    }

    fn shed(&mut self, _now_ns: u64, request: &SimRequest) {
        self.dropped(request);
    }

    fn replanned(&mut self, now_ns: u64, plan: Option<&Plan>) {
        let reservation = plan.map_or_else(Vec::new, |plan| self.reservation(plan));
        self.plan_changed(now_ns, reservation);
    }
}
