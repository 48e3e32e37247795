//! The report of a figure that is measured live.

use headway_report::{Table, format};

use super::Ratio;
use super::carried::CarriedRate;
use super::result::{LiveReproduction, SystemResult};
use crate::figures::distinct;
use crate::measured::report::{
    FigureReport, MeasuredResult, ReportTable, cut_off_note, reason_note,
};
use crate::measured::rounds::median;
use crate::show::{chart, few_samples};

/// The claims: the paper's figure, the measured one, the verdict.
fn claim_table(result: &LiveReproduction) -> Table {
    let mut table = Table::new(["what", "slowdown by", "paper", "here", "verdict"]);
    for claim in &result.claims {
        table.push([
            claim.says.clone(),
            claim.tail.words().into(),
            claim.paper.map_or("more".into(), times),
            shown(&claim.ours),
            claim.verdict.words().into(),
        ]);
    }
    table
}

fn times(value: f64) -> String {
    format!("{} ×", format::significant(value, 3))
}

/// The estimate and its interval, or the ends that are known.
fn shown(ratio: &Ratio) -> String {
    let end = |value: f64| format::significant(value, 3);
    match (ratio.estimate, ratio.hi) {
        (Some(estimate), Some(hi)) => {
            format!("{} [{}, {}]", times(estimate), end(ratio.lo), end(hi))
        }
        (_, None) if ratio.lo > 0.0 => format!("at least {}", times(ratio.lo)),
        (_, Some(hi)) if ratio.lo == 0.0 => format!("at most {}", times(hi)),
        (_, Some(hi)) => format!("{} to {}", end(ratio.lo), times(hi)),
        (_, None) => "–".into(),
    }
}

/// The rates that each system carried.
fn carried(result: &LiveReproduction) -> Table {
    let tails = result
        .systems
        .iter()
        .find(|system| !system.carried.is_empty());
    let tails: Vec<_> = tails
        .iter()
        .flat_map(|system| &system.carried)
        .map(|by| by.tail)
        .collect();
    let slowdown = format::significant(result.slowdown, 3);
    let columns = tails
        .iter()
        .map(|tail| format!("{} ≤ {slowdown} ×, requests/s", tail.words()));
    let mut table = Table::new(
        ["system", "policy", "compiled", "cores"]
            .map(str::to_owned)
            .into_iter()
            .chain(columns),
    );
    for system in &result.systems {
        let mut row = vec![
            system.name.clone(),
            system.policy.clone(),
            system.how.clone(),
            system.cores_shown(),
        ];
        row.extend(tails.iter().map(|tail| match &system.skipped {
            Some(_) => "skipped".into(),
            None => rates(system, *tail),
        }));
        table.push(row);
    }
    table
}

/// The median over rounds, with the least and the most.
fn rates(system: &SystemResult, tail: super::Tail) -> String {
    let by = system.carried.iter().find(|by| by.tail == tail);
    let rounds = by.map_or(&[][..], |by| &by.rounds);
    let bounded = |one: &CarriedRate| match one {
        CarriedRate::Below(rps) => format!("< {}", format::metric(*rps)),
        CarriedRate::At(rps) => format::metric(*rps),
        CarriedRate::AtLeast(rps) => format!("≥ {}", format::metric(*rps)),
    };
    let mut sorted: Vec<&CarriedRate> = rounds.iter().collect();
    sorted.sort_by(|a, b| a.rps().total_cmp(&b.rps()));
    match sorted[..] {
        [] => "–".into(),
        [one] => bounded(one),
        [first, .., last] => {
            let middle = bounded(sorted[(sorted.len() - 1) / 2]);
            format!("{middle} ({} to {})", bounded(first), bounded(last))
        }
    }
}

