//! What a trial's run shows.

use crate::gaps::Gap;
use crate::play::PlayedTrial;
use crate::probe::Disturbance;
use crate::{Trial, TrialError};
use headway_machine::{MachineDescription, noise};
use headway_net::replay::Completion;
use headway_policy::spec::Params;
use headway_report::{Noise, Recorder, Run, RunExtras, RunLevel, RunMeta};
use headway_workload::Arrival;
use serde_json::{Map, Value};
use std::ops::Range;
use std::time::Duration;

/// The time that the noise is measured before and after a run.
const WATCH: Duration = Duration::from_millis(150);
/// A run, and what disturbed it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The report.
    pub run: Run,
    /// The time taken from its handlers.
    pub disturbance: Disturbance,
    /// Gaps of all threads of the server, in handlers or outside, ns after the start.
    pub gaps: Vec<Gap>,
    /// Number of quanta that ended without an interruption, since no request waited for the worker.
    pub renewals: u64,
    /// The result of each measured request, by its index among the arrivals; `None` where it was shed.
    pub served: Vec<Option<Served>>,
}

impl Observed {
    /// Fraction of the run's time that was taken from its threads, in handlers or outside, 0 to 1.
    #[must_use]
    pub fn lost_fraction(&self) -> f64 {
        let ends = self.served.iter().flatten();
        let end_ns = ends
            .map(|served| served.arrived_ns + served.latency_ns)
            .max();
        let end_ns = end_ns.unwrap_or(0).max(1);
        let lost_ns: u64 = self
            .gaps
            .iter()
            .map(|gap| gap.end.min(end_ns).saturating_sub(gap.start))
            .sum();
        let of_run = lost_ns as f64 / end_ns as f64;
        self.disturbance.lost_fraction().max(of_run).min(1.0)
    }
}

/// The result of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Its class's index in the workload.
    pub class: u16,
    /// Its intended arrival, ns after the start.
    pub arrived_ns: u64,
    /// Its service time without disturbance, ns.
    pub service_ns: u64,
    /// From its intended arrival to its answer, ns.
    pub latency_ns: u64,
}

impl Trial {
    /// Runs the trial. The report's latencies count from the intended arrivals.
    ///
    /// # Errors
    /// [`TrialError`] when the server does not start or stop.
    pub fn run(&self) -> Result<Observed, TrialError> {
        let before = self.watch();
        let mut observed = self.observe()?;
        let watched = before.merge(&self.watch());
        if let Some(noise) = &mut observed.run.extras.noise {
            noise.lost_fraction = noise.lost_fraction.max(watched.lost_fraction).min(1.0);
        }
        Ok(observed)
    }

    /// As [`run`](Self::run), without a look at the machine before and after: noise is what the run's own handlers lost.
    pub(crate) fn observe(&self) -> Result<Observed, TrialError> {
        self.experiment.check()?;
        let arrivals = self.arrivals()?;
        let played = if self.over_udp {
            self.play_over_udp(&arrivals)?
        } else {
            self.play(&arrivals)?
        };
        let noise = Noise {
            lost_fraction: played.disturbance.lost_fraction().min(1.0),
            gaps_over_10us: played.disturbance.gaps_over_10us,
        };
        Ok(Observed {
            run: self.report(&arrivals, &played, noise),
            disturbance: played.disturbance,
            renewals: played.stats.classes.iter().map(|c| c.renewals).sum(),
            served: self.served(&arrivals, &played),
            gaps: played.gaps,
        })
    }

    fn watch(&self) -> noise::NoiseSummary {
        noise::measure(WATCH, None).unwrap_or_default()
    }

    fn report(&self, arrivals: &[Arrival], played: &PlayedTrial, noise: Noise) -> Run {
        let experiment = &self.experiment;
        let workload = &experiment.workload;
        let mut recorder = Recorder::new(&self.class_metas());
        for completion in self.counted(arrivals, played) {
            let class = usize::from(completion.class);
            if completion.shed {
                recorder.dropped(class);
                continue;
            }
            let latency_ns = completion.latency_ns + experiment.network_ns;
            recorder.record(class, latency_ns, completion.service_ns);
        }
        let cores = self.cores();
        let extras = RunExtras {
            cores: Some(cores.all()),
            serving_cores: Some(cores.serving()),
            wasted_cores: Some(self.wasted_cores(arrivals, played)),
            expected_waste_cores: played
                .stats
                .plan
                .as_ref()
                .and_then(|plan| headway_sim::expected_waste_of(plan, experiment.workers)),
            ..extras(workload, played, noise)
        };
        Run::new(self.meta(arrivals, played), &recorder, extras)
    }

    /// Cores idle on average while a request waited: with `n` requests in the server, `min(n, workers)` of them could run;
    /// the rest of that time was wasted.
    fn wasted_cores(&self, arrivals: &[Arrival], played: &PlayedTrial) -> f64 {
        let present = played
            .completions
            .iter()
            .filter(|done| !done.shed)
            .map(|done| {
                let from_ns = arrivals[done.index as usize].at_ns;
                from_ns..from_ns + done.latency_ns
            });
        let present: Vec<Range<u64>> = present.collect();
        let busy_ns: u64 = played.stats.classes.iter().map(|class| class.cpu_ns).sum();
        wasted_cores(&present, busy_ns, self.experiment.workers)
    }

