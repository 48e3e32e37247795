//! `headway plan`: which policy, parameters and number of workers meet an SLO.

mod config;
mod figures;
mod live;
mod machine;
mod show;

use super::fit::{self, FitFlags};
use crate::args::{self, Destination, Traffic};
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFormat};
use crate::policy_flag::{self, Runs};
use crate::progress;
use anyhow::Result;
use headway_plan::{PlanError, PlanProgress, Question, plan};
use headway_policy::server::systems::ServerSpec;
use headway_report::{PlanReport, PlanVerdict};
use headway_sim::{Offered, available_threads};
use headway_study::planned::{self, PlanLoad};
use headway_workload::fit::Doubt;
use headway_workload::{Trace, Workload};
use machine::Machine;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    traffic: Traffic,
    /// Plan for a recorded trace instead: a workload is fitted to it, at the rate it was recorded
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    fit: FitFlags,
    /// The SLO: class.*.slowdown.p999<=10, overall.slowdown.p99<=5, class.GET.latency.p99<=250us
    #[arg(long, value_name = "EXPR", default_value = "class.*.slowdown.p999<=10")]
    slo: String,
    /// Try this policy only, with the parameters given and any others; repeat for more [default: all]
    #[arg(long = "policy", value_name = policy_flag::VALUE, value_parser = Runs::OneServer, hide_possible_values = true, long_help = Runs::OneServer.help("Try this policy only, with the parameters given and any others; repeat for more [default: all]"))]
    policies: Vec<String>,
    /// Arrivals of each run of the last round; the first tenth is warm-up and not measured
    #[arg(long, value_name = "N", default_value = "400k", value_parser = args::count)]
    requests: u64,
    /// Runs of each candidate in the last round
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1000))]
    replications: u64,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads; the plan does not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    machine: Machine,
    /// Run the best supported policy live over loopback UDP for this time, and compare it with its simulation
    #[arg(long, value_name = "TIME", value_parser = args::run_length)]
    validate: Option<u64>,
    /// File to write the settings of the best supported policy to, for `headway serve -c`
    #[arg(long, value_name = "FILE")]
    config_out: Option<PathBuf>,
    #[command(flatten)]
    to: Destination,
}

