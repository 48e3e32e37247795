//! Everything that was found out, and how it is said in words.

use crate::commands::demo::live::{Offer, Round};
use crate::commands::demo::rate::MARGIN;
use crate::commands::demo::rounds::{Excluded, Lane};
use crate::commands::demo::stage::{KEYS, Stage, VALUE_BYTES};
use crate::commands::demo::theory::Curve;
use crate::commands::demo::verdict::{self, Ratio, Step};
use headway_report::stats::Interval;
use headway_report::{ClassResult, Run, format};

/// Everything that was found out.
pub(crate) struct Findings {
    pub(crate) stage: Stage,
    pub(crate) offer: Offer,
    pub(crate) load: f64,
    /// Whether the user chose the load.
    pub(crate) load_given: bool,
    /// Completions after which DARC reserves for the first time.
    pub(crate) window: u64,
    /// What to type for the same again.
    pub(crate) command: String,
    /// Runs that were repeated because they did not count.
    pub(crate) repeated: u64,
    pub(crate) lanes: Vec<Lane>,
    /// Each policy's rounds as one run, where some round counts.
    pub(crate) runs: Vec<(String, Run)>,
    /// What the others are compared with.
    pub(crate) base: String,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) ranking: Vec<Step>,
    /// By simulation on as many workers as were live.
    pub(crate) here: Vec<Curve>,
    /// By simulation on 14 workers.
    pub(crate) beyond: Vec<Curve>,
}

impl Findings {
    pub(crate) fn run_of(&self, policy: &str) -> Option<&Run> {
        let found = self.runs.iter().find(|(name, _)| name == policy);
        found.map(|(_, run)| run)
    }

    pub(crate) fn ratio_of(&self, policy: &str, class: &str) -> Option<&Ratio> {
        let is_it = |ratio: &&Ratio| ratio.policy == policy && ratio.class == class;
        self.ratios.iter().find(is_it)
    }

    /// The runs without the names that the user gave their policies.
    pub(crate) fn merged(&self) -> Vec<Run> {
        self.runs.iter().map(|(_, run)| run.clone()).collect()
    }

    fn rounds(&self) -> usize {
        self.lanes[0].rounds.len()
    }

    /// What was set up.
    pub(crate) fn setting(&self) -> Vec<String> {
        let stage = &self.stage;
        let classes: Vec<String> = stage
            .workload
            .union()
            .map(|class| {
                let time = format::duration_us(class.mean_ns() / 1e3);
                format!("{} {} ({time})", percent(class.share), class.name)
            })
            .collect();
        let noise = &stage.noise;
        vec![
            format!(
                "A key-value service on UDP loopback: {KEYS} keys of {VALUE_BYTES} bytes in an embedded ordered \
                 store, {} workers.",
                stage.workers
            ),
            format!(
                "Offered, open loop: {}; a SCAN reads {} entries. Times are those of the handlers in the server.",
                classes.join(" and "),
                stage.scan_entries
            ),
            self.why_this_load(),
            format!(
                "{} rounds, in each every policy for {} s with the same requests, in rotating order, on a fresh \
                 server. The first {} of each run is not measured: DARC profiles its first {} requests then.",
                self.rounds(),
                format::significant(self.offer.duration.as_secs_f64(), 2),
                percent(self.offer.warm_up),
                self.window
            ),
            format!(
                "Machine: {}. Between the rounds a spin lost {} of its time, {} gaps over 10 µs in {} s{}.",
                stage.machine,
                format::percent(noise.lost_fraction),
                noise.gaps_over_10us,
                format::significant(noise.observed_ns as f64 / 1e9, 2),
                if noise.quiet_enough() {
                    ""
                } else {
                    ": a noisy machine, tails below a millisecond are partly its own"
                }
            ),
        ]
    }

    fn why_this_load(&self) -> String {
        let rate = format!("{} requests/s", format::metric(self.offer.rate_rps));
        let load = percent(self.load);
        if self.load_given {
            return format!("Load {load} of the workers, {rate}, as asked for.");
        }
        format!(
            "Load {load} of the workers, {rate}: the highest at which, by simulation with {} to spare, none of \
             these policies starves a class.",
            percent(MARGIN - 1.0)
        )
    }

