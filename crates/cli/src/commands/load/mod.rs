//! `headway load`: open-loop load on a server.

mod body;
mod requests;
pub(crate) mod types;

use super::sim::{cut_off, tell_verdict};
use crate::args::{self, Destination, LengthFlags, Traffic};
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFormat};
use crate::progress;
use anyhow::Result;
use headway_load::{Extent, Load, LoadReport, ReceiveClock, ReplySource, ServiceTime};
use headway_report::format;
use headway_report::table::class_table;
use headway_sim::Length;
use headway_workload::TraceWriter;
use requests::RequestFlags;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

const DEFAULT_RATE_RPS: f64 = 10_000.0;
const DEFAULT_DURATION_NS: u64 = 5_000_000_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server: udp://HOST:PORT
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    traffic: Traffic,
    /// Number of the server's workers; --load is relative to it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    workers: u64,
    #[command(flatten)]
    extent: LengthFlags,
    #[command(flatten)]
    requests: RequestFlags,
    /// Divide latencies by the service times that the server reports, not by the workload's
    #[arg(long)]
    reported_service: bool,
    /// Take replies from any address, as a rack's switch with --direct needs: servers answer in their own names
    #[arg(long)]
    direct: bool,
    /// A request that leaves this much later than intended counts as late
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = args::time)]
    late: u64,
    /// Time to wait for answers after the last request is sent; unanswered requests then count as lost
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::time)]
    timeout: u64,
    /// SLO; exit with 1 when it is not met: class.*.slowdown.p999<=10
    #[arg(long, value_name = "EXPR")]
    slo: Option<String>,
    /// Write the histograms of latency, one per class, as an HDR histogram log
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    /// Write the served requests as a trace that fit, plan --trace and sim read: the intended send time of each, and the service
    /// time that the server reports
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let load = self.load()?;
        let slo = self
            .slo
            .as_deref()
            .map(|text| args::slo(text, &load.workload))
            .transpose()?;
        let (began, began_ns) = (SystemTime::now(), load.clock.now_ns());
        let interrupt = Interrupt::listen()?.and_for_term()?;
        let report = send(&load, &interrupt)?;
        self.write(&load, &report)?;
        if let Some(path) = &self.record {
            record(path, &load, &report)?;
        }
        if let Some(path) = &self.hlog {
            let after = Duration::from_nanos(report.measured.start.saturating_sub(began_ns));
            output::histograms(path, &report.corrected, &report.run, began + after)?;
        }
        for flaw in &report.flaws {
            eprintln!("not valid: {flaw}");
        }
        let verdict = match slo {
            Some(slo) => tell_verdict(&slo, &report.run)?,
            None => ExitCode::SUCCESS,
        };
        Ok(if report.run.extras.cut_off {
            interrupt.status_by_signal()
        } else if report.is_valid() {
            verdict
        } else {
            ExitCode::FAILURE
        })
    }

    fn load(&self) -> Result<Load> {
        let workload = self.traffic.workload()?;
        let offered = match (self.traffic.load, self.traffic.rate) {
            (None, None) => headway_workload::Offered::Rate(DEFAULT_RATE_RPS),
            _ => self
                .traffic
                .offered(&workload, self.workers as usize, 1.0)?,
        };
        let extent = match self.extent.length_of(&workload, 0) {
            Length::Requests(0) => Extent::Duration {
                ns: DEFAULT_DURATION_NS,
            },
            Length::Requests(count) => Extent::Requests { count },
            Length::Duration(ns) => Extent::Duration { ns },
        };
        if workload.class_names().len() > 255 {
            return Err(usage(
                "--workload",
                "the wire header tells at most 255 classes apart",
            ));
        }
        let target = headway::config::server_address(&self.target)
            .map_err(|error| usage("TARGET", error))?;
        let mut load = Load::new(target, workload, offered, extent);
        load.seed = self.extent.seed;
        load.workers = self.workers as usize;
        load.late_bound_ns = self.late;
        load.timeout_ns = self.timeout;
        if self.reported_service {
            load.service_time = ServiceTime::Reported;
        }
        if self.direct {
            load.replies_of = ReplySource::Anyone;
        }
        let requests = self.requests.requests(&load.workload, load.seed)?;
        load.types = requests.types;
        if let Some(body) = requests.body {
            load.body = body;
        }
        load.keep_trace = self.record.is_some();
        Ok(load)
    }

    fn write(&self, load: &Load, report: &LoadReport) -> Result<()> {
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(&report.run, writer),
            OutputFormat::Csv => output::runs_csv(std::slice::from_ref(&report.run), writer),
            OutputFormat::Table => {
                writeln!(
                    writer,
                    "{}\nclasses by type: {}\n\n{}\n",
                    headline(report),
                    types::line(&load.types, &load.workload.class_names()),
                    class_table(&report.run)
                )?;
                writeln!(writer, "{}", counts(report))?;
                if let Some(line) = cut_off(&report.run) {
                    writeln!(writer, "{line}")?;
                }
                Ok(writer.flush()?)
            }
        }
    }
}

/// Sends it all, or what is due until the user ends it.
fn send(load: &Load, interrupt: &Interrupt) -> Result<LoadReport> {
    let bar = progress::bar(0, "sending");
    let report = load.run(|progress| {
        bar.set_length(progress.planned);
        bar.set_position(progress.sent);
        interrupt.go_on()
    })?;
    bar.finish_and_clear();
    Ok(report)
}

/// Writes the served requests as a trace, and says which ones it lacks.
fn record(path: &Path, load: &Load, report: &LoadReport) -> Result<()> {
    let names = load.workload.class_names();
    let names = names.into_iter().map(str::to_owned).collect();
    let mut trace = TraceWriter::new(output::create("--record", path)?, names)?;
    for record in &report.trace {
        trace.write(record)?;
    }
    trace.finish()?.flush()?;
    let (recorded, sent) = (report.trace.len() as u64, report.delivery.sent);
    eprintln!(
        "recorded {recorded} requests; {} of the {sent} sent were not served, and are not in {}",
        sent - recorded,
        path.display()
    );
    Ok(())
}

fn headline(report: &LoadReport) -> String {
    let meta = &report.run.meta;
    let clock = match report.receive_clock {
        ReceiveClock::Kernel { .. } => "replies timed by the kernel",
        ReceiveClock::Read => "replies timed as they were read",
    };
    format!(
        "{} · {} rps offered, {} achieved · seed {} · latencies from the intended send, {clock}",
        meta.workload,
        format::metric(meta.offered_rps),
        format::metric(meta.achieved_rps),
        meta.seed,
    )
}

fn counts(report: &LoadReport) -> String {
    let delivery = &report.delivery;
    let statuses = &report.statuses;
    format!(
        "sent {}, answered {} (shed {}, failed {}), lost {}, late {}, duplicates {}, invalid {}",
        delivery.sent,
        delivery.answered,
        statuses.shed + statuses.draining,
        statuses.failed(),
        delivery.lost,
        delivery.late,
        delivery.duplicates,
        delivery.invalid
    )
}
