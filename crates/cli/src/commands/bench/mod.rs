//! `headway bench`: policies live on this machine, through the replay datapath.

mod compared;
mod costs;
mod flags;
mod show;

pub(crate) use flags::{IdleFlag, LayoutFlag};

use super::admission::{self, Refused};
use super::apps::BuiltInApp;
use super::sim::{tell_few_samples, tell_verdict};
use crate::args::{self, Destination, LengthFlags, TraceFlags, Traffic};
use crate::error::usage;
use crate::interrupt::{Interrupt, Interrupted};
use crate::learning;
use crate::output::{self, OutputFormat};
use crate::policy_flag::{self, Runs};
use crate::progress;
use anyhow::{Result, bail};
use costs::BenchCosts;
use headway::config::{layout_costs, read_costs};
use headway_bench::compare::{Agreement, Comparison};
use headway_bench::{Observed, Trial, TrialError};
use headway_policy::Resume;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::ServerSpec;
use headway_report::{BenchReport, Noise, Run, Slo, format};
use headway_runtime::{
    Admission, Layout, LayoutCosts, LayoutFacts, Mechanism, StartError, max_queue_limit,
    mean_service_ns, server_shape,
};
use headway_sim::{Experiment, Flows};
use headway_workload::Workload;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const DEFAULT_LOAD: f64 = 0.5;
const DEFAULT_DURATION_NS: u64 = 1_000_000_000;

const POLICY_HELP: &str = "A policy and its parameters; repeat for more [default: c-fcfs, and darc with a window that fits into the warm-up; with \
    --preempt c-fcfs and the policies of that mechanism, concord or tiny-quanta]";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A policy and its parameters; repeat for more [default: c-fcfs, and darc with a window that fits into the warm-up; with --preempt c-fcfs
    /// and the policies of that mechanism, concord or tiny-quanta]
    #[arg(long = "policy", value_name = policy_flag::VALUE, value_parser = Runs::Live, hide_possible_values = true, long_help = Runs::Live.help(POLICY_HELP))]
    policies: Vec<String>,
    #[command(flatten)]
    traffic: BenchTraffic,
    /// Number of flows that the requests belong to: 8, or 8,zipf:0.99 for shares by Zipf's law. Where the network steers, a flow's hash
    /// selects the worker's queue. Each round draws other flows [default: each request is a flow of its own]
    #[arg(long, value_name = "N[,zipf:S]")]
    flows: Option<Flows>,
    /// Workers [default: one core less than the machine has, since the dispatcher takes one; two at least for the default policies, since
    /// darc reserves nothing with one]
    #[arg(long, value_name = "N", value_parser = args::workers)]
    workers: Option<usize>,
    /// Cores instead: a policy's workers are those that its dispatchers and monitor leave, and load counts all of them
    #[arg(long, value_name = "N", conflicts_with = "workers", value_parser = args::workers)]
    cores: Option<usize>,
    #[command(flatten)]
    extent: LengthFlags,
    /// Rounds; each round runs each policy once, in rotating order
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Where the dispatcher runs; with synergy, which has no dispatcher, where its monitor runs
    #[arg(long, value_enum, default_value_t)]
    layout: LayoutFlag,
    /// What the layouts cost on this machine, a file of `headway calibrate -o FILE`: the layout auto is chosen by it [default: what calibrate measured
    /// elsewhere]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Mechanisms that interrupt requests, each in turn: a dispatcher sets a flag or sends a signal; with tsc the worker reads its own
    /// clock, for itself (tiny-quanta) or for a dispatcher (concord) [default: flag with a dispatcher that interrupts, else tsc]
    #[arg(long, value_name = "MECHANISM", value_delimiter = ',')]
    preempt: Vec<Mechanism>,
    /// Interval at which workers look for arrivals during a request, where no dispatcher has a thread for it, at least 1us [default: 5us]
    #[arg(long, value_name = "TIME", value_parser = headway::config::look_every)]
    look_every: Option<Duration>,
    /// How idle threads wait
    #[arg(long, value_enum, default_value_t = IdleFlag::Spin)]
    idle: IdleFlag,
    /// Time in the network, added to every latency
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = args::cost)]
    network: u64,
    /// SLO; exit with 1 when a run misses it: class.*.slowdown.p999<=10
    #[arg(long, value_name = "EXPR")]
    slo: Option<String>,
    /// Also simulate every run with this machine's costs; exit with 1 when they disagree
    #[arg(long)]
    compare_sim: bool,
    /// Requests come over loopback UDP from a client in this process, in place of replay; latencies count from the actual sends
    #[arg(long)]
    udp: bool,
    #[command(flatten)]
    to: Destination,
}