/// The workload that the plan is for.
struct PlanSubject {
    workload: Workload,
    /// The name by which `serve` finds the workload.
    name: String,
    offered: Offered,
    workers: usize,
    /// The trace itself, where there is one.
    replay: Option<Workload>,
    /// The doubt of the fit to its arrivals.
    doubt: Option<Doubt>,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let subject = self.subject()?;
        let mut question = self.question(&subject)?;
        let interrupt = Interrupt::listen()?;
        question.cutoff = Some(interrupt.flag());
        self.check_config(&question)?;
        let mut report = match ask(&question) {
            Err(error @ PlanError::CutOff) => {
                eprintln!("{error}");
                return Ok(Interrupt::status());
            }
            answer => answer?,
        };
        self.machine.remark(&question, &mut report);
        if report.cut_off {
            self.write(&report)?;
            return Ok(Interrupt::status());
        }
        if let Some(ns) = self.validate {
            report.validation = live::validate(&question, &report, ns)?;
        }
        if let Some(path) = &self.config_out {
            config::write(path, &report, &subject.name, &question)?;
        }
        self.write(&report)?;
        let live_met = report.validation.as_ref().is_none_or(|live| live.met);
        Ok(match report.verdict {
            PlanVerdict::Met if live_met => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }

    fn write(&self, report: &PlanReport) -> Result<()> {
        let path = self.to.output.as_deref();
        let mut writer = output::open(path)?;
        match self.to.format {
            OutputFormat::Json => output::json(report, writer),
            OutputFormat::Csv => output::table_csv(&figures::ranking(report), writer),
            OutputFormat::Table => {
                writeln!(writer, "{}", show::text(report, path))?;
                Ok(writer.flush()?)
            }
        }
    }

    /// Refuses to write settings from a plan without costs, unless the user asked for an ideal machine.
    fn check_config(&self, question: &Question) -> Result<()> {
        if self.config_out.is_none() {
            return Ok(());
        }
        if question.costs.is_free() && !self.machine.ideal {
            return Err(usage(
                "--config-out",
                "the plan is for an ideal machine: add --costs here (or the FILE of 'headway calibrate -o FILE'), or --ideal if that is meant",
            ));
        }
        Ok(())
    }

    fn subject(&self) -> Result<PlanSubject> {
        let Some(path) = &self.trace else {
            let workload = self.traffic.workload()?;
            let (offered, workers) = self.offered(&workload, None)?;
            let name = self.traffic.workload.clone();
            return Ok(PlanSubject {
                workload,
                name,
                offered,
                workers,
                replay: None,
                doubt: None,
            });
        };
        let fit_out = self.fit.fit_out.as_deref();
        if self.config_out.is_some() && fit_out.is_none() {
            return Err(usage(
                "--config-out",
                "the server needs the fitted workload in a file: add --fit-out FILE",
            ));
        }
        let trace = self.traffic.read.read("--trace", path)?;
        let fitted = trace.fit(fit::name(path));
        self.fit.write(&fitted, path)?;
        let (offered, workers) = self.offered(&fitted.workload, Some(&trace))?;
        let as_recorded = self.traffic.load.is_none() && self.traffic.rate.is_none();
        Ok(PlanSubject {
            name: fit_out.unwrap_or(path).display().to_string(),
            replay: as_recorded.then(|| trace.into_workload(fit::name(path))),
            doubt: fitted.arrivals.doubt,
            workload: fitted.workload,
            offered,
            workers,
        })
    }

    /// The arrival rate and the number of workers.
    fn offered(&self, workload: &Workload, trace: Option<&Trace>) -> Result<(Offered, usize)> {
        let load = PlanLoad {
            load: self.traffic.load,
            rate_rps: self.traffic.rate,
            cores: self.cores(),
        };
        Ok(load.of(workload, trace)?)
    }

    /// The machine's cores: given, or this machine's where the plan is to run here.
    fn cores(&self) -> Option<usize> {
        self.machine
            .cores_given(self.validate.is_some() || self.config_out.is_some())
    }

    fn question(&self, subject: &PlanSubject) -> Result<Question> {
        let slo = args::slo(&self.slo, &subject.workload)?;
        let cores = self
            .cores()
            .unwrap_or_else(|| planned::cores_for(subject.workers));
        let question = Question::new(
            subject.workload.clone(),
            slo,
            subject.workers,
            subject.offered,
        );
        let (costs, receive_ns) = self.machine.costs()?;
        Ok(Question {
            requests: self.requests,
            replications: self.replications,
            seed: self.seed,
            cores: Some(cores),
            costs,
            receive_ns,
            network_ns: self.machine.network,
            queue_limit: self.machine.queue_limit(),
            begun_at_most: self.machine.begun_at_most(),
            resume: self.machine.resume.map(Into::into),
            policies: planned::policies(
                &self.policies,
                &subject.workload,
                subject.workers,
                self.machine.resume.map(Into::into),
            )?,
            live: runs_live,
            replay: subject.replay.clone(),
            doubt: subject.doubt,
            threads: self.threads.unwrap_or_else(available_threads),
            ..question
        })
    }
}

fn ask(question: &Question) -> Result<PlanReport, PlanError> {
    let bar = progress::bar(0, "planning");
    let report = plan(question, |progress| match progress {
        PlanProgress::Stage(name, runs) => {
            bar.set_prefix(name);
            bar.inc_length(runs);
        }
        PlanProgress::Run => bar.inc(1),
    });
    bar.finish_and_clear();
    report
}

/// Whether the live server runs a policy.
fn runs_live(policy: &ServerSpec) -> bool {
    policy.runs_live()
}
