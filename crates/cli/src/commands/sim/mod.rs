//! `headway sim`: one simulated run, of a server or of a host.

mod args;
mod host;
mod host_flags;
mod show;

pub(crate) use args::Args;
pub(crate) use show::{LONGER, cut_off, ranges, tell_few_samples, tell_verdict};

use self::args::{DEFAULT_LOAD, TraceArgs};
use crate::args::{any_policy, slo};
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::learning;
use crate::output::{self, OutputFormat};
use anyhow::Result;
use headway_policy::PolicySpec;
use headway_report::html::Page;
use headway_report::table::class_table;
use headway_report::{Run, Schedule, format};
use headway_sim::{Experiment, Outcome, available_threads, in_parallel};
use headway_study::{SystemSetup, shown_window};
use show::{ask_seeds, headline};
use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::time::SystemTime;

const DEFAULT_REQUESTS: u64 = 2_000_000;

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let policy = match any_policy(&self.policy) {
            Ok(PolicySpec::Host { spec, .. }) => return self.run_host(spec),
            policy => policy.map_err(|error| usage("--policy", error))?,
        };
        self.host.refuse_without_host(&policy)?;
        let mut experiment = self.experiment(policy)?;
        experiment.trace_window = self.look.window(&experiment)?;
        let slo = self
            .slo
            .as_deref()
            .map(|text| slo(text, &experiment.workload))
            .transpose()?;
        let interrupt = Interrupt::listen()?;
        experiment.cutoff = Some(interrupt.flag());
        let mut all = vec![experiment.clone()];
        // A recording is judged as it is.
        if slo.is_some() && !experiment.is_recording() {
            all.extend(experiment.other_seeds());
        }
        let mut outcomes =
            in_parallel(&all, available_threads(), Experiment::run, |_, _| {}).into_iter();
        let mut outcome = outcomes.next().expect("one for each experiment")?;
        let others = outcomes
            .map(|other| Ok(other?.run))
            .collect::<Result<Vec<Run>>>()?;
        if let Some(slo) = &slo {
            ask_seeds(slo, &mut outcome.run, &others)?;
        }
        let cut_off = outcome.run.extras.cut_off;
        self.look.write(&experiment, &outcome)?;
        self.write(&outcome)?;
        learning::tell(std::iter::once(&outcome.run));
        if let Some(path) = &self.hlog {
            output::histograms(path, &outcome.recorder, &outcome.run, SystemTime::now())?;
        }
        let verdict = match slo {
            Some(slo) => tell_verdict(&slo, &outcome.run)?,
            None => ExitCode::SUCCESS,
        };
        Ok(if cut_off {
            Interrupt::status()
        } else {
            verdict
        })
    }

    fn experiment(&self, policy: PolicySpec) -> Result<Experiment> {
        let workload = self.traffic.workload()?;
        let setup = self.setup();
        let cores = setup.load_cores();
        let offered = self.traffic.offered(&workload, cores, DEFAULT_LOAD)?;
        crate::args::experiment(&setup, workload, policy, offered, DEFAULT_REQUESTS)
    }

    fn setup(&self) -> SystemSetup {
        crate::args::setup(&self.size, &self.extent, &self.costs, &self.circumstances)
    }

    fn write(&self, outcome: &Outcome) -> Result<()> {
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(&outcome.run, writer),
            OutputFormat::Csv => output::runs_csv(std::slice::from_ref(&outcome.run), writer),
            OutputFormat::Table => {
                writeln!(
                    writer,
                    "{}\n\n{}",
                    headline(&outcome.run),
                    output::shown(&class_table(&outcome.run), self.to.output.as_deref())
                )?;
                for line in remarks(outcome) {
                    writeln!(writer, "{line}")?;
                }
                Ok(writer.flush()?)
            }
        }
    }
}

impl TraceArgs {
    /// Refuses the flags of a recording where there is none to show, and says why.
    fn refuse(&self, why: &str) -> Result<()> {
        let given = [
            ("--trace-out", self.trace_out.is_some()),
            ("--html", self.html.is_some()),
            ("--trace-window", self.trace_window.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(usage(flag, why)),
            None => Ok(()),
        }
    }

    /// The window to be recorded, where one was asked for.
    fn window(&self, experiment: &Experiment) -> Result<Option<Range<u64>>> {
        if experiment.is_rack() {
            self.refuse("only the workers of a single server are drawn, not those of a rack")?;
        }
        if experiment.policy == PolicySpec::Fluid {
            self.refuse(
                "under 'ps' every worker runs all requests at once: there is nothing to draw",
            )?;
        }
        if self.trace_out.is_none() && self.html.is_none() {
            return match self.trace_window {
                Some(_) => Err(usage(
                    "--trace-window",
                    "there is nothing to show: add --trace-out or --html",
                )),
                None => Ok(None),
            };
        }
        let given = self.trace_window.clone();
        Ok(Some(given.unwrap_or_else(|| shown_window(experiment))))
    }

    fn write(&self, experiment: &Experiment, outcome: &Outcome) -> Result<()> {
        let Some(window) = experiment.trace_window.clone() else {
            return Ok(());
        };
        let names = experiment.workload.class_names();
        let schedule = Schedule {
            classes: names.into_iter().map(str::to_owned).collect(),
            workers: experiment.workers,
            window,
            slices: outcome.slices.clone(),
        };
        if schedule.slices.is_empty() {
            return Err(usage(
                "--trace-window",
                "nothing ran in this part of the run",
            ));
        }
        if let Some(path) = &self.trace_out {
            schedule.write_trace(output::create("--trace-out", path)?)?;
        }
        if let Some(path) = &self.html {
            let page = Page::new(headline(&outcome.run))
                .table("Latency and slowdown", &class_table(&outcome.run))
                .schedule(&schedule);
            output::page(path, &page)?;
        }
        Ok(())
    }
}

fn remarks(outcome: &Outcome) -> Vec<String> {
    let run = &outcome.run;
    let mut lines = vec![String::new()];
    lines.push(format!(
        "utilization {}, idle while requests waited {} cores, {} preemptions",
        format::percent(run.meta.utilization),
        format::significant(outcome.wasted_cores, 2),
        run.meta.preemptions,
    ));
    if let Some(rack) = &run.extras.rack {
        lines.push(format!(
            "{} cloned ({} dropped), {} bounced, laid out anew {} times",
            rack.cloned, rack.clones_dropped, rack.bounced, rack.regenerated
        ));
    }
    for group in run.extras.reservation.iter().flatten() {
        lines.push(format!(
            "{}: workers {}, may steal {}",
            group.classes.join(" + "),
            ranges(&group.reserved),
            ranges(&group.stealable)
        ));
    }
    lines.extend(cut_off(run));
    if !run.extras.starved.is_empty() {
        lines.push(format!(
            "OVERLOADED: the backlog of {} grows without bound; its tail only measures the run's length",
            run.extras.starved.join(", ")
        ));
    }
    lines
}
