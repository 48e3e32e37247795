//! The rounds of one policy: which of them count, and their merged results.

use crate::commands::demo::entrant::{Entrant, Offer};
use crate::commands::demo::live::Played;
use crate::commands::demo::rate::MARGIN;
use crate::commands::demo::stage::Stage;
use crate::commands::demo::untouched::{
    Distortion, Filtered, Foreseen, Lives, filtered, with_stops,
};
use anyhow::Result;
use headway_load::Flaw;
use headway_policy::{ClassId, Plan};
use headway_report::{ClassMeta, Delivery, Noise, Recorder, Reservation, Run};
use headway_runtime::Stats;
use headway_workload::Class;
use serde::Serialize;

/// Untouched requests that a round must have for their percentiles to say anything.
const UNTOUCHED_LEAST: u64 = 20;

/// The least fraction of untouched requests. Between frequent stops only short requests stay untouched; below this fraction they have no
/// tail.
const UNTOUCHED_PART: f64 = 0.1;

/// The requests that a figure covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Basis {
    /// The requests that no stop of the machine delayed.
    Untouched,
    /// All requests, including the delays by the machine.
    All,
}

/// Some requests of each round.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) basis: Basis,
    /// The place of their class; none: of all classes.
    pub(crate) class: Option<usize>,
}

impl Sample {
    /// The requests of the class, or of all, that the machine left alone.
    pub(crate) fn untouched(class: Option<usize>) -> Self {
        Self {
            basis: Basis::Untouched,
            class,
        }
    }
}

/// All requests.
pub(crate) const ALL: Sample = Sample {
    basis: Basis::All,
    class: None,
};

/// One policy's part of one round.
pub(crate) struct Round {
    pub(crate) all: RunSubset,
    pub(crate) untouched: RunSubset,
    /// What the choice of the untouched requests does to percentiles, by simulation.
    pub(crate) distortion: Distortion,
    /// The part of the measured time in which the machine stopped the server or the client, 0 to 1.
    pub(crate) stopped: f64,
    /// A reason to distrust the latencies. Late requests are no reason: they were set aside.
    pub(crate) flaws: Vec<Flaw>,
    /// The load by the times that the handlers took in this round.
    pub(crate) load: f64,
    /// The intended load.
    planned_load: f64,
    pub(crate) stats: Stats,
}

/// Some requests of a run.
pub(crate) struct RunSubset {
    pub(crate) run: Run,
    pub(crate) recorder: Recorder,
}

/// A policy and its rounds.
pub(crate) struct Lane {
    /// The spec as the user wrote it, without the added window.
    pub(crate) name: String,
    pub(crate) rounds: Vec<Round>,
    /// Classes that the policy starves at this load, by simulation.
    predicted: Vec<String>,
    /// Classes that the policy starves at this load, by simulation or in most rounds.
    pub(crate) starved: Vec<String>,
}

/// A round that does not count.
#[derive(Serialize)]
pub(crate) struct Excluded {
    pub(crate) policy: String,
    /// From 1.
    pub(crate) round: usize,
    pub(crate) why: Vec<String>,
}

impl RunSubset {
    /// Requests of a class, or of all classes.
    fn measured(&self, class: Option<usize>) -> u64 {
        let classes = self.recorder.classes();
        match class {
            Some(class) => classes[class].count(),
            None => classes.iter().map(|class| class.count()).sum(),
        }
    }
}

