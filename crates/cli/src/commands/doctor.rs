//! `headway doctor`: lists the features that this machine supports, and the reason for each that it lacks.

use crate::args::Destination;
use crate::output::{self, OutputFormat};
use anyhow::Result;
use headway_machine::doctor::{Finding, Severity, examine};
use headway_machine::{MachineDescription, noise};
use headway_report::{Table, format};
use headway_runtime::{Mechanism, TimerCost};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// The length of the observation of the machine.
const WATCH: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let machine = MachineDescription::read()?;
        let mut findings = examine();
        findings.push(preemption());
        findings.push(slice_timer());
        findings.push(rack_switch());
        findings.push(af_xdp());
        let noise = noise::measure(WATCH, None)?;
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(&json(&machine, &findings, &noise), writer)?,
            OutputFormat::Csv => output::table_csv(&table(&findings, "level"), writer)?,
            OutputFormat::Table => {
                writeln!(
                    writer,
                    "{machine}\n\n{}\n\n{}",
                    table(&findings, ""),
                    noise_line(&noise)
                )?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The usable mechanisms of interruption, and the reason for each unusable one.
fn preemption() -> Finding {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for (mechanism, checked) in Mechanism::available() {
        match checked {
            Ok(()) => usable.push(mechanism.name()),
            Err(error) => refused.push(format!("not by {mechanism}: {}", error.why)),
        }
    }
    let by = format!("by {}", usable.join(", "));
    Finding {
        name: "preemption",
        level: if usable.contains(&Mechanism::Flag.name()) {
            Severity::Good
        } else {
            Severity::Absent
        },
        detail: std::iter::once(by)
            .chain(refused)
            .collect::<Vec<_>>()
            .join("; "),
        remedy: None,
    }
}

/// What a timer takes that ends the long slices of workers that keep time themselves.
fn slice_timer() -> Finding {
    match TimerCost::measured() {
        Ok(cost) => Finding {
            name: "slice timer",
            level: Severity::Good,
            detail: format!(
                "a signal takes {}: workers that keep time themselves set a timer for slices of more than {}",
                format::duration_us(cost.stolen_ns as f64 / 1e3),
                format::duration_us(2.0 * cost.worth_ns() as f64 / 1e3)
            ),
            remedy: None,
        },
        Err(why) => Finding {
            name: "slice timer",
            level: Severity::Absent,
            detail: why.to_string(),
            remedy: Some(
                "workers that keep time themselves have probes that read the clock, at up to half of the time; a core for the dispatcher (--layout dedicated) needs none"
                    .to_owned(),
            ),
        },
    }
}

/// Whether `headway rack --xdp` can run here.
fn rack_switch() -> Finding {
    let missing = headway_xdp::missing();
    let is_here = missing.is_empty();
    Finding {
        name: "XDP",
        level: if is_here {
            Severity::Good
        } else {
            Severity::Absent
        },
        detail: if is_here {
            "the rack's switch can run in the kernel".to_owned()
        } else {
            missing.join("; ")
        },
        remedy: (!is_here).then(|| "headway rack without --xdp needs none of it".to_owned()),
    }
}

/// Whether `headway serve --listen xdp://DEVICE:PORT` can run here.
fn af_xdp() -> Finding {
    let missing = headway_xsk::missing();
    let is_here = missing.is_empty();
    Finding {
        name: "AF_XDP",
        level: if is_here {
            Severity::Good
        } else {
            Severity::Absent
        },
        detail: if is_here {
            "servers can take a device's packets without the kernel's network stack".to_owned()
        } else {
            missing.join("; ")
        },
        remedy: (!is_here).then(|| "headway serve on udp://HOST:PORT needs none of it".to_owned()),
    }
}

/// A row for each finding, whose level stands beneath `level`.
fn table(findings: &[Finding], level: &str) -> Table {
    let mut table = Table::new([level, "what", "found", "remedy"]);
    for finding in findings {
        table.push([
            finding.level.to_string(),
            finding.name.to_owned(),
            finding.detail.clone(),
            finding.remedy.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn noise_line(noise: &noise::NoiseSummary) -> String {
    let verdict = if noise.quiet_enough() {
        "quiet enough to measure tails above some tens of µs"
    } else {
        "too noisy to measure tails: stop what else runs"
    };
    format!(
        "a spin lost {} of its time; {} gaps over 10 µs, {} over 1 ms, the longest {}: {verdict}",
        format::percent(noise.lost_fraction),
        noise.gaps_over_10us,
        noise.gaps_over_1ms,
        format::duration_us(noise.longest_gap_ns as f64 / 1e3)
    )
}

fn json(
    machine: &MachineDescription,
    findings: &[Finding],
    noise: &noise::NoiseSummary,
) -> serde_json::Value {
    serde_json::json!({
        "machine": machine,
        "findings": findings.iter().map(|finding: &Finding| {
        serde_json::json!({
            "name": finding.name, "level": finding.level.to_string(), "detail": finding.detail,
            "remedy": finding.remedy,
        })
    }).collect::<Vec<_>>(),
        "noise": noise,
        "quiet_enough": noise.quiet_enough(),
    })
}
