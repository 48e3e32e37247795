//! One live run of a policy on replayed arrivals.

use crate::gaps::{Gap, gap_of};
use crate::probe::{Disturbance, SpinProbe};
use crate::schedules::schedules;
use headway_machine::{Clock, MachineDescription, noise};
use headway_net::replay::{Completion, Replay};
use headway_policy::Resume;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Facts, Preemption};
use headway_policy::spec::{Params, SpecError};
use headway_report::{ClassMeta, Noise, Recorder, Run, RunExtras, RunLevel, RunMeta};
use headway_runtime::{
    Builder, DeclaredClass, Idle, Layout, Mechanism, Pin, Server, ShutdownError, Stall, StartError,
    Stats, max_queue_limit, server_shape,
};
use headway_sim::{Experiment, Length, class_hints};
use headway_workload::{Arrival, Generator};
use serde_json::{Map, Value};
use std::ops::Range;
use std::time::Duration;

/// Time for the threads to settle before the first arrival.
const LEAD_NS: u64 = 5_000_000;
/// Time limit for the remaining answers after the last arrival.
const DRAIN: Duration = Duration::from_secs(30);
/// Capacity for stalls: more than a second of a usable machine brings.
const STALLS: usize = 1 << 16;
/// The time that the noise is measured before and after a run.
const WATCH: Duration = Duration::from_millis(150);
/// Most requests that wait in one live queue.
const QUEUE_LIMIT: usize = 16 * 1024;

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
}

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

    /// Runs the trial. The report's latencies count from the intended arrivals.
    ///
    /// # Errors
    /// [`TrialError`] when the server does not start or stop.
    pub fn run(&self) -> Result<Observed, TrialError> {
        self.experiment.check()?;
        let arrivals = self.arrivals()?;
        let before = self.watch();
        let played = self.play(&arrivals)?;
        let watched = before.merge(&self.watch());
        let noise = Noise {
            lost_fraction: played
                .disturbance
                .lost_fraction()
                .max(watched.lost_fraction)
                .min(1.0),
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

    /// With many classes, limited by the number of buffers.
    fn queue_limit(&self) -> usize {
        let experiment = &self.experiment;
        let most = max_queue_limit(experiment.workers, self.classes().len());
        experiment.queue_limit.min(QUEUE_LIMIT).min(most)
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

    fn play(&self, arrivals: &[Arrival]) -> Result<PlayedTrial, TrialError> {
        let experiment = &self.experiment;
        let (replay, control) = Replay::new(schedules(experiment, arrivals)?)?;
        let probe = SpinProbe::new(experiment.workers);
        let builder = Server::builder()
            .workers(experiment.workers)
            .policy_spec(experiment.policy.server()?.clone())
            .classes(self.classes())
            .seed(experiment.seed)
            .idle(self.idle)
            .pin(self.pin.clone())
            .keep_stalls(STALLS)
            .service(probe.clone())
            .datapath(replay);
        #[expect(
            unsafe_code,
            reason = "the handler is known to keep nothing of its thread's"
        )]
        let builder = match experiment.resume {
            // SAFETY: the probe reads clocks and its own log over a checkpoint, and holds no lock there.
            Resume::Anywhere => unsafe { builder.resume_anywhere() },
            Resume::OwnWorker => builder,
        };
        let server = self.as_heeded(builder)?.start()?;
        let clock = Clock::global();
        let start_ns = clock.now_ns() + LEAD_NS;
        control.start(start_ns);
        // A single long sleep: waking up in between would take time from a worker's core.
        let last_ns = arrivals.last().map_or(0, |last| last.at_ns);
        std::thread::sleep(Duration::from_nanos(LEAD_NS + last_ns));
        while control.taken() < control.total() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let stalls = server.stalls();
        let (policy, params) = (server.policy(), server.params().clone());
        let layout = layout_words(&server);
        let stats = server.shutdown(DRAIN)?;
        let completions = control.take_completions();
        let (disturbance, noticed) = probe.noticed();
        let noticed = noticed.into_iter().map(|gap| Stall {
            from_ns: gap.start,
            to_ns: gap.end,
        });
        // A full log misses later stalls: then every request counts as disturbed.
        let unseen = (stalls.len() >= STALLS).then_some(0..u64::MAX);
        let gaps = stalls.into_iter().chain(noticed);
        Ok(PlayedTrial {
            policy,
            params,
            layout,
            stats,
            completions,
            disturbance,
            gaps: gaps
                .filter_map(|stall| gap_of(&stall, start_ns))
                .chain(unseen)
                .collect(),
        })
    }

    /// The same hints as the simulator's policy gets.
    fn classes(&self) -> Vec<DeclaredClass> {
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

/// The raw results of a run.
struct PlayedTrial {
    policy: &'static str,
    params: Params,
    layout: &'static str,
    stats: Stats,
    completions: Vec<Completion>,
    disturbance: Disturbance,
    gaps: Vec<Gap>,
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