impl Round {
    /// The round of the entrant of this index.
    pub(crate) fn of(
        stage: &Stage,
        (index, entrant): (usize, &Entrant),
        offer: &Offer,
        played: Played,
        lives: &Lives,
    ) -> Result<Self> {
        let Played {
            report,
            stats,
            stops,
        } = played;
        let meta = |class: &Class| ClassMeta::new(&class.name, class.mean_ns());
        let metas: Vec<ClassMeta> = stage.workload.union().map(meta).collect();
        let planned_load = report.run.meta.load;
        let with_stops = with_stops(stage, &entrant.policy, offer, &report.answers, &stops)?;
        let foreseen = Foreseen {
            longest: &lives.longest,
            without_stops: &lives.by_policy[index],
            with_stops: &with_stops,
        };
        let Filtered {
            untouched: recorder,
            distortion,
            stopped,
        } = filtered(&report.answers, &metas, &stops, &foreseen, planned_load);
        let (meta, extras) = (report.run.meta.clone(), report.run.extras.clone());
        let untouched = RunSubset {
            run: Run::new(meta, &recorder, extras),
            recorder,
        };
        Ok(Self {
            load: load(stage, &stats, &report.run),
            planned_load,
            flaws: report
                .flaws
                .into_iter()
                .filter(|flaw| !matches!(flaw, Flaw::Late { .. }))
                .collect(),
            untouched,
            distortion,
            stopped,
            all: RunSubset {
                run: report.run,
                recorder: report.corrected,
            },
            stats,
        })
    }

    pub(crate) fn view(&self, basis: Basis) -> &RunSubset {
        match basis {
            Basis::Untouched => &self.untouched,
            Basis::All => &self.all,
        }
    }

    /// Whether the machine left enough requests of a class alone, or of all classes together.
    pub(crate) fn quiet(&self, class: Option<usize>) -> bool {
        let all = self.all.measured(class);
        let left = self.untouched.measured(class);
        left >= UNTOUCHED_LEAST && left as f64 >= UNTOUCHED_PART * all as f64
    }

    /// Whether the handlers ran so much longer than in the pilot that this alone can make a policy starve a class.
    fn slowed(&self) -> bool {
        self.load > self.planned_load * MARGIN
    }

    /// Whether, at the end, some worker was closed to the longest class.
    pub(crate) fn reserved(&self, workers: usize) -> bool {
        let longest = ClassId((self.all.run.classes.len() - 1) as u16);
        let open_to_longest =
            |plan: &Plan| plan.reserved(longest).union(plan.stealable(longest)).len();
        let plan = self.stats.plan.as_ref();
        plan.is_some_and(|plan| open_to_longest(plan) < workers)
    }
}

/// The load of the workers, from the measured times of the handlers.
fn load(stage: &Stage, stats: &Stats, run: &Run) -> f64 {
    let mean_ns: f64 = stage
        .workload
        .union()
        .map(|class: &Class| {
            let found = stats.classes.iter().find(|of| of.name == class.name);
            let mean_ns = found.and_then(|of| of.mean_cpu_ns());
            class.share * mean_ns.unwrap_or_else(|| class.mean_ns())
        })
        .sum();
    run.meta.offered_rps * mean_ns / 1e9 / stage.workers as f64
}

impl Lane {
    /// A policy before its first round.
    pub(crate) fn new(name: &str, predicted: &[String]) -> Self {
        Self {
            name: name.to_owned(),
            rounds: Vec::new(),
            predicted: predicted.to_vec(),
            starved: predicted.to_vec(),
        }
    }

    /// Decides which classes starve. A class starves if simulation says so, or if its backlog grew in most rounds at
    /// the expected speed of the machine.
    pub(crate) fn judge(&mut self) {
        self.starved.clone_from(&self.predicted);
        let classes = self.rounds[0].all.run.classes.iter();
        for name in classes.map(|class| &class.name) {
            let fair = self.rounds.iter().filter(|round| !round.slowed());
            let often = 2 * fair
                .clone()
                .filter(|round: &&Round| round.all.run.extras.starved.contains(name))
                .count()
                > fair.count();
            if often && !self.starved.contains(name) {
                self.starved.push(name.clone());
            }
        }
    }

    /// Whether the round counts. Losses of a starving class do not disqualify it: the policy loses them by design.
    fn sound(&self, round: &Round) -> bool {
        round.flaws.is_empty() || !self.starved.is_empty()
    }

    /// Whether the round counts for these requests, of one class or of all.
    pub(crate) fn counts(&self, round: &Round, sample: Sample) -> bool {
        self.sound(round) && (sample.basis == Basis::All || round.quiet(sample.class))
    }

