//! How a trial's server runs: by replayed arrivals, or over loopback UDP.

use crate::gaps::{Gap, gap_of};
use crate::probe::{Disturbance, SpinProbe};
use crate::schedules::schedules;
use crate::{Trial, TrialError};
use headway_load::{Extent, Load};
use headway_machine::Clock;
use headway_net::replay::{Completion, Replay};
use headway_policy::server::role::Owner;
use headway_policy::server::systems::Facts;
use headway_policy::spec::Params;
use headway_runtime::{
    Builder, Layout, Mechanism, Server, Stall, Stats, max_queue_limit, server_shape,
};
use headway_workload::Arrival;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time for the threads to settle before the first arrival.
const LEAD_NS: u64 = 5_000_000;
/// Time limit for the remaining answers after the last arrival.
const DRAIN: Duration = Duration::from_secs(30);
/// Capacity for stalls: more than a second of a usable machine brings.
const STALLS: usize = 1 << 16;
/// How often a run looks whether it is cut off.
const CUTOFF_LOOK: Duration = Duration::from_millis(250);
/// Most requests that wait in one live queue.
pub(crate) const QUEUE_LIMIT: usize = 16 * 1024;

impl Trial {
    /// With many classes, limited by the number of buffers.
    pub(crate) fn queue_limit(&self) -> usize {
        let experiment = &self.experiment;
        let most = max_queue_limit(experiment.workers, self.classes().len());
        experiment.queue_limit.min(QUEUE_LIMIT).min(most)
    }

