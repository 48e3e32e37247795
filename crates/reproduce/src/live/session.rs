//! The measurement: the times of requests at rest, the reference's capacity, then every system at every load in turn.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headway_load::{Load, LoadReport, Threads};
use headway_machine::doctor::has_steady_tsc;
use headway_policy::Rng;
use headway_report::{ClassMeta, ClassResult, Overall, Recorder};
use headway_workload::{Offered, Workload};

use super::closed_loop::{ClosedLoop, ClosedLoopError, RequestTimes};
use super::experiment::{Compiled, LiveExperiment, LiveSystem};
use super::requests::RequestMix;
use super::rounds::{AtServer, LiveRun, again};
use super::server::{ServerArguments, ServerCounts, ServerError, ServerProcess};
use crate::measured::rounds::{LATE_NS, Lag, PlannedRun, complete_rounds, planned_runs};
use crate::measured::{LoadsExtent, MeasuredExperiment as _};

/// Requests of each class sent one at a time, after as many for warm-up; and the number of turns of the two programs.
const AT_REST: usize = 40;
const AT_REST_TURNS: usize = 4;
/// Outstanding requests in the measurement of the reference's capacity, and its duration.
const OUTSTANDING: usize = 16;
const SATURATED: Duration = Duration::from_millis(1_000);
/// The fraction of the requests that is discarded as warm-up, as in all runs of Headway.
const WARM_UP: f64 = 0.1;
/// Time that the client waits for the last answers.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Settings of a measurement.
#[derive(Clone, Debug, Default)]
pub struct LiveSettings {
    /// Another server with probes than the file's; its program without probes has the suffix `-plain`.
    pub server: Option<PathBuf>,
    /// Whether to run the short version.
    pub fast: bool,
    /// Number of workers; by default one less than there are cores, since the dispatcher has the last core.
    pub workers: Option<usize>,
    /// Seed of arrivals and keys.
    pub seed: u64,
}

/// The errors of a measurement.
#[derive(thiserror::Error)]
pub enum LiveError {
    /// No program of the server exists.
    #[error("there is no server at {}; `{build}` builds it, --server PATH names another", path.display())]
    NoServer {
        /// Path of the missing program.
        path: PathBuf,
        /// The command that builds it.
        build: String,
    },
    /// No system can run.
    #[error("no system can be measured here: {why}")]
    NoSystem {
        /// Why the first system cannot run.
        why: String,
    },
    /// A server failed after its first run.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The closed loop failed.
    #[error(transparent)]
    ClosedLoop(#[from] ClosedLoopError),
    /// The open loop failed.
    #[error(transparent)]
    Load(#[from] headway_load::LoadError),
}

headway_words::debug_is_display!(LiveError);

/// Median times of requests of a class that are sent one at a time, ns.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AtRest {
    /// The class.
    pub class: String,
    /// The handler's time by the reference's program, as the server reports it. Slowdowns are relative to it.
    pub service_ns: u64,
    /// The handler's time compiled with probes; none if there is no such program.
    pub with_probes_ns: Option<u64>,
    /// The time from the client's send to the answer's arrival, including the network stack and the client's wake-up.
    pub round_trip_ns: u64,
}

/// The measurements before the rounds.
#[derive(Debug)]
pub(crate) struct Baseline {
    /// Times by class, for all classes of the file; 1 ns for a class that no client sends.
    pub(crate) at_rest: Vec<AtRest>,
    /// Median round trip of the shortest class at rest, less its handler's time, ns. It is subtracted from every latency.
    pub(crate) network_ns: u64,
    /// The reference's answers per second with requests always waiting.
    pub(crate) capacity_rps: f64,
}

/// The raw results of a measurement.
#[derive(Debug)]
pub(crate) struct LiveMeasurements {
    pub(crate) workers: usize,
    pub(crate) baseline: Baseline,
    /// For each system of the file, why it did not run; none if it ran.
    pub(crate) skipped: Vec<Option<String>>,
    /// The runs of the rounds that were complete.
    pub(crate) runs: Vec<LiveRun>,
    /// How many those are.
    pub(crate) rounds: usize,
}

pub(crate) struct LiveSession<'a> {
    experiment: &'a LiveExperiment,
    settings: &'a LiveSettings,
    extent: &'a LoadsExtent,
    mix: Arc<RequestMix>,
    probes: PathBuf,
    plain: PathBuf,
    workers: usize,
}

impl<'a> LiveSession<'a> {
    pub(crate) fn new(experiment: &'a LiveExperiment, settings: &'a LiveSettings) -> Self {
        let programs = &experiment.server;
        let (probes, plain) = match &settings.server {
            None => (programs.probes.clone(), programs.plain.clone()),
            Some(path) => {
                let mut plain = path.clone().into_os_string();
                plain.push("-plain");
                (path.clone(), plain.into())
            }
        };
        Self {
            experiment,
            settings,
            extent: experiment.extent(settings.fast),
            mix: Arc::new(RequestMix::new(&experiment.class, settings.seed)),
            probes,
            plain,
            workers: settings
                .workers
                .unwrap_or_else(|| (headway_sim::available_threads() - 1).max(1)),
        }
    }