    /// The rounds that do not count, each with its reason.
    pub(crate) fn excluded(&self) -> Vec<Excluded> {
        let rounds = self.rounds.iter().enumerate();
        let flawed = rounds.filter(|(_, round)| !self.sound(round));
        flawed
            .map(|(index, round): (usize, &Round)| Excluded {
                policy: self.name.clone(),
                round: index + 1,
                why: round.flaws.iter().map(ToString::to_string).collect(),
            })
            .collect()
    }

    /// The rounds that count.
    pub(crate) fn valid(&self, sample: Sample) -> impl Iterator<Item = &Round> {
        let rounds = self.rounds.iter();
        rounds.filter(move |round| self.counts(round, sample))
    }

    /// The untouched fraction of the requests of a class, or of all classes, over all rounds that count. `None` where no round counts.
    pub(crate) fn untouched_fraction(&self, class: Option<usize>) -> Option<f64> {
        let sum = |basis: Basis| -> u64 {
            let rounds = self.valid(ALL);
            rounds.map(|round| round.view(basis).measured(class)).sum()
        };
        let all = sum(Basis::All);
        (all > 0).then(|| sum(Basis::Untouched) as f64 / all as f64)
    }

    /// Rounds at whose end the longest class was kept from some worker.
    pub(crate) fn reserving(&self, workers: usize) -> usize {
        let rounds = self.valid(ALL);
        rounds.filter(|round| round.reserved(workers)).count()
    }

    /// The merged histograms of all rounds that count; `None` where no round counts.
    pub(crate) fn recorder(&self, sample: Sample) -> Option<Recorder> {
        let rounds = self.valid(sample);
        let mut recorders = rounds.map(|round| &round.view(sample.basis).recorder);
        let mut merged = recorders.next()?.clone();
        recorders.for_each(|recorder| merged.merge(recorder));
        Some(merged)
    }

    /// All rounds that count, merged into one run.
    pub(crate) fn run(&self, stage: &Stage, sample: Sample) -> Option<Run> {
        let recorder = self.recorder(sample)?;
        let rounds: Vec<&Run> = self.valid(sample).map(|round| &round.all.run).collect();
        let mean = |value: fn(&Run) -> f64| {
            rounds.iter().map(|run| value(run)).sum::<f64>() / rounds.len() as f64
        };
        let mut meta = rounds[0].meta.clone();
        meta.requests = rounds.iter().map(|run| run.meta.requests).sum();
        meta.dropped = rounds.iter().map(|run| run.meta.dropped).sum();
        meta.offered_rps = mean(|run| run.meta.offered_rps);
        meta.achieved_rps = mean(|run| run.meta.achieved_rps);
        meta.load = mean(|run| run.meta.load);
        meta.utilization = mean(|run| run.meta.utilization);
        meta.overloaded = !self.starved.is_empty();
        let mut extras = rounds[0].extras.clone();
        extras.starved.clone_from(&self.starved);
        extras.delivery = Some(delivery(&rounds));
        extras.noise = Some(Noise {
            lost_fraction: stage.noise.lost_fraction,
            gaps_over_10us: stage.noise.gaps_over_10us,
        });
        extras.reservation = self.valid(sample).last().and_then(reservation);
        Some(Run::new(meta, &recorder, extras))
    }
}

fn delivery(rounds: &[&Run]) -> Delivery {
    let parts = rounds.iter().filter_map(|run| run.extras.delivery);
    parts.fold(Delivery::default(), |sum, part| Delivery {
        sent: sum.sent + part.sent,
        answered: sum.answered + part.answered,
        lost: sum.lost + part.lost,
        late: sum.late + part.late,
        duplicates: sum.duplicates + part.duplicates,
        invalid: sum.invalid + part.invalid,
    })
}