    /// What it comes to.
    pub(crate) fn conclusions(&self) -> Vec<String> {
        let mut lines = self.comparison();
        lines.extend(self.ranks());
        lines.extend(self.reservations());
        lines.extend(self.with_more_workers());
        lines.extend(self.starving());
        lines.extend(self.lateness());
        lines.extend(self.omissions());
        lines
    }

    /// Every class under the base and under the best of the others.
    fn comparison(&self) -> Vec<String> {
        let best = self.order().into_iter().find(|name| *name != self.base);
        let (Some(best), Some(base)) = (best, self.run_of(&self.base)) else {
            return Vec::new();
        };
        let of_class = |class: &ClassResult| {
            let ratio = self.ratio_of(&best, &class.name)?;
            let other = self.run_of(&best)?.class(&class.name)?;
            let (slow, fast) = (&class.latency_us, &other.latency_us);
            Some(format!(
                "{}: {}; {}.",
                class.name,
                compared(
                    "p99",
                    (slow.p99, &self.base),
                    (fast.p99, &best),
                    &ratio.p99?
                ),
                compared(
                    "p99.9",
                    (slow.p999, &self.base),
                    (fast.p999, &best),
                    &ratio.p999?
                ),
            ))
        };
        base.classes.iter().filter_map(of_class).collect()
    }

    /// The ranked policies, best first.
    fn order(&self) -> Vec<String> {
        let first = self.ranking.first().map(|step| step.better.clone());
        let others = self.ranking.iter().map(|step| step.worse.clone());
        first.into_iter().chain(others).collect()
    }

    fn ranks(&self) -> Vec<String> {
        let step = |step: &Step| {
            let Step { better, worse, .. } = step;
            let said = match &step.ratio {
                Some(ratio) if step.ranked => {
                    format!(
                        "  {better} before {worse}: {} × lower",
                        format::interval(ratio)
                    )
                }
                Some(ratio) => format!(
                    "  {better} and {worse} cannot be ranked: the interval of their ratio, {}, includes 1",
                    format::interval(ratio)
                ),
                None => {
                    format!("  {better} and {worse} cannot be ranked: no two rounds count for both")
                }
            };
            match (&step.ratio, step.delayed) {
                (Some(_), true) => format!("{said} (delayed rounds counted)"),
                _ => said,
            }
        };
        let head = "Ranking by p99 slowdown over all requests (ratios with 95 % intervals, paired by round):";
        match self.ranking.is_empty() {
            true => Vec::new(),
            false => std::iter::once(head.to_owned())
                .chain(self.ranking.iter().map(step))
                .collect(),
        }
    }

