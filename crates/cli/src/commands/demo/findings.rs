//! The findings of a demonstration, and sentences about them.

use crate::commands::demo::lane::{ALL, Basis, Excluded, Lane, Round, Sample};
use crate::commands::demo::setup::{Setup, percent};
use crate::commands::demo::verdict::{
    CONFIDENCE, Compared, PolicyRatio, ROUNDS_MIN, RankingStep, Reason,
};
use headway_report::slo::Slo;
use headway_report::stats::ConfidenceInterval;
use headway_report::{Run, format};

/// Everything that was found out.
pub(crate) struct Findings {
    pub(crate) setup: Setup,
    /// By what factor the rate was lowered after the first round.
    pub(crate) lowered: Option<f64>,
    /// The largest number of rounds.
    pub(crate) rounds_most: u64,
    /// Whether the user ended the rounds.
    pub(crate) cut_off: bool,
    /// The command that repeats the demonstration.
    pub(crate) command: String,
    pub(crate) lanes: Vec<Lane>,
    /// Each policy's rounds as one run of all requests, where some round counts.
    pub(crate) runs: Vec<(String, Run)>,
    /// The policy that the others are compared with.
    pub(crate) base: String,
    pub(crate) ratios: Vec<PolicyRatio>,
    pub(crate) ranking: Vec<RankingStep>,
}

