//! What the runs come to: a table of medians over rounds, warnings, and JSON.

use anyhow::{Context, Result};
use headway_machine::noise::QUIET_LOST_FRACTION;
use headway_report::{BenchReport, Noise, Run, Table, format};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A run, and the place of what served it among the systems.
pub(crate) struct MeasuredRun {
    pub(crate) system: usize,
    pub(crate) run: Run,
}

/// A row for each system: for each workload the median over rounds of the overall p99 slowdown, and of its ratio to that of the system
/// `reference` in the same round.
pub(crate) fn table(
    outcomes: &[MeasuredRun],
    systems: &[String],
    workloads: &[String],
    reference: usize,
) -> Table {
    let ratio = format!("÷ {}", systems[reference]);
    let columns = workloads.iter().flat_map(|name| [name, &ratio]).cloned();
    let mut table = Table::new(std::iter::once("p99 slowdown".to_owned()).chain(columns));
    for (system, name) in systems.iter().enumerate() {
        let mut row = vec![name.clone()];
        for workload in workloads {
            let own = tails(outcomes, system, workload);
            let others = tails(outcomes, reference, workload);
            let ratios = own.iter().zip(others).map(|(own, other)| own / other);
            let ratios = ratios.collect();
            row.push(format::significant(median(own.clone()), 3));
            row.push(format::significant(median(ratios), 3));
        }
        table.push(row);
    }
    table
}

/// The runs of a system under a workload, round by round.
fn runs<'a>(
    outcomes: &'a [MeasuredRun],
    system: usize,
    workload: &'a str,
) -> impl Iterator<Item = &'a Run> {
    let of_system = outcomes
        .iter()
        .filter(move |outcome| outcome.system == system);
    let runs = of_system.map(|outcome| &outcome.run);
    runs.filter(move |run| run.meta.workload == workload)
}

/// The overall p99 slowdown of each of them.
fn tails(outcomes: &[MeasuredRun], system: usize, workload: &str) -> Vec<f64> {
    let runs = runs(outcomes, system, workload);
    runs.map(|run| run.overall.slowdown.p99).collect()
}

/// The middle one; the mean of both where there are two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        (values[half - 1] + values[half]) / 2.0
    }
}

fn lost_fraction(run: &Run) -> f64 {
    run.extras.noise.map_or(0.0, |noise| noise.lost_fraction)
}

/// Says on standard error where the machine disturbed runs, and where they shed requests.
pub(crate) fn warn(outcomes: &[MeasuredRun], systems: &[String], workloads: &[String]) {
    for workload in workloads {
        for (system, name) in systems.iter().enumerate() {
            let runs: Vec<&Run> = runs(outcomes, system, workload).collect();
            let place = format!("{name} on {workload}");
            warn_of_noise(&runs, &place);
            warn_of_shedding(&runs, &place);
        }
    }
}

fn warn_of_noise(runs: &[&Run], place: &str) {
    let lost = runs.iter().map(|run| lost_fraction(run));
    let disturbed: Vec<f64> = lost.filter(|&lost| lost > QUIET_LOST_FRACTION).collect();
    if !disturbed.is_empty() {
        eprintln!(
            "disturbed: {place}, {} of {} rounds: the machine took up to {} of the time, and tails are its own above {}; stop what else runs and repeat",
            disturbed.len(),
            runs.len(),
            format::percent(disturbed.iter().copied().fold(0.0, f64::max)),
            format::percent(QUIET_LOST_FRACTION)
        );
    }
}

fn warn_of_shedding(runs: &[&Run], place: &str) {
    let shed: Vec<u64> = runs
        .iter()
        .filter(|run| !run.sustained())
        .map(|run| run.meta.dropped)
        .collect();
    if !shed.is_empty() {
        eprintln!(
            "not sustained: {place}, {} of {} rounds: up to {} requests were shed, and the latencies are those of the others; lower --load",
            shed.len(),
            runs.len(),
            shed.iter().max().unwrap_or(&0)
        );
    }
}

/// A file for the runs.
pub(crate) struct JsonFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> JsonFile<'a> {
    /// An empty one.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn create(path: &'a Path) -> Result<Self> {
        let file = File::create(path);
        let file = file.with_context(|| format!("--json: cannot create {}", path.display()))?;
        Ok(Self { path, file })
    }

    /// Writes the runs as `headway bench --format json` does.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(self, outcomes: Vec<MeasuredRun>) -> Result<()> {
        let runs: Vec<Run> = outcomes.into_iter().map(|outcome| outcome.run).collect();
        let noises = runs.iter().filter_map(|run| run.extras.noise);
        let noise = Noise {
            lost_fraction: runs.iter().map(lost_fraction).fold(0.0, f64::max),
            gaps_over_10us: noises.map(|noise| noise.gaps_over_10us).max().unwrap_or(0),
        };
        let mut file = BufWriter::new(self.file);
        serde_json::to_writer_pretty(
            &mut file,
            &BenchReport {
                runs,
                noise,
                cut_off: false,
            },
        )
        .map_err(anyhow::Error::from)
        .and_then(|()| Ok(file.flush()?))
        .with_context(|| format!("--json: cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_report::{ClassMeta, Recorder, RunExtras, RunLevel, RunMeta};

    /// A run in which every request is slowed down so many times.
    fn outcome(system: usize, workload: &str, slowdown: u64) -> MeasuredRun {
        const SERVICE_NS: u64 = 1_000;
        let mut recorder = Recorder::new(&[ClassMeta::new("all", SERVICE_NS as f64)]);
        recorder.record(0, slowdown * SERVICE_NS, SERVICE_NS);
        let meta = RunMeta {
            policy: String::new(),
            params: serde_json::Map::new(),
            level: RunLevel::Live,
            workload: workload.to_owned(),
            workers: 2,
            seed: 1,
            requests: 1,
            offered_rps: 1.0,
            achieved_rps: 1.0,
            load: 0.7,
            utilization: 0.7,
            dropped: 0,
            preemptions: 0,
            overloaded: false,
        };
        MeasuredRun {
            system,
            run: Run::new(meta, &recorder, RunExtras::default()),
        }
    }

    #[test]
    fn medians_are_over_rounds_and_ratios_within_a_round() {
        let slowdowns = [(10, 10), (30, 10), (40, 80)];
        let mut outcomes: Vec<MeasuredRun> = slowdowns
            .into_iter()
            .flat_map(|(own, to)| [outcome(0, "w", own), outcome(1, "w", to)])
            .collect();
        outcomes.extend([outcome(1, "v", 4), outcome(0, "v", 8)]);
        let names = ["peer", "first"].map(str::to_owned);
        let table = table(&outcomes, &names, &["w", "v"].map(str::to_owned), 1);
        assert_eq!(
            table.columns(),
            ["p99 slowdown", "w", "÷ first", "v", "÷ first"]
        );
        assert_eq!(table.rows()[0], ["peer", "30.0", "1.00", "8.00", "2.00"]);
        assert_eq!(table.rows()[1], ["first", "10.0", "1.00", "4.00", "1.00"]);
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 4.0]), 4.0);
        assert_eq!(median(vec![9.0, 1.0, 4.0, 6.0]), 5.0);
    }
}
