//! The table and the page.

use crate::POLICIES;
use crate::load::Step;
use crate::quantile_us;
use crate::stage::{CORES, Outcome};
use headway_host::arbiter::AppReport;
use headway_report::Table;
use headway_report::html::{Chart, Page, Series};
use headway_report::schedule::{Runner, Schedule, Slice};

/// The span of a tail, ns.
const WINDOW_NS: u64 = 10_000_000;
/// The picture of cores: its start before the load steps up, and its length.
const BEFORE_NS: u64 = 10_000_000;
const SHOWN_NS: u64 = 40_000_000;
/// Beyond this part of its time without a granted core the server's latencies say nothing of an allocator.
const MOST_WITHHELD: f64 = 0.6;
const APPS: [&str; 2] = ["kv", "pricer"];

pub(crate) fn setting() -> String {
    format!(
        "a key-value server, one core guaranteed, and a batch program share {CORES} cores; load in steps {}; latencies at the client, µs",
        crate::STEPS
            .map(|step| format!("{:.0}k/s", step.rate_rps / 1e3))
            .join(", ")
    )
}

/// The quantiles of all requests of all rounds, and of those of the step up.
pub(crate) fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new([
        "policy",
        "p50",
        "p99.9",
        "p99.9 while high",
        "median p99.9 of 10 ms while high",
        "lost",
        "server waits for its core, % of its time",
        "batch paths/s while low",
        "while high",
        "grants/s",
        "evicted, of orders to leave",
    ]);
    for policy in POLICIES {
        let own: Vec<_> = outcomes.iter().filter(|one| one.policy == policy).collect();
        let all: Vec<_> = own
            .iter()
            .flat_map(|one| one.load.answered.clone())
            .collect();
        let step_ns = crate::STEPS[0].length.as_nanos() as u64;
        let is_high = |at_ns: u64| (step_ns..2 * step_ns).contains(&at_ns);
        let high: Vec<_> = all
            .iter()
            .copied()
            .filter(|one| is_high(one.at_ns))
            .collect();
        let mut windows: Vec<f64> = own
            .iter()
            .flat_map(|one| tails(one))
            .filter(|(at_ms, _)| is_high((*at_ms * 1e6) as u64))
            .map(|(_, us)| us)
            .collect();
        windows.sort_by(f64::total_cmp);
        let sent: usize = own.iter().map(|one| one.load.sent).sum();
        let rounds = own.len().max(1) as f64;
        let per_s = |step: usize| {
            let paths: u64 = own
                .iter()
                .map(|one| one.priced.get(step).copied().unwrap_or(0))
                .sum();
            paths as f64 / rounds / crate::STEPS[step].length.as_secs_f64()
        };
        let length_s: f64 = crate::STEPS
            .iter()
            .map(|step| step.length.as_secs_f64())
            .sum();
        let grants: u64 = own.iter().map(|one| one.report.grant.count).sum();
        let us = |value: Option<f64>| value.map_or("–".into(), |us| format!("{us:.0}"));
        table.push([
            policy.to_owned(),
            us(quantile_us(&all, 0.5)),
            us(quantile_us(&all, 0.999)),
            us(quantile_us(&high, 0.999)),
            us(windows.get(windows.len() / 2).copied()),
            (sent - all.len()).to_string(),
            format!("{:.0}", 100.0 * withheld(&own)),
            format!("{:.0}", (per_s(0) + per_s(2)) / 2.0),
            format!("{:.0}", per_s(1)),
            format!("{:.0}", grants as f64 / rounds / length_s),
            format!(
                "{} of {}",
                sum_of(&own, |app| app.evictions),
                sum_of(&own, |app| app.revocations)
            ),
        ]);
    }
    table
}

/// Of all rounds.
fn withheld(own: &[&Outcome]) -> f64 {
    own.iter().map(|one| one.withheld).sum::<f64>() / own.len().max(1) as f64
}