    /// The server of the trial, without a datapath.
    fn server(&self, probe: &SpinProbe) -> Result<Builder<SpinProbe>, TrialError> {
        let experiment = &self.experiment;
        let builder = Server::builder()
            .workers(experiment.workers)
            .policy_spec(experiment.policy.server()?.clone())
            .classes(self.classes())
            .seed(experiment.seed)
            .idle(self.idle)
            .pin(self.pin.clone())
            .keep_stalls(STALLS)
            .resume(experiment.resume)
            .service(probe.clone());
        #[expect(
            unsafe_code,
            reason = "the handler is known to keep nothing of its thread's"
        )]
        // SAFETY: the probe reads clocks and its own log over a checkpoint, and holds no lock there.
        let builder = unsafe { builder.plain_fibers() };
        self.as_heeded(builder)
    }

    /// The builder with those settings of the trial that its policy heeds: a server refuses the others.
    fn as_heeded<S, D>(&self, builder: Builder<S, D>) -> Result<Builder<S, D>, TrialError> {
        let facts = self.experiment.policy.server()?.facts();
        let (workers, limit) = (self.experiment.workers, self.queue_limit());
        let mut builder = if facts.owner == Owner::Steering {
            builder.slots(server_shape(workers, &self.classes(), limit)?.job_capacity)
        } else {
            builder.queue_limit(limit)
        };
        if facts.owner == Owner::Dispatcher || self.has_monitor()? {
            builder = builder.layout(self.layout);
        }
        if let Some(interval) = self.look_every {
            builder = builder.look_every(interval);
        }
        #[expect(unsafe_code, reason = "the handler may be interrupted anywhere")]
        Ok(match self.mechanism {
            _ if facts.preemption != Facts::BY_DISPATCHER => builder,
            // SAFETY: the probe reads clocks, and writes to its log in a no-preempt section.
            Mechanism::Signal => unsafe { builder.interrupt_by_signal() },
            Mechanism::Tsc => builder.interrupt_by_clock(),
            _ => builder,
        })
    }

    pub(crate) fn play(&self, arrivals: &[Arrival]) -> Result<PlayedTrial, TrialError> {
        let (replay, control) = Replay::new(schedules(&self.experiment, arrivals)?)?;
        let probe = SpinProbe::new(self.experiment.workers);
        let server = self.server(&probe)?.datapath(replay).start()?;
        let clock = Clock::global();
        let start_ns = clock.now_ns() + LEAD_NS;
        control.start(start_ns);
        let last_ns = arrivals.last().map_or(0, |last| last.at_ns);
        self.sleep(Duration::from_nanos(LEAD_NS + last_ns))?;
        while control.taken() < control.total() {
            self.sleep(Duration::from_millis(5))?;
        }
        let ended = EndedServer::of(server)?;
        Ok(PlayedTrial::new(
            ended,
            &probe,
            start_ns,
            control.take_completions(),
        ))
    }

    /// The same over loopback UDP, with a client in this process. Latencies count from the actual sends, so the client's own delay is no part of them.
    pub(crate) fn play_over_udp(&self, arrivals: &[Arrival]) -> Result<PlayedTrial, TrialError> {
        let experiment = &self.experiment;
        let probe = SpinProbe::new(experiment.workers);
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = self.server(&probe)?.listen_udp(here).start()?;
        let target = server.local_addr().expect("it listens");
        let extent = Extent::Requests {
            count: arrivals.len() as u64,
        };
        let workload = experiment.workload.clone();
        let mut load = Load::new(target, workload, experiment.offered, extent);
        load.seed = experiment.seed;
        load.workers = experiment.workers;
        load.warm_up = 0.0;
        load.keep_answers = true;
        let cutoff = self.cutoff.as_ref();
        let is_cut_off = || cutoff.is_some_and(|cutoff| cutoff.load(Ordering::Relaxed));
        let sent = load.run(|_| {
            if is_cut_off() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let sent = sent.map_err(|error| TrialError::Load(error.to_string()))?;
        let ended = EndedServer::of(server)?;
        if is_cut_off() {
            return Err(TrialError::CutOff);
        }
        let start_ns = sent.answers.first().map_or(0, |first| {
            first.due_ns.saturating_sub(arrivals[first.index].at_ns)
        });
        let answers = sent.answers.iter().map(|answer| Completion {
            index: answer.index as u32,
            class: answer.class as u8,
            service_ns: arrivals[answer.index].service_ns,
            latency_ns: answer.since_sent_ns,
            shed: false,
        });
        Ok(PlayedTrial::new(ended, &probe, start_ns, answers.collect()))
    }

    /// Sleeps in as few parts as possible: waking up in between takes time from a worker's core.
    fn sleep(&self, time: Duration) -> Result<(), TrialError> {
        let Some(cutoff) = &self.cutoff else {
            std::thread::sleep(time);
            return Ok(());
        };
        let mut left = time;
        while !cutoff.load(Ordering::Relaxed) {
            std::thread::sleep(left.min(CUTOFF_LOOK));
            left = left.saturating_sub(CUTOFF_LOOK);
            if left.is_zero() {
                return Ok(());
            }
        }
        Err(TrialError::CutOff)
    }
}

/// The raw results of a run.
pub(crate) struct PlayedTrial {
    pub(crate) policy: &'static str,
    pub(crate) params: Params,
    pub(crate) layout: &'static str,
    pub(crate) stats: Stats,
    pub(crate) completions: Vec<Completion>,
    pub(crate) disturbance: Disturbance,
    pub(crate) gaps: Vec<Gap>,
}

/// A server that has ended.
struct EndedServer {
    policy: &'static str,
    params: Params,
    layout: &'static str,
    stats: Stats,
    stalls: Vec<Stall>,
}

impl EndedServer {
    fn of(server: Server) -> Result<Self, TrialError> {
        Ok(Self {
            stalls: server.stalls(),
            policy: server.policy(),
            params: server.params().clone(),
            layout: layout_words(&server),
            stats: server.shutdown(DRAIN)?,
        })
    }
}

impl PlayedTrial {
    fn new(
        ended: EndedServer,
        probe: &SpinProbe,
        start_ns: u64,
        completions: Vec<Completion>,
    ) -> Self {
        let (disturbance, noticed) = probe.noticed();
        let noticed = noticed.into_iter().map(|gap| Stall {
            from_ns: gap.start,
            to_ns: gap.end,
        });
        // A full log misses later stalls: then every request counts as disturbed.
        let unseen = (ended.stalls.len() >= STALLS).then_some(0..u64::MAX);
        let gaps = ended.stalls.into_iter().chain(noticed);
        Self {
            policy: ended.policy,
            params: ended.params,
            layout: ended.layout,
            stats: ended.stats,
            completions,
            disturbance,
            gaps: gaps
                .filter_map(|stall| gap_of(&stall, start_ns))
                .chain(unseen)
                .collect(),
        }
    }
}

/// The layout of the server's threads, in the words of a report.
fn layout_words(server: &Server) -> &'static str {
    match (server.layout(), server.monitor_layout()) {
        (Some(Layout::Inline), _) => "inline dispatcher",
        (Some(_), _) => "dedicated dispatcher",
        (None, Some(Layout::Dedicated)) => "steered, no dispatcher, dedicated monitor",
        (None, Some(_)) => "steered, no dispatcher, inline monitor",
        (None, None) => "steered, no dispatcher",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_runtime::server_shape;
    use headway_sim::Experiment;
    use headway_workload::Workload;

    #[test]
    fn queues_of_many_classes_share_the_buffers() {
        let text: String = (0..40).map(|index| {
            format!(
                "[[class]]\nname = \"c{index}\"\nshare = 0.025\nservice = {{ dist = \"constant\", mean = \"2us\" }}\n"
            )
        }).collect();
        let workload = Workload::from_toml_str(&text, "many.toml").unwrap();
        let trial = Trial::new(Experiment::new(workload, "c-fcfs".parse().unwrap()));
        let (classes, limit) = (trial.classes(), trial.queue_limit());
        assert!(limit < QUEUE_LIMIT, "{limit}");
        let shape = server_shape(trial.experiment.workers, &classes, limit);
        assert_eq!(shape.unwrap().queue_limit, limit);
    }
}
