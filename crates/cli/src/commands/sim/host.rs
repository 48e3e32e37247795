//! `headway sim` of a host: applications that trade cores.

use super::args::{Args, DEFAULT_LOAD};
use super::show::{ask_seeds, cut_off, headline, tell_verdict};
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFormat};
use anyhow::Result;
use headway_policy::spec::Spec;
use headway_report::table::class_table;
use headway_report::{Run, Slo, Table, format};
use headway_sim::host::{App, AppOutcome, HostExperiment, HostOutcome};
use headway_sim::{available_threads, in_parallel};
use headway_study::{app, host};
use std::io::Write;
use std::process::ExitCode;
use std::time::SystemTime;

impl Args {
    pub(super) fn run_host(&self, allocator: Spec) -> Result<ExitCode> {
        let mut experiment = self.host_experiment(allocator)?;
        let slo: Option<Slo> = match &self.slo {
            None => None,
            Some(text) => Some(text.parse().map_err(|error| usage("--slo", error))?),
        };
        let interrupt = Interrupt::listen()?;
        experiment.cutoff = Some(interrupt.flag());
        let mut all = vec![experiment.clone()];
        if slo.is_some() {
            all.extend(experiment.other_seeds());
        }
        let mut outcomes =
            in_parallel(&all, available_threads(), HostExperiment::run, |_, _| {}).into_iter();
        let mut outcome = outcomes.next().expect("one for each experiment")?;
        let others = outcomes
            .map(|other| Ok(other?.run))
            .collect::<Result<Vec<Run>>>()?;
        if let Some(slo) = &slo {
            let names = outcome.run.classes.iter().map(|class| class.name.as_str());
            slo.check_classes(names)
                .map_err(|error| usage("--slo", error))?;
            ask_seeds(slo, &mut outcome.run, &others)?;
        }
        self.write_host(&experiment, &outcome)?;
        if let Some(path) = &self.hlog {
            output::histograms(path, &outcome.recorder, &outcome.run, SystemTime::now())?;
        }
        let verdict = match slo {
            Some(slo) => tell_verdict(&slo, &outcome.run)?,
            None => ExitCode::SUCCESS,
        };
        Ok(if outcome.run.extras.cut_off {
            Interrupt::status()
        } else {
            verdict
        })
    }

    fn host_experiment(&self, allocator: Spec) -> Result<HostExperiment> {
        self.look
            .refuse("the applications of a host are not drawn")?;
        let (threads_per_core, costs) = (self.host.threads_per_core, &self.host.host_costs);
        let (setup, apps) = (self.setup(), self.apps()?);
        Ok(host::experiment(
            &setup,
            allocator,
            apps,
            threads_per_core,
            costs.as_deref(),
        )?)
    }

    fn apps(&self) -> Result<Vec<App>> {
        let cores = self.size.workers;
        if !self.host.app.is_empty() {
            let why = "the applications of --app name workloads of their own";
            self.traffic.read.refuse(why)?;
            let apps = self.host.app.iter();
            return Ok(apps
                .map(|text| app(text, cores))
                .collect::<Result<_, _>>()?);
        }
        let workload = self.traffic.workload()?;
        let offered = self.traffic.offered(&workload, cores, DEFAULT_LOAD)?;
        Ok(host::server_and_batch(workload, offered, cores))
    }

    fn write_host(&self, experiment: &HostExperiment, outcome: &HostOutcome) -> Result<()> {
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(outcome, writer),
            OutputFormat::Csv => output::runs_csv(std::slice::from_ref(&outcome.run), writer),
            OutputFormat::Table => {
                let title = headline(&outcome.run);
                let shown = |table| output::shown(&table, self.to.output.as_deref());
                writeln!(writer, "{title}\n\n{}", shown(class_table(&outcome.run)))?;
                writeln!(writer, "\n{}\n", shown(app_table(experiment, outcome)))?;
                writeln!(
                    writer,
                    "{} cores idle, {} reallocations/s, daemon busy {}",
                    format::significant(outcome.host.idle_cores, 3),
                    format::metric(outcome.host.reallocations_per_s),
                    format::percent(outcome.host.daemon_utilization),
                )?;
                if let Some(line) = cut_off(&outcome.run) {
                    writeln!(writer, "{line}")?;
                }
                for app in outcome.apps.iter().filter(|app| app.overloaded) {
                    writeln!(
                        writer,
                        "OVERLOADED: the backlog of {} grows without bound; its tail only measures the run's length",
                        app.name
                    )?;
                }
                Ok(writer.flush()?)
            }
        }
    }
}

/// A row per application.
fn app_table(experiment: &HostExperiment, outcome: &HostOutcome) -> Table {
    let columns = [
        "application",
        "guaranteed",
        "cores",
        "useful cores",
        "efficiency",
        "p99.9 µs",
        "grants/s",
        "preempted/s",
    ];
    let rows = outcome
        .apps
        .iter()
        .zip(&experiment.apps)
        .map(|(app, spec): (&AppOutcome, &App)| {
            let tail = app
                .latency_us
                .map_or("–".into(), |us| format::significant(us.p999, 3));
            [
                app.name.clone(),
                spec.guaranteed.to_string(),
                format::significant(app.allocated_cores, 3),
                format::significant(app.useful_cores, 3),
                format::percent(app.efficiency),
                tail,
                format::metric(app.grants_per_s),
                format::metric(app.preemptions_per_s),
            ]
        });
    rows.fold(Table::new(columns), |table, cells| table.row(cells))
}