impl Findings {
    fn lane(&self, policy: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.name == policy)
    }

    pub(crate) fn ratio_of(&self, policy: &str, class: &str) -> Option<&PolicyRatio> {
        self.ratios
            .iter()
            .find(|ratio: &&PolicyRatio| ratio.policy == policy && ratio.class == class)
    }

    /// The runs, without the spelling that the user chose for their policies.
    pub(crate) fn merged(&self) -> Vec<Run> {
        self.runs.iter().map(|(_, run)| run.clone()).collect()
    }

    /// The kind of requests of a class that is fair to every policy, to draw curves.
    pub(crate) fn sample(&self, class: &str) -> Sample {
        let untouched = Sample::untouched(self.index(class));
        let mut ratios = self.ratios.iter().filter(|ratio| ratio.class == class);
        let are_fair = ratios.all(|ratio| ratio.compared.of == Basis::Untouched);
        let mut lanes = self.lanes.iter();
        if are_fair && lanes.all(|lane: &Lane| lane.valid(untouched).next().is_some()) {
            untouched
        } else {
            ALL
        }
    }

    /// The index of a class.
    pub(crate) fn index(&self, class: &str) -> Option<usize> {
        let names = self.setup.stage.workload.class_names();
        names.iter().position(|name| *name == class)
    }

    pub(crate) fn rounds(&self) -> usize {
        self.lanes[0].rounds.len()
    }

    /// A sentence about the rounds.
    pub(crate) fn conduct(&self) -> Vec<String> {
        let (setup, noise) = (&self.setup, &self.setup.stage.noise);
        let mut lines = vec![
            format!(
                "Live: {} rounds{}, in each every policy for {} s with the same requests, in rotating order, on a fresh \
                 server. The first {} of each run is not measured: DARC profiles its first {} requests then.",
                self.rounds(),
                if self.cut_off {
                    format!(" of at most {}, CUT OFF before the next", self.rounds_most)
                } else if (self.rounds() as u64) < self.rounds_most {
                    format!(" of at most {}", self.rounds_most)
                } else {
                    String::new()
                },
                format::significant(setup.offer.duration.as_secs_f64(), 2),
                percent(setup.offer.warm_up),
                setup.window
            ),
            format!(
                "Machine: {}. Between the rounds a spin lost {} of its time, {} gaps over 10 µs in {} s{}.",
                setup.stage.machine,
                format::percent(noise.lost_fraction),
                noise.gaps_over_10us,
                format::significant(noise.observed_ns as f64 / 1e9, 2),
                if noise.quiet_enough() {
                    ""
                } else {
                    ": a noisy machine"
                }
            ),
        ];
        lines.extend(self.lowered.map(|factor| {
            format!(
                "Handlers took longer in the first round than when they were measured, so its load was too high: it does not \
                 count, and since then {} of the rate, {} requests/s, was offered.",
                percent(factor),
                format::metric(setup.offer.rate_rps)
            )
        }));
        lines.push(self.loads());
        lines.push(
            "Untouched are the requests that were not in the server while the machine stopped it or the client, nor while \
             what piled up meanwhile drained. A witness beside the server and a simulation of the same requests tell, by \
             one rule for all policies; no latency does."
                .to_owned(),
        );
        lines
    }

    /// A sentence about the load that the handlers' times amount to.
    fn loads(&self) -> String {
        let rounds = self.lanes.iter().flat_map(|lane| &lane.rounds);
        let loads: Vec<f64> = rounds.map(|round| round.load).collect();
        let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
        let most = loads.iter().copied().fold(0.0, f64::max);
        format!(
            "By the times that the handlers took, the rounds' load was {} to {}.",
            percent(least),
            percent(most)
        )
    }

    /// The figures of the table that rest on the fewest requests, of the untouched and of all, where they are a handful.
    pub(crate) fn few_samples(&self) -> Vec<String> {
        let stage = &self.setup.stage;
        let of_basis = |basis: Basis| -> Option<String> {
            let classes = stage.workload.class_names().into_iter().enumerate();
            let cells = classes.flat_map(|(index, class)| {
                let sample = Sample {
                    basis,
                    class: Some(index),
                };
                let shown = format!("class.{class}.latency.p999<=60min").parse::<Slo>();
                let shown = shown.expect("an SLO about a class of the store");
                self.lanes.iter().filter_map(move |lane| {
                    let few = shown.few_samples(&lane.run(stage, sample)?)?;
                    Some((few, lane.name.as_str()))
                })
            });
            let fewest = cells.min_by(|(a, _), (b, _)| a.requests.total_cmp(&b.requests));
            let (few, policy) = fewest?;
            let requests = requests(basis);
            Some(format!(
                "Of {requests}, {few} under {policy}, and fewer than ten show little: ask for more --seconds."
            ))
        };
        let bases = [Basis::Untouched, Basis::All];
        bases.into_iter().filter_map(of_basis).collect()
    }

    /// The conclusion in sentences.
    pub(crate) fn conclusions(&self) -> Vec<String> {
        let mut lines = self.comparison();
        lines.extend(self.ranks());
        lines.extend(self.bases());
        lines.extend(self.reservations());
        lines.extend(self.starving());
        lines.extend(self.lateness());
        lines.extend(self.omissions());
        lines
    }

    /// Every class under the base and under the best of the others.
    fn comparison(&self) -> Vec<String> {
        let best = self.order().into_iter().find(|name| *name != self.base);
        let Some(best) = best else {
            return Vec::new();
        };
        let ratios = self.ratios.iter().filter(|ratio| ratio.policy == best);
        ratios
            .filter_map(|ratio: &PolicyRatio| {
                let sample = Sample {
                    basis: ratio.compared.of,
                    class: self.index(&ratio.class),
                };
                let run = |name: &str| self.lane(name)?.run(&self.setup.stage, sample);
                let (base, other) = (run(&self.base)?, run(&best)?);
                let p99 = |run: &Run| Some(run.class(&ratio.class)?.latency_us.p99);
                let base = TailUnder {
                    policy: &self.base,
                    p99_us: p99(&base)?,
                };
                let other = TailUnder {
                    policy: &best,
                    p99_us: p99(&other)?,
                };
                Some(compared(ratio, &base, &other, &ratio.p99?))
            })
            .collect()
    }

    /// The ranked policies, best first.
    fn order(&self) -> Vec<String> {
        let first = self.ranking.first().map(|step| step.better.clone());
        let others = self.ranking.iter().map(|step| step.worse.clone());
        first.into_iter().chain(others).collect()
    }

    fn ranks(&self) -> Vec<String> {
        let Some(first) = self.ranking.first() else {
            return Vec::new();
        };
        let head = format!(
            "Ranking by p99 slowdown over {} of both classes (ratios with {} intervals, paired by round; with the two looks that \
                 there may be, at most 5 % err):",
            requests(first.compared.of),
            format::percent(CONFIDENCE),
        );
        let steps = self.ranking.iter().map(ranking_line);
        std::iter::once(head).chain(steps).collect()
    }

    /// The comparisons that are over all requests, why, and what their ratios mean.
    fn bases(&self) -> Vec<String> {
        let mut comparisons: Vec<(String, Compared)> = self
            .ratios
            .iter()
            .map(|ratio| {
                let what = format!("{} under {}", ratio.class, ratio.policy);
                (what, ratio.compared)
            })
            .collect();
        let ranked = self.ranking.first();
        comparisons.extend(ranked.map(|step| ("the ranking".to_owned(), step.compared)));
        let because = |reason: Reason| -> Vec<String> {
            let those = comparisons.iter().filter(|(_, it)| it.reason == reason);
            those.map(shown_comparison).collect()
        };
        let mut lines = Vec::new();
        let few = because(Reason::TooFew);
        if !few.is_empty() {
            lines.push(format!(
                "Over all requests, since fewer than {ROUNDS_MIN} rounds have enough untouched ones of both policies: {}.",
                few.join(", ")
            ));
        }
        let uneven = because(Reason::Uneven);
        if !uneven.is_empty() {
            lines.push(format!(
                "Over all requests, since leaving out those that a stop touched would itself change the ratio, by simulation of the \
                 same requests by this factor: {}. A request that waits behind a long one is nearly always in the server when the \
                 machine stops it.",
                uneven.join(", ")
            ));
        }
        if !lines.is_empty() {
            lines.push(self.over_all());
        }
        lines
    }

    /// What a ratio over all requests means.
    fn over_all(&self) -> String {
        let rounds = self.lanes.iter().flat_map(|lane| &lane.rounds);
        let stopped = rounds.map(|round| round.stopped);
        let (least, most) = stopped.fold((1.0_f64, 0.0_f64), |(least, most), part| {
            (least.min(part), most.max(part))
        });
        format!(
            "Ratios over all requests are paired by round and, from {} common rounds on, adjusted to equal stopped time of both policies \
             (the machine stopped server or client for {} to {} of a run). They are those of the machine as it was: stops lengthen every \
             policy's tail and bring ratios closer to 1, so a quieter machine shows more.",
            headway_report::stats::ADJUSTED_ROUNDS_MIN,
            percent(least),
            percent(most)
        )
    }

    /// How often the planning policies kept the longest class off some worker.
    fn reservations(&self) -> Vec<String> {
        let parts: Vec<String> = self
            .lanes
            .iter()
            .filter(|lane: &&Lane| {
                lane.valid(ALL).any(|round: &Round| {
                    round
                        .stats
                        .plan
                        .as_ref()
                        .is_some_and(|plan| !plan.groups.is_empty())
                })
            })
            .map(|lane: &Lane| {
                let reserving = lane.reserving(self.setup.stage.workers);
                format!(
                    "{} in {reserving} of {} rounds",
                    lane.name,
                    lane.valid(ALL).count()
                )
            })
            .collect();
        if parts.is_empty() {
            Vec::new()
        } else {
            vec![format!(
                "Workers were reserved for GETs by {}.",
                parts.join(", ")
            )]
        }
    }

    fn starving(&self) -> Vec<String> {
        let starving = self.lanes.iter().filter(|lane| !lane.starved.is_empty());
        starving.map(|lane: &Lane| {
            format!(
                "{} starves {} at this load: the backlog grows without bound, so its tail only measures the run's \
                 length. It is not ranked.",
                lane.name,
                lane.starved.join(" and ")
            )
        }).collect()
    }

    /// The delays of the client by gaps of the machine, which the tails include.
    fn lateness(&self) -> Option<String> {
        let (late, sent) = self
            .runs
            .iter()
            .filter_map(|(_, run): &(String, Run)| run.extras.delivery)
            .fold((0, 0), |(late, sent), part| {
                (late + part.late, sent + part.sent)
            });
        (late > 0).then(|| {
            format!(
                "Of {sent} requests {late} ({} %) left more than 1 ms late, because the machine ran something else; \
                 with all requests their latencies include it.",
                format::significant(100.0 * late as f64 / sent as f64, 2)
            )
        })
    }

    /// The rounds that do not count, grouped by reason.
    fn omissions(&self) -> Vec<String> {
        self.lanes
            .iter()
            .filter_map(|lane: &Lane| {
                let excluded = lane.excluded();
                let Excluded { policy, why, .. } = excluded.first()?;
                let rounds: Vec<String> = excluded.iter().map(|it| it.round.to_string()).collect();
                Some(format!(
                    "Left out: {policy}, {} of {} rounds ({}). The first: {}.",
                    rounds.len(),
                    lane.rounds.len(),
                    rounds.join(", "),
                    why.join("; ")
                ))
            })
            .collect()
    }
}