/// Says so if other programs of the machine had the server's cores: its latencies are theirs then, under each allocator.
pub(crate) fn disturbance(outcomes: &[Outcome]) -> Option<String> {
    let all: Vec<_> = outcomes.iter().collect();
    let part = withheld(&all);
    (part > MOST_WITHHELD).then(|| {
        format!(
            "the server was ready for {:.0} % of its time while other threads had its core: other programs run here, and these latencies are theirs",
            100.0 * part
        )
    })
}

/// A count of all applications in all rounds.
fn sum_of(own: &[&Outcome], count: impl Fn(&AppReport) -> u64) -> u64 {
    let apps = own.iter().flat_map(|one| &one.report.apps);
    apps.map(count).sum()
}

/// p99.9 of each 10 ms, as pairs of time in ms and latency in µs.
fn tails(outcome: &Outcome) -> Vec<(f64, f64)> {
    let mut answered = outcome.load.answered.clone();
    answered.sort_unstable_by_key(|one| one.at_ns);
    let windows = answered.chunk_by(|a, b| a.at_ns / WINDOW_NS == b.at_ns / WINDOW_NS);
    windows
        .filter_map(|window| {
            let at_ns = window[0].at_ns / WINDOW_NS * WINDOW_NS;
            Some((at_ns as f64 / 1e6, quantile_us(window, 0.999)?))
        })
        .collect()
}

pub(crate) fn write(path: &str, outcomes: &[Outcome], steps: &[Step]) -> std::io::Result<()> {
    let mut tail = Chart::new("p99.9 of each 10 ms, first round", "ms", "µs").log_y();
    for policy in POLICIES {
        if let Some(one) = outcomes.iter().find(|one| one.policy == policy) {
            tail = tail.series(Series::new(policy, tails(one)));
        }
    }
    let up_ns = steps[0].length.as_nanos() as u64;
    let mut page = Page::new("Two applications, two cores")
        .paragraph(&setting())
        .table("", &table(outcomes))
        .chart(&tail);
    for policy in POLICIES {
        if let Some(one) = outcomes.iter().rev().find(|one| one.policy == policy) {
            let from_ns = one.load.start_ns + up_ns - BEFORE_NS;
            page = page
                .heading(&format!(
                    "{policy}: who had which core as the load stepped up"
                ))
                .schedule(&schedule(one, from_ns));
        }
    }
    page.write(path)
}

/// A slice for each tenancy of a core, in a window of the run.
fn schedule(outcome: &Outcome, from_ns: u64) -> Schedule {
    let start_ns = outcome.load.start_ns;
    let window = from_ns - start_ns..from_ns - start_ns + SHOWN_NS;
    let mut slices = Vec::new();
    for (place, core) in outcome.report.cores.iter().enumerate() {
        let own: Vec<_> = outcome
            .changes
            .iter()
            .filter(|one| one.core == core.core)
            .collect();
        for (at, change) in own.iter().enumerate() {
            let next_ns = own
                .get(at + 1)
                .map_or(outcome.report.at_ns, |next| next.at_ns);
            let class = APPS
                .iter()
                .position(|name| change.app.as_deref() == Some(name));
            let (from, to) = (
                change.at_ns.saturating_sub(start_ns).max(window.start),
                next_ns.saturating_sub(start_ns).min(window.end),
            );
            if let Some(class) = class
                && from < to
            {
                slices.push(Slice {
                    request: slices.len() as u64,
                    class,
                    service_ns: to - from,
                    runner: Runner::Worker(place),
                    waited_from_ns: from,
                    from_ns: from,
                    to_ns: to,
                    resumed: false,
                    done: true,
                });
            }
        }
    }
    slices.sort_by_key(|slice| slice.to_ns);
    Schedule {
        classes: APPS.map(str::to_owned).to_vec(),
        workers: outcome.report.cores.len(),
        window,
        slices,
    }
}