    /// How often the policies that plan kept the longest class off some worker.
    fn reservations(&self) -> Vec<String> {
        let plans = |lane: &&Lane| {
            let planned = |round: &Round| {
                round
                    .stats
                    .plan
                    .as_ref()
                    .is_some_and(|plan| !plan.groups.is_empty())
            };
            lane.valid().any(planned)
        };
        let of = |lane: &Lane| {
            let reserving = lane.reserving(self.stage.workers);
            format!(
                "{} in {reserving} of {} rounds",
                lane.name,
                lane.valid().count()
            )
        };
        let parts: Vec<String> = self.lanes.iter().filter(plans).map(of).collect();
        match parts.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "Workers were reserved for GETs by {}.",
                parts.join(", ")
            )],
        }
    }

    /// A busy server with 14 workers: at 80 % load, or the highest below at which no policy starves a class.
    fn with_more_workers(&self) -> Option<String> {
        let curve = |name: &str| self.beyond.iter().find(|curve| curve.name == name);
        let best = self.order().into_iter().find(|name| *name != self.base)?;
        let (base, other) = (curve(&self.base)?, curve(&best)?);
        let sound = |index: &usize| {
            let runs = self.beyond.iter().map(|curve| &curve.runs[*index].meta);
            runs.into_iter()
                .all(|meta| !meta.overloaded && meta.load < 0.8 + 1e-9)
        };
        let index = (0..base.runs.len()).rev().find(sound)?;
        let (left, right) = (&base.runs[index], &other.runs[index]);
        let time = |class: &ClassResult| format::duration_us(class.latency_us.p99);
        let class = |(left, right): (&ClassResult, &ClassResult)| {
            format!("{} p99 {} and {}", left.name, time(left), time(right))
        };
        let classes: Vec<String> = left.classes.iter().zip(&right.classes).map(class).collect();
        Some(format!(
            "The same mix on {} workers at load {}, simulated: under {} and {best}, {}.",
            left.meta.workers,
            percent(left.meta.load),
            self.base,
            classes.join("; ")
        ))
    }

    fn starving(&self) -> Vec<String> {
        let starving = self.lanes.iter().filter(|lane| !lane.starved.is_empty());
        let say = |lane: &Lane| {
            format!(
                "{} starves {} at this load: the backlog grows without bound, so its tail only measures the run's \
                 length. It is not ranked.",
                lane.name,
                lane.starved.join(" and ")
            )
        };
        starving.map(say).collect()
    }

    /// What the machine's own gaps did to the client, for they are in the tails.
    fn lateness(&self) -> Option<String> {
        let delivery = |(_, run): &(String, Run)| run.extras.delivery;
        let (late, sent) = self
            .runs
            .iter()
            .filter_map(delivery)
            .fold((0, 0), |(late, sent), part| {
                (late + part.late, sent + part.sent)
            });
        (late > 0).then(|| {
            format!(
                "Of {sent} requests {late} ({} %) left more than 1 ms late, because the machine ran something else; \
                 their latencies include it.",
                format::significant(100.0 * late as f64 / sent as f64, 2)
            )
        })
    }

    /// Rounds that do not count, and what was repeated.
    fn omissions(&self) -> Vec<String> {
        let excluded = self.lanes.iter().flat_map(Lane::excluded);
        let say = |Excluded { policy, round, why }: Excluded| {
            format!("Left out: {policy}, round {round}: {}.", why.join("; "))
        };
        let repeated = (self.repeated > 0).then(|| {
            format!(
                "Repeated: {}, by the client's lateness and the handlers' times, not by latency.",
                runs(self.repeated)
            )
        });
        let ratios = self.ratios.iter().map(|ratio| ratio.delayed);
        let steps = self.ranking.iter().map(|step| step.delayed);
        let delayed = ratios.chain(steps).any(|delayed| delayed).then(|| {
            "Policies without two rounds that count for both are compared by those as well in which the machine ran something else."
                .to_owned()
        });
        delayed
            .into_iter()
            .chain(excluded.map(say))
            .chain(repeated)
            .collect()
    }
}

fn runs(count: u64) -> String {
    match count {
        1 => "1 run that did not count at first".to_owned(),
        count => format!("{count} runs that did not count at first"),
    }
}

/// A percentile under two policies, in µs. A ratio below 1 is told as how many times lower.
fn compared(what: &str, base: (f64, &str), other: (f64, &str), ratio: &Interval) -> String {
    let times = match ratio.estimate {
        _ if !ratio.distinguishable_from(1.0) => {
            format!(
                "no difference that these rounds can show, ratio {}",
                format::interval(ratio)
            )
        }
        below if below < 1.0 => format!("{} × lower", format::interval(&inverse(ratio))),
        _ => format!("{} × higher", format::interval(ratio)),
    };
    let time = format::duration_us;
    format!(
        "{what} {} under {}, {} under {}: {times}",
        time(base.0),
        base.1,
        time(other.0),
        other.1
    )
}

fn inverse(ratio: &Interval) -> Interval {
    Interval {
        estimate: 1.0 / ratio.estimate,
        lo: 1.0 / ratio.hi,
        hi: 1.0 / ratio.lo,
        ..*ratio
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", 100.0 * fraction)
}

/// Ratios and the ranking of what was played.
pub(crate) fn judge(lanes: &[Lane], base: usize) -> (Vec<Ratio>, Vec<Step>) {
    (
        verdict::ratios(lanes, &lanes[base]),
        verdict::ranking(lanes),
    )
}