/// The plan in force at the end, where the policy follows one with groups.
fn reservation(round: &Round) -> Option<Vec<Reservation>> {
    let classes = round.all.run.classes.iter();
    let names = classes.map(|class| class.name.as_str());
    let names: Vec<&str> = names.chain(["unknown"]).collect();
    let plan = round.stats.plan.as_ref()?;
    let groups = headway_sim::reservation_of(plan, &names);
    (!groups.is_empty()).then_some(groups)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use headway_report::{RunExtras, RunLevel, RunMeta};

    /// A run of `requests` GETs of one latency.
    fn view(latency_ns: u64, requests: u64) -> RunSubset {
        let mut recorder = Recorder::new(&[ClassMeta::new("GET", 1_000.0)]);
        for _ in 0..requests {
            recorder.record(0, latency_ns, 1_000);
        }
        subset(recorder, requests)
    }

    /// A run of these requests.
    pub(crate) fn subset(recorder: Recorder, requests: u64) -> RunSubset {
        let meta = RunMeta {
            policy: String::new(),
            params: serde_json::Map::new(),
            level: RunLevel::Live,
            workload: String::new(),
            workers: 1,
            seed: 1,
            requests,
            offered_rps: 1.0,
            achieved_rps: 1.0,
            load: 0.5,
            utilization: 0.5,
            dropped: 0,
            preemptions: 0,
            overloaded: false,
        };
        RunSubset {
            run: Run::new(meta, &recorder, RunExtras::default()),
            recorder,
        }
    }

    /// A round with these latencies of all GETs and of the untouched ones, and this fraction untouched.
    pub(crate) fn round(all_ns: u64, untouched_ns: u64, fraction: f64) -> Round {
        const REQUESTS: u64 = 1_000;
        let untouched = view(untouched_ns, (fraction * REQUESTS as f64) as u64);
        round_of(
            view(all_ns, REQUESTS),
            untouched,
            Distortion::none(1),
            1.0 - fraction,
        )
    }

    /// A round of these requests.
    pub(crate) fn round_of(
        all: RunSubset,
        untouched: RunSubset,
        distortion: Distortion,
        stopped: f64,
    ) -> Round {
        Round {
            all,
            untouched,
            distortion,
            stopped,
            flaws: Vec::new(),
            load: 0.5,
            planned_load: 0.5,
            stats: Stats::default(),
        }
    }

    /// A round that the machine left alone.
    pub(crate) fn quiet(latency_ns: u64) -> Round {
        round(latency_ns, latency_ns, 1.0)
    }

    pub(crate) fn lane(name: &str, rounds: Vec<Round>) -> Lane {
        let mut lane = Lane::new(name, &[]);
        lane.rounds = rounds;
        lane
    }

    /// A policy that starves a class by simulation.
    pub(crate) fn starving(name: &str, class: &str) -> Lane {
        Lane::new(name, &[class.to_owned()])
    }

    fn grew(load: f64) -> Round {
        let mut round = quiet(1_000);
        round.load = load;
        round.all.run.extras.starved.push("GET".into());
        round
    }

    #[test]
    fn a_class_starves_where_its_backlog_grew_in_most_rounds() {
        let mut lane = lane("some", vec![grew(0.5), quiet(1_000), quiet(1_000)]);
        lane.judge();
        assert_eq!(lane.starved, [""; 0]);
        lane.rounds[1] = grew(0.5);
        lane.judge();
        assert_eq!(lane.starved, ["GET"]);
        // The slow machine caused the backlog, not the policy.
        lane.rounds[1] = grew(0.8);
        lane.rounds[2] = grew(0.8);
        lane.rounds.push(quiet(1_000));
        lane.judge();
        assert_eq!(lane.starved, [""; 0]);
    }

    #[test]
    fn a_round_of_which_the_machine_left_little_alone_counts_with_all_its_requests() {
        let rounds = vec![quiet(1_000), round(9_000, 1_000, 0.05)];
        let lane = lane("some", rounds);
        let untouched = Sample::untouched(Some(0));
        assert_eq!(lane.valid(untouched).count(), 1);
        assert_eq!(lane.valid(ALL).count(), 2);
        assert!(lane.excluded().is_empty());
        let count = |sample: Sample| lane.recorder(sample).unwrap().classes()[0].count();
        assert_eq!((count(untouched), count(ALL)), (1_000, 2_000));
        assert_eq!(lane.untouched_fraction(None), Some(0.525));
    }
}