    /// The requests after the warm-up.
    fn counted<'a>(
        &self,
        arrivals: &[Arrival],
        played: &'a PlayedTrial,
    ) -> impl Iterator<Item = &'a Completion> {
        let from = (self.experiment.warm_up * arrivals.len() as f64) as u32;
        played
            .completions
            .iter()
            .filter(move |done| done.index >= from)
    }

    fn served(&self, arrivals: &[Arrival], played: &PlayedTrial) -> Vec<Option<Served>> {
        let mut served = vec![None; arrivals.len()];
        for done in self.counted(arrivals, played).filter(|done| !done.shed) {
            let index = done.index as usize;
            served[index] = Some(Served {
                class: u16::from(done.class),
                arrived_ns: arrivals[index].at_ns,
                service_ns: done.service_ns,
                latency_ns: done.latency_ns + self.experiment.network_ns,
            });
        }
        served
    }

    /// The policy's parameters, plus the choices of the live server.
    fn params(&self, params: &Params) -> Map<String, Value> {
        let mut params = params_json(params);
        if let Ok(Some(mechanism)) = self.interrupted_by() {
            params.insert("preempt".into(), mechanism.name().into());
        }
        if let Some(flows) = self.experiment.flows {
            params.insert("flows".into(), flows.to_string().into());
        }
        params
    }

    fn meta(&self, arrivals: &[Arrival], played: &PlayedTrial) -> RunMeta {
        let experiment = &self.experiment;
        let rate_rps = experiment.rate_rps();
        let elapsed_ns = arrivals.last().map_or(1, |last| last.at_ns.max(1)) as f64;
        let served: u64 = played.stats.answered;
        let busy_ns: u64 = played.stats.classes.iter().map(|class| class.cpu_ns).sum();
        RunMeta {
            policy: played.policy.into(),
            params: self.params(&played.params),
            level: RunLevel::Live,
            workload: experiment.workload.name.clone(),
            workers: experiment.workers,
            seed: experiment.seed,
            requests: arrivals.len() as u64,
            offered_rps: rate_rps,
            achieved_rps: served as f64 * 1e9 / elapsed_ns.max(1.0),
            load: experiment.offered_load(),
            utilization: busy_ns as f64 / elapsed_ns / experiment.workers as f64,
            dropped: played.stats.shed,
            preemptions: played.stats.preemptions,
            overloaded: played.stats.shed as f64 > 0.001 * arrivals.len() as f64,
        }
    }
}

/// The mean number of wasted workers, for requests present during these times.
fn wasted_cores(present: &[Range<u64>], busy_ns: u64, workers: usize) -> f64 {
    let came = present.iter().map(|request| (request.start, 1_i64));
    let went = present.iter().map(|request| (request.end, -1));
    let mut events: Vec<(u64, i64)> = came.chain(went).collect();
    events.sort_unstable();
    let (mut requests, mut before_ns, mut could_run_ns) = (0, 0, 0);
    for &(at_ns, change) in &events {
        could_run_ns += (at_ns - before_ns) * requests.min(workers as i64) as u64;
        before_ns = at_ns;
        requests += change;
    }
    let span_ns = before_ns - events.first().map_or(before_ns, |(first_ns, _)| *first_ns);
    could_run_ns.saturating_sub(busy_ns) as f64 / span_ns.max(1) as f64
}

fn extras(workload: &headway_workload::Workload, played: &PlayedTrial, noise: Noise) -> RunExtras {
    let names = workload.class_names();
    let reservation = played
        .stats
        .plan
        .as_ref()
        .map(|plan| headway_sim::reservation_of(plan, &names));
    RunExtras {
        reservation,
        machine: Some(machine(played.layout)),
        noise: Some(noise),
        ..RunExtras::default()
    }
}

/// This machine in a line.
pub(crate) fn machine_name() -> String {
    MachineDescription::read().map_or_else(|error| error.to_string(), |machine| machine.to_string())
}

/// The machine, in the words of a report.
fn machine(layout: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("description".into(), machine_name().into());
    map.insert("layout".into(), layout.into());
    map
}

/// Parameters as JSON.
pub(crate) fn params_json(params: &Params) -> Map<String, Value> {
    params
        .iter()
        .map(|(key, value)| ((*key).into(), headway_sim::value_json(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_idle_beside_waiting_requests_are_wasted() {
        // Two workers and three requests at once, one after the other on one worker.
        let present = [0..10, 0..20, 0..30];
        let wasted = wasted_cores(&present, 30, 2);
        assert!(
            (wasted - (2.0 * 20.0 + 10.0 - 30.0) / 30.0).abs() < 1e-12,
            "{wasted}"
        );
        // Side by side, nothing is: two for 10 ns, then the third.
        assert_eq!(wasted_cores(&[0..10, 0..10, 0..20], 30, 2), 0.0);
        assert_eq!(wasted_cores(&[], 0, 2), 0.0);
    }
}
