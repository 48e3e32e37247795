//! The measurements of a rack while it runs.

use super::rival::Rival;
use crate::experiment::Experiment;
use crate::measures::Measures;
use crate::outcome::Outcome;
use crate::server::SimRequest;
use headway_policy::rack::{ControlPlane, ServerId};
use headway_policy::spec::Params;
use headway_report::{Histogram, RackFigures, Reservation, ServerFigures};

pub(super) struct RackMeasures<'a> {
    pub(super) common: Measures<'a>,
    /// Slowdowns of the requests that each server answered, in thousandths.
    per_server: Vec<Histogram>,
    pub(super) figures: RackFigures,
}

impl<'a> RackMeasures<'a> {
    pub(super) fn new(experiment: &'a Experiment) -> Self {
        Self {
            common: Measures::new(experiment),
            per_server: vec![Histogram::new(); experiment.servers],
            figures: RackFigures::default(),
        }
    }

    /// Records the first response, `latency_ns` after the request's earliest possible arrival at a server.
    #[inline]
    pub(super) fn answered(
        &mut self,
        now_ns: u64,
        server: ServerId,
        request: &SimRequest,
        latency_ns: u64,
    ) {
        if let Some(slowdown_milli) = self.common.answered(now_ns, request, latency_ns) {
            self.per_server[server.index()].record(slowdown_milli);
        }
    }

    /// Whether the p99 is certain to exceed the rival's, whatever the remaining requests do. Of n values at most
    /// ⌊n/100⌋ lie above their p99, and n is at most the number of arrivals.
    pub(super) fn is_beaten_by(&self, rival: &Rival) -> bool {
        let classes = self.common.recorder.classes().iter();
        let above = classes.map(|class| rival.objective_of(class).count_above(rival.p99));
        above.sum::<u64>() > self.common.experiment.expected_requests() as u64 / 100
    }

    pub(super) fn replanned(&mut self, at_ns: u64, control: &ControlPlane) {
        self.figures.regenerated += 1;
        let reservation = self.reservation(control);
        self.common.plan_changed(at_ns, reservation);
    }

    /// The groups and their cores, numbered over the rack: server × workers + worker.
    fn reservation(&self, control: &ControlPlane) -> Vec<Reservation> {
        let names = self.common.experiment.workload.class_names();
        let (grouping, layout) = (control.grouping(), control.layout());
        let cores = |group: usize| {
            (0..layout.servers()).flat_map(move |server| {
                let first: usize = (0..group)
                    .map(|shorter| layout.cores(server, shorter))
                    .sum();
                let own = first..first + layout.cores(server, group);
                own.map(move |core| server * self.common.experiment.workers + core)
            })
        };
        let stealable = |group: usize| {
            (0..layout.servers()).flat_map(move |server: usize| {
                let here = layout.cores(server, group) > 0;
                let from: usize = (0..=group)
                    .map(|shorter| layout.cores(server, shorter))
                    .sum();
                let cores = if here {
                    from..layout.capacity(server)
                } else {
                    0..0
                };
                cores.map(move |core| server * self.common.experiment.workers + core)
            })
        };
        (0..grouping.groups())
            .map(|group: usize| Reservation {
                classes: grouping
                    .members(group)
                    .map(|class| names[class].to_owned())
                    .collect(),
                reserved: cores(group).collect(),
                stealable: stealable(group).collect(),
            })
            .collect()
    }

    pub(super) fn into_outcome(
        mut self,
        policy: &str,
        params: &Params,
        control: Option<&ControlPlane>,
        busy_ns: &[u64],
    ) -> Outcome {
        let elapsed_ns = self.common.totals.elapsed_ns() * self.common.experiment.workers as f64;
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
        let mut outcome = self.common.into_outcome(policy, params);
        outcome.run.extras.reservation = reservation;
        outcome.run.extras.rack = Some(self.figures);
        outcome
    }
}
