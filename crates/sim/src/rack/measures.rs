//! What is noted of a rack while it runs.

use super::score::Rival;
use crate::backlog::Backlog;
use crate::outcome::{Outcome, Totals};
use crate::server::Request;
use crate::timeline::Timeline;
use crate::{Experiment, PlanChange};
use headway_policy::rack::{Control, ServerId};
use headway_policy::spec::Params;
use headway_report::{ClassMeta, Histogram, RackFigures, Recorder, Reservation, ServerFigures};

pub(super) struct Measures<'a> {
    pub(super) experiment: &'a Experiment,
    recorder: Recorder,
    /// Slowdowns of what each server answered, in thousandths.
    per_server: Vec<Histogram>,
    backlog: Backlog,
    timeline: Option<Timeline>,
    pub(super) totals: Totals,
    pub(super) figures: RackFigures,
    plan_changes: Vec<PlanChange>,
}

impl<'a> Measures<'a> {
    pub(super) fn new(experiment: &'a Experiment) -> Self {
        let classes: Vec<ClassMeta> = experiment
            .workload
            .union()
            .map(|class| ClassMeta::new(&class.name, class.mean_ns()))
            .collect();
        Self {
            experiment,
            backlog: Backlog::new(classes.len(), experiment.expected_requests() as u64),
            timeline: experiment
                .timeline_ns
                .map(|interval_ns| Timeline::new(interval_ns, classes.len())),
            recorder: Recorder::new(&classes),
            per_server: vec![Histogram::new(); experiment.servers],
            totals: Totals::default(),
            figures: RackFigures::default(),
            plan_changes: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn arrived(&mut self, request: &Request) {
        self.totals.arrived(request);
        self.backlog.entered(usize::from(request.class));
    }

    /// The first response, `latency_ns` after the request would have been at the server.
    #[inline]
    pub(super) fn answered(
        &mut self,
        now_ns: u64,
        server: ServerId,
        request: &Request,
        latency_ns: u64,
    ) {
        let class = usize::from(request.class);
        self.backlog.left(class);
        let latency_ns = latency_ns + self.experiment.network_ns;
        if let Some(timeline) = &mut self.timeline {
            timeline.record(request.arrived_ns, class, latency_ns);
        }
        if request.counted {
            let slowdown_milli = self.recorder.record(class, latency_ns, request.service_ns);
            self.per_server[server.index()].record(slowdown_milli);
            self.totals.last_completion_ns = now_ns;
        }
    }

    pub(super) fn shed(&mut self, request: &Request) {
        let class = usize::from(request.class);
        self.backlog.left(class);
        if request.counted {
            self.recorder.dropped(class);
        }
    }

    /// Whether the p99 will lie above the rival's, whatever else is recorded: of n values, ⌊n/100⌋ at most lie above
    /// their p99, and n is at most what arrives.
    pub(super) fn is_beaten_by(&self, rival: &Rival) -> bool {
        let classes = self.recorder.classes().iter();
        let above = classes.map(|class| rival.objective_of(class).count_above(rival.p99));
        above.sum::<u64>() > self.experiment.expected_requests() as u64 / 100
    }

    pub(super) fn replanned(&mut self, at_ns: u64, control: &Control) {
        self.figures.regenerated += 1;
        let reservation = self.reservation(control);
        self.plan_changes.push(PlanChange { at_ns, reservation });
    }

    /// The groups and their cores, numbered over the rack: server × workers + worker.
    fn reservation(&self, control: &Control) -> Vec<Reservation> {
        let names = self.experiment.workload.class_names();
        let (grouping, layout) = (control.grouping(), control.layout());
        let cores = |group: usize| {
            (0..layout.servers()).flat_map(move |server| {
                let first: usize = (0..group)
                    .map(|shorter| layout.cores(server, shorter))
                    .sum();
                let own = first..first + layout.cores(server, group);
                own.map(move |core| server * self.experiment.workers + core)
            })
        };
        let stealable = |group: usize| {
            let longer = move |server: usize| {
                let here = layout.cores(server, group) > 0;
                let from: usize = (0..=group)
                    .map(|shorter| layout.cores(server, shorter))
                    .sum();
                let cores = if here {
                    from..layout.capacity(server)
                } else {
                    0..0
                };
                cores.map(move |core| server * self.experiment.workers + core)
            };
            (0..layout.servers()).flat_map(longer)
        };
        let group = |group: usize| Reservation {
            classes: grouping
                .members(group)
                .map(|class| names[class].to_owned())
                .collect(),
            reserved: cores(group).collect(),
            stealable: stealable(group).collect(),
        };
        (0..grouping.groups()).map(group).collect()
    }

    pub(super) fn into_outcome(
        mut self,
        policy: &str,
        params: &Params,
        control: Option<&Control>,
        busy_ns: &[u64],
    ) -> Outcome {
        let starved = self.backlog.starved(self.experiment.total_workers());
        let elapsed_ns = self.totals.elapsed_ns() * self.experiment.workers as f64;
        let servers = self.per_server.iter().zip(busy_ns);
        self.figures.servers = servers
            .map(|(slowdown_milli, &busy_ns)| ServerFigures {
                requests: slowdown_milli.count(),
                utilization: busy_ns as f64 / elapsed_ns,
                slowdown_p99: slowdown_milli
                    .quantile(0.99)
                    .map_or(f64::NAN, |milli| milli as f64 / 1e3),
            })
            .collect();
        let reservation = control.map(|control| self.reservation(control));
        let mut outcome = Outcome::new(
            self.experiment,
            policy,
            params,
            &self.totals,
            self.recorder,
            &starved,
        );
        outcome.run.extras.reservation = reservation;
        outcome.plan_changes = self.plan_changes;
        outcome.timeline = self
            .timeline
            .map(Timeline::into_intervals)
            .unwrap_or_default();
        outcome.run.extras.rack = Some(self.figures);
        outcome
    }
}
