//! `headway sim` of a host: applications that trade cores.

use super::apps;
use super::args::{Args, DEFAULT_LOAD};
use super::show::{cut_off, headline, tell_verdict};
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFormat};
use anyhow::Result;
use headway_policy::host::HostTopology;
use headway_policy::spec::Spec;
use headway_report::table::class_table;
use headway_report::{Slo, Table, format};
use headway_sim::Length;
use headway_sim::host::{App, AppOutcome, HostExperiment, HostOutcome};
use std::io::Write;
use std::process::ExitCode;
use std::time::SystemTime;

const DEFAULT_REQUESTS: u64 = 500_000;
const DEFAULT_NS: u64 = 200_000_000;

impl Args {
    pub(super) fn run_host(&self, allocator: Spec) -> Result<ExitCode> {
        let mut experiment = self.host_experiment(allocator)?;
        let slo: Option<Slo> = match &self.slo {
            None => None,
            Some(text) => Some(text.parse().map_err(|error| usage("--slo", error))?),
        };
        let interrupt = Interrupt::listen()?;
        experiment.cutoff = Some(interrupt.flag());
        let outcome = experiment.run()?;
        if let Some(slo) = &slo {
            let names = outcome.run.classes.iter().map(|class| class.name.as_str());
            slo.check_classes(names)
                .map_err(|error| usage("--slo", error))?;
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
        self.costs.refuse_all_but_network(
            "a host's costs are those of --host-costs; its queues are unbounded, and nothing is interrupted within an application",
        )?;
        self.circumstances
            .refuse("a host's applications are simulated as they are", true)?;
        if self.size.cores.is_some() {
            return Err(usage(
                "--cores",
                "the cores that a host grants are its --workers",
            ));
        }
        if self.size.servers != 1 {
            return Err(usage("--servers", "a host is one server: leave it out"));
        }
        if self.size.racks != 1 {
            return Err(usage("--racks", "a host is one server: leave it out"));
        }
        self.look
            .refuse("the applications of a host are not drawn")?;
        let mut experiment =
            HostExperiment::new(self.size.workers, allocator).seed(self.extent.seed);
        if self.host.threads_per_core == Some(1) {
            experiment.topology = HostTopology::flat(self.size.workers);
        }
        experiment.network_ns = self.costs.network;
        self.host.costs(&mut experiment.costs)?;
        experiment.apps = self.apps()?;
        experiment.duration_ns = self.host_duration_ns(&experiment.apps);
        experiment.check()?;
        Ok(experiment)
    }

    fn apps(&self) -> Result<Vec<App>> {
        if !self.host.app.is_empty() {
            let why = "the applications of --app name workloads of their own";
            self.traffic.read.refuse(why)?;
            let apps = self.host.app.iter();
            return apps
                .map(|text| apps::app(text, self.size.workers))
                .collect();
        }
        let workload = self.traffic.workload()?;
        let offered = self
            .traffic
            .offered(&workload, self.size.workers, DEFAULT_LOAD)?;
        let rate_rps = match offered {
            headway_sim::Offered::Rate(rate_rps) => rate_rps,
            headway_sim::Offered::Load { load, workers } => workload.rate_for_load(load, workers),
        };
        Ok(vec![
            App::server("server", workload, rate_rps).guaranteed(self.size.workers),
            App::batch("batch"),
        ])
    }

    /// The requested duration, or the time that the requests take.
    fn host_duration_ns(&self, apps: &[App]) -> u64 {
        match self.extent.length(DEFAULT_REQUESTS) {
            Length::Duration(ns) => ns,
            Length::Requests(requests) => {
                let rate_rps: f64 = apps.iter().map(|app| app.mean_rate_rps(DEFAULT_NS)).sum();
                if rate_rps > 0.0 {
                    (requests as f64 * 1e9 / rate_rps) as u64
                } else {
                    DEFAULT_NS
                }
            }
        }
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