    /// Runs the measurement. `progress` gets the finished steps, all steps, and the next step's name, and says whether it goes on.
    pub(crate) fn measure(
        &self,
        mut progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
    ) -> Result<Option<LiveMeasurements>, LiveError> {
        if !self.probes.exists() && !self.plain.exists() {
            return Err(LiveError::NoServer {
                path: self.probes.clone(),
                build: self.experiment.server.build.clone(),
            });
        }
        let mut is_over = || progress(0, 1, "at rest").is_break();
        is_over();
        let skipped: Vec<Option<String>> = self
            .experiment
            .system
            .iter()
            .map(|s| self.obstacle(s))
            .collect();
        // A server that was ended with this process has no obstacle of its own.
        if is_over() {
            return Ok(None);
        }
        let Some(reference) = skipped.iter().position(Option::is_none) else {
            let why = skipped.into_iter().flatten().next().unwrap_or_default();
            return Err(LiveError::NoSystem { why });
        };
        let baseline = match self.baseline(&self.experiment.system[reference]) {
            Err(_) if is_over() => return Ok(None),
            baseline => baseline?,
        };
        let running: Vec<usize> = (0..skipped.len())
            .filter(|&index| skipped[index].is_none())
            .collect();
        let plan = planned_runs(self.extent.rounds, self.extent.loads.len(), &running);
        let mut spare = again(plan.len());
        let measured = complete_rounds(
            &plan,
            self.extent.rounds,
            |place, next| progress(place, plan.len(), &self.experiment.system[next.system].name),
            |planned| self.run_in_time(planned, &baseline, &mut spare),
        )?;
        Ok(measured.map(|measured| LiveMeasurements {
            workers: self.workers,
            baseline,
            skipped,
            runs: measured.runs.into_iter().flatten().collect(),
            rounds: measured.rounds,
        }))
    }

    /// A run, and its repetition where it was late and one is left.
    fn run_in_time(
        &self,
        planned: PlannedRun,
        baseline: &Baseline,
        spare: &mut usize,
    ) -> Result<Vec<LiveRun>, LiveError> {
        let mut run = self.run(planned, baseline)?;
        if !run.lag.is_late() || *spare == 0 {
            return Ok(vec![run]);
        }
        *spare -= 1;
        run.repeated = true;
        Ok(vec![run, self.run(planned, baseline)?])
    }

    fn baseline(&self, reference: &LiveSystem) -> Result<Baseline, LiveError> {
        let at_rest = self.at_rest(reference)?;
        Ok(Baseline {
            capacity_rps: self.capacity(reference)?,
            network_ns: self.network_ns(&at_rest),
            at_rest,
        })
    }

    /// The network's time of the shortest class, whose round trip consists of little else.
    fn network_ns(&self, at_rest: &[AtRest]) -> u64 {
        let sent = self.mix.sent().map(|class| &at_rest[class]);
        let shortest = sent.min_by_key(|class| class.service_ns);
        shortest.map_or(0, |class| {
            class.round_trip_ns.saturating_sub(class.service_ns)
        })
    }

    fn workload(&self, at_rest: &[AtRest]) -> Workload {
        let service_ns: Vec<u64> = at_rest.iter().map(|class| class.service_ns).collect();
        self.mix.workload(&self.experiment.name, &service_ns)
    }

    /// Starts a system once and returns why it cannot run here; none if it can.
    fn obstacle(&self, system: &LiveSystem) -> Option<String> {
        let program = self.program(system.program);
        if !program.exists() {
            let build = &self.experiment.server.build;
            return Some(format!("there is no {} (`{build}`)", program.display()));
        }
        if system.tsc && !has_steady_tsc() {
            return Some("the time-stamp counter is not steady".into());
        }
        let tried = self.start(system).and_then(ServerProcess::stop);
        tried.err().map(|error| error.to_string())
    }

    fn program(&self, compiled: Compiled) -> &Path {
        match compiled {
            Compiled::Probes => &self.probes,
            Compiled::Plain => &self.plain,
        }
    }

    fn start(&self, system: &LiveSystem) -> Result<ServerProcess, ServerError> {
        let arguments = ServerArguments {
            policy: &system.policy,
            workers: self.workers + usize::from(system.undispatched),
            preempt: if system.signal { "signal" } else { "probes" },
        };
        ServerProcess::start(self.program(system.program), &arguments)
    }

