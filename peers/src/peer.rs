//! A run of a peer: what serves the schedule, and what comes of it.

use crate::cores::Cores;
use crate::schedule::Schedule;
use crate::{bare_loop, go_program, rayon_pool, tokio_runtime};
use anyhow::{Context, Result};
use headway_machine::noise;
use headway_report::{ClassMeta, Noise, Recorder, Run, RunExtras, RunLevel, RunMeta};
use headway_sim::Experiment;
use std::time::Duration;

/// How long the machine is watched on each side of a run, as in `headway bench`.
const WATCH: Duration = Duration::from_millis(150);

/// What people use instead of Headway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Peer {
    /// A thread per core and an atomic counter
    BareLoop,
    /// The multi-thread runtime, one task a request
    Tokio,
    /// A pool, one spawn a request
    Rayon,
    /// One goroutine a request
    Go,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BareLoop => "bare loop",
            Self::Tokio => "Tokio",
            Self::Rayon => "rayon",
            Self::Go => "Go",
        }
    }

    /// Builds what is not a part of this program. Whether the peer can run here; says why where it cannot.
    ///
    /// # Errors
    /// When what it is built with refuses.
    pub(crate) fn prepare(self) -> Result<bool> {
        let can_run = self != Self::Go || go_program::build()?.is_some();
        if !can_run {
            eprintln!("SKIPPED Go: it needs Go (https://go.dev/dl)");
        }
        Ok(can_run)
    }

    /// Has the peer serve the schedule.
    ///
    /// # Errors
    /// When it does not start, or leaves requests without an answer.
    pub(crate) fn run(
        self,
        experiment: &Experiment,
        schedule: &'static Schedule,
        cores: &Cores,
    ) -> Result<Run> {
        let before = noise::measure(WATCH, None).unwrap_or_default();
        self.play(schedule, cores)
            .with_context(|| format!("{} does not run", self.name()))?;
        let after = noise::measure(WATCH, None).unwrap_or_default();
        let disturbance = schedule.disturbance();
        let lost = disturbance.lost_fraction();
        let noise = Noise {
            lost_fraction: lost.max(before.merge(&after).lost_fraction).min(1.0),
            gaps_over_10us: disturbance.gaps_over_10us,
        };
        let extras = RunExtras {
            noise: Some(noise),
            ..RunExtras::default()
        };
        let meta = self.meta(experiment, schedule);
        Ok(Run::new(meta, &record(experiment, schedule), extras))
    }

    /// Starts the schedule and returns when every request is answered.
    fn play(self, schedule: &'static Schedule, cores: &Cores) -> Result<()> {
        let play = match self {
            Self::BareLoop => bare_loop::play,
            Self::Tokio => tokio_runtime::play,
            Self::Rayon => rayon_pool::play,
            Self::Go => go_program::play,
        };
        play(schedule, cores)
    }

    fn meta(self, experiment: &Experiment, schedule: &Schedule) -> RunMeta {
        let requests = schedule.arrivals().len() as u64;
        let last_ns = schedule.arrivals().last().map_or(1, |last| last.at_ns);
        let elapsed_ns = last_ns.max(1) as f64;
        let (workers, rate_rps) = (experiment.workers, experiment.rate_rps());
        RunMeta {
            policy: self.name().into(),
            params: serde_json::Map::new(),
            level: RunLevel::Live,
            workload: experiment.workload.name.clone(),
            workers,
            seed: experiment.seed,
            requests,
            offered_rps: rate_rps,
            achieved_rps: requests as f64 * 1e9 / elapsed_ns,
            load: experiment.workload.load_for_rate(rate_rps, workers),
            utilization: schedule.service_ns() as f64 / elapsed_ns / workers as f64,
            dropped: 0,
            preemptions: 0,
            overloaded: false,
        }
    }
}

/// The latencies of the requests after the warm-up.
fn record(experiment: &Experiment, schedule: &Schedule) -> Recorder {
    let classes = experiment.workload.union();
    let classes: Vec<ClassMeta> = classes
        .map(|class| ClassMeta::new(&class.name, class.mean_ns()))
        .collect();
    let mut recorder = Recorder::new(&classes);
    let requests = schedule.arrivals().iter().zip(schedule.latencies_ns());
    let warm_up = (experiment.warm_up * schedule.arrivals().len() as f64) as usize;
    for (arrival, latency_ns) in requests.skip(warm_up) {
        match latency_ns {
            Some(latency_ns) => {
                recorder.record(usize::from(arrival.class), latency_ns, arrival.service_ns);
            }
            None => recorder.dropped(usize::from(arrival.class)),
        }
    }
    recorder
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use headway_bench::Trial;
    use headway_sim::Length;
    use headway_workload::Workload;

    #[test]
    fn every_peer_answers_every_request() {
        let workload = Workload::resolve("high-bimodal").unwrap();
        let mut experiment = Experiment::new(workload, "c-fcfs".parse().unwrap())
            .workers(2)
            .load(0.3);
        experiment.length = Length::Requests(500);
        let arrivals = Trial::new(experiment.clone()).arrivals().unwrap();
        let schedule = Schedule::leaked(arrivals);
        for &peer in Peer::value_variants() {
            if !peer.prepare().unwrap() {
                continue;
            }
            peer.play(schedule, &Cores::of(2)).unwrap();
            let latencies_ns: Vec<u64> = schedule.latencies_ns().flatten().collect();
            let served = schedule.arrivals().iter().zip(&latencies_ns);
            assert_eq!(latencies_ns.len(), 500, "{peer:?}");
            for (arrival, &latency_ns) in served {
                let least_ns = arrival.service_ns * 9 / 10;
                assert!(
                    latency_ns >= least_ns,
                    "{peer:?}: {latency_ns} of {arrival:?}"
                );
            }
            let recorder = record(&experiment, schedule);
            assert_eq!(recorder.overall().count(), 450, "{peer:?}");
        }
    }
}