/// The workload, with a default that a noisy machine can still tell apart.
#[derive(clap::Args, Clone, Debug)]
struct BenchTraffic {
    /// A workload by name, a workload file (TOML), a trace (CSV) or a log of a cache
    #[arg(long, value_name = "NAME|FILE", default_value = "shenango-bimodal")]
    workload: String,
    #[command(flatten)]
    read: TraceFlags,
    /// Offered load: rate × mean service time / workers
    #[arg(long, value_name = "FRACTION", conflicts_with = "rate", value_parser = args::load)]
    load: Option<f64>,
    /// Offered rate, requests per second: 5.1M, 260k
    #[arg(long, value_name = "RATE", value_parser = args::rate_rps)]
    rate: Option<f64>,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut trials = self.trials()?;
        let slo = self
            .slo
            .as_deref()
            .map(|text| args::slo(text, &trials[0].experiment.workload))
            .transpose()?;
        let measured = self
            .compare_sim
            .then(|| BenchCosts::measure(&trials, self.look_every))
            .transpose()?;
        let interrupt = Interrupt::listen()?;
        for trial in &mut trials {
            trial.cutoff = Some(interrupt.flag());
        }
        let observed = self.play(&trials)?;
        let cut_off = interrupt.pressed() && observed.len() < trials.len() * self.rounds as usize;
        if observed.is_empty() {
            bail!(Interrupted("no round was complete"));
        }
        let runs: Vec<Run> = observed
            .iter()
            .map(|observed| observed.run.clone())
            .collect();
        let mut report = BenchReport {
            noise: worst(&runs),
            runs,
            cut_off,
        };
        let comparisons = match &measured {
            Some(measured) => measured.compare(&trials, observed)?,
            None => Vec::new(),
        };
        let labels = show::labels(&trials, &report.runs);
        for (run, label) in report.runs.iter_mut().zip(labels.iter().cycle()) {
            run.extras.label = Some(label.clone());
        }
        self.write(&report, &labels, &comparisons, measured.as_ref())?;
        learning::tell(report.runs.iter());
        let differs = comparisons
            .iter()
            .any(|comparison| comparison.agreement() == Agreement::Differs);
        let met = match &slo {
            Some(slo) => all_meet(slo, &report.runs)?,
            None => true,
        };
        let sustained = show::all_sustained(&labels, &report.runs);
        if cut_off {
            return Ok(Interrupt::status());
        }
        Ok(if differs || !met || !sustained {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Whether the user chose neither policies nor mechanisms.
    fn compares_defaults(&self) -> bool {
        self.policies.is_empty() && self.preempt.is_empty()
    }

    fn default_workers(&self) -> usize {
        let least = if self.compares_defaults() { 2 } else { 1 };
        (headway_sim::available_threads() - 1).max(least)
    }

    /// The chosen policies; the defaults for `--preempt` differ by their mechanism alone.
    fn policies(&self) -> Result<Vec<ServerSpec>> {
        if !self.policies.is_empty() {
            return args::server_policies(&self.policies);
        }
        let (itself, watched): (Vec<Mechanism>, Vec<Mechanism>) = self
            .preempt
            .iter()
            .partition(|&&mechanism| mechanism == Mechanism::Tsc);
        let mut names = vec!["c-fcfs".to_owned()];
        if self.preempt.is_empty() {
            names.push("darc".to_owned());
        }
        if !watched.is_empty() {
            names.push("concord".to_owned());
        }
        if !itself.is_empty() {
            names.push("tiny-quanta".to_owned());
        }
        args::server_policies(&names)
    }

    fn mechanisms(&self) -> &[Mechanism] {
        if self.preempt.is_empty() {
            &[Mechanism::Flag, Mechanism::Tsc]
        } else {
            &self.preempt
        }
    }

    /// The workers of a policy.
    fn workers_of(&self, policy: &ServerSpec) -> Result<usize> {
        let machine = headway_sim::available_threads();
        match self.cores {
            None => Ok(self.workers.unwrap_or_else(|| self.default_workers())),
            Some(cores) if cores > machine => {
                let has = format!("this machine has {}", format::counted(machine, "core"));
                Err(usage("--cores", has))
            }
            Some(cores) if self.layout == LayoutFlag::Inline => Ok(cores),
            Some(cores) => Ok(headway_study::workers_of(&policy.clone().into(), cores)?),
        }
    }

    /// One experiment per policy, all with the same arrivals.
    fn trials(&self) -> Result<Vec<Trial>> {
        let costs = self.layout_costs()?;
        let traffic = Traffic {
            workload: self.traffic.workload.clone(),
            read: self.traffic.read.clone(),
            load: self.traffic.load,
            rate: self.traffic.rate,
        };
        let workload = traffic.workload()?;
        let mut trials = Vec::new();
        let policies = self.policies()?;
        let admissions = self.check_live(&policies, &workload)?;
        self.check_flows(&policies)?;
        for (policy, admission) in policies.into_iter().zip(admissions) {
            let name = policy.to_string();
            let workers = self.workers_of(&policy)?;
            let layout = self.layout_of(&admission, workers, costs, &workload)?;
            let mut trial = self.trial(&policy, &workload, &traffic, workers, layout)?;
            if self.compares_defaults() {
                close_windows_early(policy, &mut trial.experiment)?;
            }
            let before = trials.len();
            trials.extend(self.by_mechanism(trial, admission)?);
            if trials.len() == before {
                let wants = "asks for none of the ways in which it can interrupt";
                return Err(usage(
                    "--preempt",
                    format!(
                        "'{name}' {wants}: flag or signal with a dispatcher that interrupts; tsc where workers do, or may time its quanta"
                    ),
                ));
            }
        }
        self.check_looks(&trials)?;
        for mechanism in &self.preempt {
            if !trials.iter().any(|trial: &Trial| {
                trial
                    .interrupted_by()
                    .is_ok_and(|by| by == Some(*mechanism))
            }) {
                let why = format!(
                    "no policy here interrupts by {mechanism}: leave it out, or add one such as concord (flag, tsc, signal) or tiny-quanta (tsc)"
                );
                return Err(usage("--preempt", why));
            }
        }
        Ok(trials)
    }

    /// Refuses a policy that no live server runs, and a layout that none of the policies uses.
    fn check_live(&self, policies: &[ServerSpec], workload: &Workload) -> Result<Vec<Admission>> {
        let classes = BuiltInApp::Spin.classes(workload);
        let mut admissions = Vec::new();
        for policy in policies {
            let workers = self.workers_of(policy)?;
            let most = max_queue_limit(workers, classes.len());
            let shape = server_shape(workers, &classes, most);
            let mut shape = shape.map_err(|error| usage("--workload", error))?;
            // The bench's handler keeps no thread-local state.
            shape.resume = Resume::Anywhere;
            let admit = |layout: LayoutFlag| {
                admission::admit(policy, &shape, layout.into()).map_err(Refused::of_flags)
            };
            let admission = admit(LayoutFlag::Auto)?;
            // A policy with a dispatcher or a monitor must support the layout; others ignore it.
            if admission.is_laid_out() {
                admit(self.layout)?;
            }
            admissions.push(admission);
        }
        let is_laid_out = admissions.iter().any(Admission::is_laid_out);
        if self.layout != LayoutFlag::Auto && !is_laid_out {
            let why = "no policy here has a dispatcher or a monitor to be laid out: leave it out, or add one such as c-fcfs";
            return Err(usage("--layout", why));
        }
        Ok(admissions)
    }

    /// The layout as a server with these settings has it.
    fn layout_of(
        &self,
        admission: &Admission,
        workers: usize,
        costs: LayoutCosts,
        workload: &Workload,
    ) -> Result<Layout> {
        let hints: Vec<_> = BuiltInApp::Spin.classes(workload);
        let hints: Vec<_> = hints.into_iter().map(|class| class.hint).collect();
        let resolved = Layout::from(self.layout).resolve(&LayoutFacts {
            admission,
            workers,
            mechanism: Mechanism::Flag,
            hosted: false,
            cores: self.cores.unwrap_or_else(LayoutFacts::usable_cores),
            costs,
            service_ns: mean_service_ns(&hints),
        });
        let resolved = resolved.map_err(|error| usage("--layout", error))?;
        Ok(resolved.layout.unwrap_or(Layout::Inline))
    }

    /// What the layouts cost on this machine: as `headway calibrate` wrote it, or as built in.
    fn layout_costs(&self) -> Result<LayoutCosts> {
        let Some(path) = &self.costs else {
            return Ok(LayoutCosts::default());
        };
        let file = read_costs(path).map_err(|error| usage("--costs", error))?;
        Ok(layout_costs(&file.costs))
    }

    /// Refuses flows where no policy steers by them.
    fn check_flows(&self, policies: &[ServerSpec]) -> Result<()> {
        if self.flows.is_none()
            || policies.iter().any(|policy: &ServerSpec| {
                let facts = policy.facts();
                facts.owner == Owner::Steering || facts.dispatchers > 1
            })
        {
            return Ok(());
        }
        let why = "every policy here has one receive queue, which flows do not concern: leave it out, or add a policy with several, such as synergy";
        Err(usage("--flows", why))
    }

    /// Repeats the trial for each chosen mechanism that the policy can use; once where the policy does not interrupt.
    fn by_mechanism(&self, trial: Trial, admission: Admission) -> Result<Vec<Trial>> {
        for mechanism in self.mechanisms() {
            mechanism
                .check()
                .map_err(|error| usage("--preempt", error))?;
        }
        let Some(own) = trial.interrupted_by()? else {
            return Ok(vec![trial]);
        };
        if trial.has_monitor()? {
            return Ok(self.by_monitor(&trial, own));
        }
        let layout = |mechanism| match self.layout {
            // Signals come from a dispatcher with a thread of its own.
            LayoutFlag::Auto if mechanism == Mechanism::Signal => Layout::Dedicated,
            _ => trial.layout,
        };
        let is_usable = |mechanism| match (own, mechanism) {
            (Mechanism::Tsc, mechanism) => mechanism == Mechanism::Tsc,
            // A dispatcher interrupts by flags by default.
            (_, Mechanism::Tsc) => {
                let times_itself = admission.keeps_times || trial.layout == Layout::Inline;
                !self.preempt.is_empty() && times_itself
            }
            _ => true,
        };
        let trials: Vec<Trial> = self
            .mechanisms()
            .iter()
            .filter(|&&mechanism| is_usable(mechanism))
            .map(|&mechanism| Trial {
                layout: layout(mechanism),
                mechanism,
                ..trial.clone()
            })
            .collect();
        if trials
            .iter()
            .any(|trial| trial.layout == Layout::Inline && trial.mechanism == Mechanism::Signal)
        {
            return Err(usage("--layout", StartError::InlineSignals));
        }
        Ok(trials)
    }

    /// The trial of a policy whose monitor interrupts without a dispatcher. A monitor with its own thread sets a flag; where workers run the
    /// monitor, they read the clock. An unset layout follows the chosen mechanisms.
    fn by_monitor(&self, trial: &Trial, own: Mechanism) -> Vec<Trial> {
        if self.preempt.is_empty() {
            return vec![trial.clone()];
        }
        self.preempt
            .iter()
            .filter_map(|&mechanism: &Mechanism| {
                let layout = match (self.layout, mechanism) {
                    (LayoutFlag::Auto, Mechanism::Flag) => Some(Layout::Dedicated),
                    (LayoutFlag::Auto, Mechanism::Tsc) => Some(Layout::Inline),
                    _ => (mechanism == own).then_some(trial.layout),
                };
                layout.map(|layout| Trial {
                    layout,
                    ..trial.clone()
                })
            })
            .collect()
    }

    /// Refuses an interval that no trial uses.
    fn check_looks(&self, trials: &[Trial]) -> Result<()> {
        if self.look_every.is_none() {
            return Ok(());
        }
        for trial in trials {
            if trial.polls_at_work()? {
                return Ok(());
            }
        }
        let why = "workers look for arrivals while a request runs only under a policy that interrupts, and only where no dispatcher has a thread for it: \
                   leave it out, or choose --layout inline and a policy such as concord, or one without a dispatcher, such as synergy or tardis";
        Err(usage("--look-every", why))
    }

    fn trial(
        &self,
        policy: &ServerSpec,
        workload: &Workload,
        traffic: &Traffic,
        workers: usize,
        layout: Layout,
    ) -> Result<Trial> {
        let mut experiment = Experiment::new(workload.clone(), policy.clone().into())
            .workers(workers)
            .offered(traffic.offered(workload, self.cores.unwrap_or(workers), DEFAULT_LOAD)?)
            .seed(self.extent.seed);
        experiment.cores = self.cores;
        experiment.network_ns = self.network;
        experiment.flows = self.flows;
        experiment.length = match self.extent.length_of(workload, 0) {
            headway_sim::Length::Requests(0) => headway_sim::Length::Duration(DEFAULT_DURATION_NS),
            length => length,
        };
        experiment.check()?;
        if experiment.workload.class_names().len() > 255 {
            return Err(usage("--workload", "a live run has at most 255 classes"));
        }
        Ok(Trial {
            layout,
            idle: self.idle.into(),
            look_every: self.look_every,
            over_udp: self.udp,
            ..Trial::new(experiment)
        })
    }

    /// Runs every policy in every round, or in those before it is cut off. The order rotates, so that no policy always follows the same one.
    fn play(&self, trials: &[Trial]) -> Result<Vec<Observed>> {
        let bar = progress::bar(self.rounds * trials.len() as u64, "running");
        let mut observed = Vec::new();
        for round in 0..self.rounds {
            let mut of_round: Vec<Option<Observed>> = trials.iter().map(|_| None).collect();
            for turn in 0..trials.len() {
                let index = (turn + round as usize) % trials.len();
                let mut trial = trials[index].clone();
                trial.experiment.seed = self.extent.seed.wrapping_add(round);
                match trial.run() {
                    Err(TrialError::CutOff) => {
                        bar.finish_and_clear();
                        return Ok(observed);
                    }
                    run => of_round[index] = Some(run?),
                }
                bar.inc(1);
            }
            observed.extend(of_round.into_iter().flatten());
        }
        bar.finish_and_clear();
        Ok(observed)
    }

    fn write(
        &self,
        report: &BenchReport,
        labels: &[String],
        comparisons: &[Comparison],
        measured: Option<&BenchCosts>,
    ) -> Result<()> {
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => {
                return output::json(
                    &compared::with_comparisons(report, comparisons, measured)?,
                    writer,
                );
            }
            OutputFormat::Csv => return output::runs_csv(&report.runs, writer),
            OutputFormat::Table => {}
        }
        writeln!(
            writer,
            "{}\n",
            show::describe(
                &report.runs[0],
                (report.runs.len() / labels.len()) as u64,
                self.cores
            )
        )?;
        writeln!(writer, "{}", show::summary(&report.runs, labels))?;
        writeln!(
            writer,
            "\nnoise: {} of the time lost, {} gaps over 10 µs",
            format::percent(report.noise.lost_fraction),
            report.noise.gaps_over_10us
        )?;
        if report.cut_off {
            writeln!(
                writer,
                "\nCUT OFF: interrupted before its end; these are the rounds that were complete"
            )?;
        }
        if let Some(measured) = measured {
            writeln!(
                writer,
                "\nagainst simulation with this machine's costs:\n{}\n",
                compared::costs_lines(measured)
            )?;
            writeln!(writer, "{}", compared::table(comparisons))?;
            writeln!(writer, "\n{}", compared::slowdowns(comparisons))?;
            writeln!(
                writer,
                "\n{} of {} runs carry a verdict",
                comparisons
                    .iter()
                    .filter(|comparison: &&Comparison| {
                        let agreement = comparison.agreement();
                        matches!(agreement, Agreement::Agrees | Agreement::Differs)
                    })
                    .count(),
                comparisons.len()
            )?;
        }
        Ok(writer.flush()?)
    }
}

/// Whether every run meets the SLO; prints the runs that miss it.
fn all_meet(slo: &Slo, runs: &[Run]) -> Result<bool> {
    let mut all = true;
    for run in runs {
        let verdict = slo.evaluate(run)?;
        if !verdict.is_met() {
            eprintln!("{}, seed {}:", run.meta.policy, run.meta.seed);
            tell_verdict(slo, run)?;
            all = false;
        }
    }
    if all {
        tell_few_samples(slo, runs.iter());
    }
    Ok(all)
}

/// Shortens DARC's window so that it revises its plan from the warm-up on. Its default window is as long as the whole run.
fn close_windows_early(policy: ServerSpec, experiment: &mut Experiment) -> Result<()> {
    if matches!(policy.name(), "darc" | "darc-paper") {
        let warm_up = experiment.warm_up * experiment.expected_requests();
        let window = ((warm_up / 2.0) as u64).max(1);
        experiment.policy = policy.with_param("window", window.to_string())?.into();
    }
    Ok(())
}

/// The largest lost fraction of any run, and the gaps of all runs.
fn worst(runs: &[Run]) -> Noise {
    let noises = || runs.iter().filter_map(|run| run.extras.noise);
    Noise {
        lost_fraction: noises()
            .map(|noise| noise.lost_fraction)
            .fold(0.0, f64::max),
        gaps_over_10us: noises().map(|noise| noise.gaps_over_10us).sum(),
    }
}