    /// Programs with and without probes take turns, since a machine's speed changes from second to second.
    fn at_rest(&self, reference: &LiveSystem) -> Result<Vec<AtRest>, LiveError> {
        let probed = LiveSystem {
            program: Compiled::Probes,
            ..reference.clone()
        };
        let classes = self.experiment.class.len();
        let (mut own, mut with_probes) = (vec![Vec::new(); classes], vec![Vec::new(); classes]);
        for _ in 0..AT_REST_TURNS {
            self.ask_each(reference, &mut own)?;
            if self.probes.exists() {
                self.ask_each(&probed, &mut with_probes)?;
            }
        }
        let executions =
            |times: &[RequestTimes]| median(times.iter().map(|times| times.execution_ns));
        Ok(own
            .iter()
            .enumerate()
            .map(|(index, times): (usize, &Vec<RequestTimes>)| AtRest {
                class: self.mix.name(index).into(),
                service_ns: executions(times).max(1),
                with_probes_ns: self
                    .probes
                    .exists()
                    .then(|| executions(&with_probes[index])),
                round_trip_ns: median(times.iter().map(|times| times.round_trip_ns)),
            })
            .collect())
    }

    /// Sends a new server one request after the other, and adds each one's times to its class.
    fn ask_each(
        &self,
        system: &LiveSystem,
        times: &mut [Vec<RequestTimes>],
    ) -> Result<(), LiveError> {
        let server = self.start(system)?;
        let mut client = ClosedLoop::connect(server.addr, &self.mix)?;
        for class in self.mix.sent() {
            for _ in 0..AT_REST {
                client.ask(class)?;
            }
            for _ in 0..AT_REST {
                times[class].push(client.ask(class)?);
            }
        }
        server.stop()?;
        Ok(())
    }

    fn capacity(&self, reference: &LiveSystem) -> Result<f64, LiveError> {
        let server = self.start(reference)?;
        let mut rng = Rng::new(self.settings.seed);
        let mut client = ClosedLoop::connect(server.addr, &self.mix)?;
        let rps = client.throughput(OUTSTANDING, SATURATED, || self.mix.draw(&mut rng))?;
        server.stop()?;
        Ok(rps)
    }

    fn run(&self, planned: PlannedRun, baseline: &Baseline) -> Result<LiveRun, LiveError> {
        let system = &self.experiment.system[planned.system];
        let server = self.start(system)?;
        let rate_rps = self.extent.loads[planned.load] * baseline.capacity_rps;
        let workload = self.workload(&baseline.at_rest);
        let mut load = self.load(server.addr, &workload, rate_rps, self.extent.run());
        load.seed = self.settings.seed.wrapping_add(planned.seed());
        load.policy = system.policy.clone();
        load.workers += usize::from(system.undispatched);
        let report = load.run(|_| ControlFlow::Continue(()))?;
        let counts = server.stop()?;
        Ok(self.live_run(planned, baseline, report, counts))
    }

    fn load(
        &self,
        addr: std::net::SocketAddr,
        workload: &Workload,
        rate_rps: f64,
        length: Duration,
    ) -> Load {
        let extent = headway_load::Extent::Duration {
            ns: length.as_nanos() as u64,
        };
        let mut load = Load::new(addr, workload.clone(), Offered::Rate(rate_rps), extent);
        load.seed = self.settings.seed;
        load.warm_up = WARM_UP;
        load.timeout_ns = TIMEOUT_NS;
        load.threads = Threads::One;
        load.late_bound_ns = LATE_NS;
        load.keep_answers = true;
        load.workers = self.workers;
        let mix = Arc::clone(&self.mix);
        load.body = Arc::new(move |class, index, room: &mut [u8]| mix.body(class, index, room));
        load
    }

    fn live_run(
        &self,
        planned: PlannedRun,
        baseline: &Baseline,
        report: LoadReport,
        counts: ServerCounts,
    ) -> LiveRun {
        let server = at_server(&report, baseline);
        let mut run = report.run;
        run.meta.preemptions = counts.preemptions;
        LiveRun {
            round: planned.round,
            load: self.extent.loads[planned.load],
            system: self.experiment.system[planned.system].name.clone(),
            failed: report.statuses.failed(),
            shed: report.statuses.shed + report.statuses.draining,
            lag: Lag::of(&report.lag_ns),
            repeated: false,
            lock_yields: counts.lock_yields,
            server,
            run,
        }
    }
}

/// Latencies at the server: from the send, less the network's time at rest, but at least the service time. Slowdowns are
/// relative to the service time.
fn at_server(report: &LoadReport, baseline: &Baseline) -> AtServer {
    let metas: Vec<ClassMeta> = baseline
        .at_rest
        .iter()
        .map(|class| ClassMeta::new(&class.class, class.service_ns as f64))
        .collect();
    let mut recorder = Recorder::new(&metas);
    for answer in &report.answers {
        let service_ns = baseline.at_rest[answer.class].service_ns;
        let latency_ns = answer.since_sent_ns.saturating_sub(baseline.network_ns);
        recorder.record(answer.class, latency_ns.max(service_ns), service_ns);
    }
    AtServer {
        overall: Overall::of(&recorder.overall()),
        classes: recorder.classes().iter().map(ClassResult::of).collect(),
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