/// Every system at every load: medians over the rounds that count.
fn points(result: &LiveReproduction) -> Table {
    let short = result.at_rest.iter().min_by_key(|class| class.service_ns);
    let short = short.map_or("", |class| class.class.as_str());
    let mut whats: Vec<(String, String)> = vec![("achieved".into(), "achieved".into())];
    for tail in ["p50", "p90", "p99", "p999"] {
        whats.push((format!("overall.slowdown.{tail}"), format!("all {tail}")));
    }
    for tail in ["p50", "p99", "p999"] {
        whats.push((
            format!("class.{short}.slowdown.{tail}"),
            format!("{short} {tail}"),
        ));
    }
    for (what, shown) in [
        ("preemptions", "interruptions each"),
        ("lock_yields", "at the end of a lock"),
        ("shed", "shed"),
        ("lost", "lost"),
        ("late.p99_us", "sent late, p99 µs"),
    ] {
        whats.push((what.into(), shown.into()));
    }
    let columns = ["offered", "system"].map(str::to_owned).into_iter();
    let mut table = Table::new(columns.chain(whats.iter().map(|(_, shown)| shown.clone())));
    let mut places: Vec<f64> = result.figures.iter().filter_map(|datum| datum.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for place in places {
        for system in distinct(result.figures.iter().map(|datum| datum.system.as_str())) {
            let value = |what: &str| {
                let mut its = result.figures.iter().filter(|datum| {
                    datum.system == system && datum.what == what && datum.x == Some(place)
                });
                its.next().map(|datum| datum.value)
            };
            if value("achieved").is_none() {
                continue;
            }
            let row = [format::metric(place), system.into()].into_iter();
            table.push(row.chain(whats.iter().map(|(what, _): &(String, String)| {
                match value(what) {
                    Some(value) if value.is_finite() && what == "achieved" => format::metric(value),
                    Some(value) if value.is_finite() => format::significant(value, 3),
                    _ => "–".into(),
                }
            })));
        }
    }
    table
}

fn at_rest(result: &LiveReproduction) -> Table {
    let mut table = Table::new(["at rest", "handler", "with probes", "round trip"]);
    let time = |ns: u64| format::duration_us(ns as f64 / 1e3);
    for class in &result.at_rest {
        table.push([
            class.class.clone(),
            time(class.service_ns),
            class.with_probes_ns.map_or("–".into(), time),
            time(class.round_trip_ns),
        ]);
    }
    table
}

/// The notes, one sentence each.
fn notes(result: &LiveReproduction) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Machine: {}. Workers beside the dispatcher: {}. Seed: {}.",
            result.machine, result.workers, result.seed
        ),
        format!(
            "Load 1 is {} requests/s, which {} answers when requests always wait. Slowdowns are at the server: from the send, less the {} that the \
             network takes at rest, over what the handler takes at rest without probes.",
            format::metric(result.capacity_rps),
            result
                .systems
                .first()
                .map_or("the first", |system| system.name.as_str()),
            format::duration_us(result.network_us),
        ),
        lateness(result),
    ];
    notes.extend(few_samples(&result.figures));
    notes.extend(beyond_reach(result));
    notes.extend(result.caveats.iter().cloned());
    for system in &result.systems {
        if let Some(why) = &system.skipped {
            notes.push(format!("SKIPPED {}: {why}.", system.name));
        }
    }
    if result.shortened {
        notes.push("A first impression: few loads, short runs.".into());
    }
    notes
}

/// A note for each percentile by which no system kept the slowdown in any round: such a percentile decides no claim.
fn beyond_reach(result: &LiveReproduction) -> Vec<String> {
    let carried = || result.systems.iter().flat_map(|system| &system.carried);
    let tails = result
        .systems
        .iter()
        .find(|system| !system.carried.is_empty());
    let tails = tails
        .iter()
        .flat_map(|system| &system.carried)
        .map(|by| by.tail);
    let out = tails.filter(|tail| {
        carried().filter(|by| by.tail == *tail).all(|by| {
            by.rounds
                .iter()
                .all(|one: &CarriedRate| matches!(one, CarriedRate::Below(_)))
        })
    });
    out.map(|tail| {
        format!("By {} nobody kept the slowdown in any round, even at the lowest load: nothing is decided by it.", tail.words())
    })
    .collect()
}

fn lateness(result: &LiveReproduction) -> String {
    let lags = || result.runs.iter().map(|run| &run.lag);
    let repeated = result.runs.iter().filter(|run| run.repeated).count();
    let (counted, of) = result.rounds;
    let out: Vec<String> = result
        .left_out
        .loads
        .iter()
        .map(|(round, load)| format!("round {} load {}", round + 1, load + 1))
        .collect();
    let out = match out.len() {
        0 => "nothing is left out".into(),
        _ => format!("left out, for all systems: {}", out.join(", ")),
    };
    format!(
        "The client sent its requests {} late by the median and {} by the 99th percentile (medians over runs). Runs in which more than 1 % left more than 1 ms late: \
         {repeated} repeated; {out}. {counted} of {of} rounds count.",
        format::duration_us(median(lags().map(|lag| lag.p50_us))),
        format::duration_us(median(lags().map(|lag| lag.p99_us))),
    )
}

const RULE: &str = "The interval over rounds (95 %) holds 1: undecided; lies on the other side of 1 than the paper: not reproduced; holds the \
                    paper's figure, if there is one: reproduced; else: deviates.";

impl MeasuredResult for LiveReproduction {
    fn cut_off(&self) -> Option<usize> {
        self.cut_off.then_some(self.rounds.1)
    }

    fn report(&self) -> FigureReport {
        let families = self.figures.families();
        let families = families.iter().filter(|family| {
            let what = &family[0].what;
            what.contains("slowdown") || what == "achieved"
        });
        let claims = self.claims.iter();
        FigureReport {
            about: self.about.clone(),
            command: self.command.clone(),
            claims: claim_table(self),
            rule: RULE.into(),
            first_notes: cut_off_note(self.cut_off())
                .into_iter()
                .chain(claims.filter_map(|claim| reason_note(&claim.says, claim.reason.as_deref())))
                .collect(),
            tables: vec![ReportTable::new("Carried", carried(self))],
            charts: families
                .map(|family| chart(&self.about.figure, family))
                .collect(),
            details: vec![
                ReportTable::new("All points", points(self)),
                ReportTable::new("At rest", at_rest(self)),
            ],
            notes: notes(self),
        }
    }
}