/// A comparison with the factor by which the filter would change it.
fn shown_comparison((what, compared): &(String, Compared)) -> String {
    match compared.filter_factor {
        Some(factor) => format!("{what} (× {})", format::significant(factor, 2)),
        None => what.clone(),
    }
}

/// In words.
pub(crate) fn requests(of: Basis) -> &'static str {
    match of {
        Basis::Untouched => "the untouched requests",
        Basis::All => "all requests",
    }
}

/// A class's tail under one policy.
struct TailUnder<'a> {
    policy: &'a str,
    p99_us: f64,
}

/// A sentence on a class's tail under two policies. A ratio below 1 becomes a factor by which the tail is lower.
fn compared(
    of: &PolicyRatio,
    base: &TailUnder<'_>,
    other: &TailUnder<'_>,
    ratio: &ConfidenceInterval,
) -> String {
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
        "{}, p99 of {}: {} under {}, {} under {}: {times}.",
        of.class,
        requests(of.compared.of),
        time(base.p99_us),
        base.policy,
        time(other.p99_us),
        other.policy
    )
}

fn inverse(ratio: &ConfidenceInterval) -> ConfidenceInterval {
    ConfidenceInterval {
        estimate: 1.0 / ratio.estimate,
        lo: 1.0 / ratio.hi,
        hi: 1.0 / ratio.lo,
        ..*ratio
    }
}

/// The better of two neighbours and its lead, or a statement that they cannot be ranked.
fn ranking_line(step: &RankingStep) -> String {
    let RankingStep { better, worse, .. } = step;
    match &step.ratio {
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
    }
}
