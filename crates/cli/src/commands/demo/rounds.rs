//! The rounds: every policy once in each, with the same requests, in rotating order.

use crate::commands::demo::interrupt::Interrupt;
use crate::commands::demo::live::{self, Offer, Round};
use crate::commands::demo::objection::Objection;
use crate::commands::demo::rate::Starved;
use crate::commands::demo::stage::Stage;
use anyhow::Result;
use headway_policy::spec::Spec;
use headway_report::{Delivery, Noise, Recorder, Reservation, Run};
use indicatif::ProgressBar;
use serde::Serialize;
use std::time::Instant;

/// A policy and its rounds.
pub(crate) struct Lane {
    /// As the user wrote it, without the window that was added.
    pub(crate) name: String,
    pub(crate) rounds: Vec<Round>,
    /// Classes that it leaves behind at this load, by simulation or in most rounds.
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

/// A policy that takes part.
pub(crate) struct Entrant {
    pub(crate) name: String,
    pub(crate) policy: Spec,
}

/// Plays all rounds.
pub(crate) fn play(
    stage: &mut Stage,
    entrants: &[Entrant],
    offer: &Offer,
    rounds: u64,
    bar: &ProgressBar,
    interrupt: &Interrupt,
) -> Result<Vec<Lane>> {
    let mut lanes: Vec<Lane> = entrants.iter().map(Lane::of).collect();
    for round in 0..rounds {
        stage.watch_noise()?;
        let of_round = Offer {
            seed: offer.seed + round,
            ..*offer
        };
        for turn in 0..lanes.len() {
            // So that no policy always follows the same one.
            let index = (turn + round as usize) % lanes.len();
            bar.set_message(format!(
                "round {} of {rounds}: {}",
                round + 1,
                entrants[index].name
            ));
            let policy = &entrants[index].policy;
            let played = live::play(stage, policy, &of_round, interrupt)?;
            lanes[index].rounds.push(played);
            bar.inc(1);
        }
    }
    Ok(lanes)
}

/// Repeats runs that do not count, as long as there is time until `end`. What is repeated depends on the client's and the
/// machine's conduct alone, never on a latency. Returns how many there were.
pub(crate) fn repeat(
    stage: &Stage,
    lanes: &mut [Lane],
    entrants: &[Entrant],
    offer: &Offer,
    end: Instant,
    interrupt: &Interrupt,
) -> Result<u64> {
    let mut repeated = 0;
    for (lane, entrant) in lanes.iter_mut().zip(entrants) {
        for index in 0..lane.rounds.len() {
            if Instant::now() + offer.duration > end || lane.counts(&lane.rounds[index]) {
                continue;
            }
            let offer = Offer {
                seed: offer.seed + index as u64,
                ..*offer
            };
            lane.rounds[index] = live::play(stage, &entrant.policy, &offer, interrupt)?;
            repeated += 1;
        }
    }
    Ok(repeated)
}

impl Lane {
    fn of(entrant: &Entrant) -> Self {
        Self {
            name: entrant.name.clone(),
            rounds: Vec::new(),
            starved: Vec::new(),
        }
    }

    /// Settles which classes starve: those that simulation says do, and those whose backlog grew in most of
    /// the undisturbed rounds.
    pub(crate) fn judge(&mut self, predicted: &[Starved]) {
        let predicted = predicted
            .iter()
            .filter(|starved| starved.policy == self.name);
        self.starved = predicted
            .flat_map(|starved| starved.classes.clone())
            .collect();
        let names = self.rounds[0].run.classes.iter().map(|class| &class.name);
        for name in names {
            let grew = |round: &&Round| round.run.extras.starved.contains(name);
            let quiet = self.rounds.iter().filter(|round| !round.disturbed());
            let often = 2 * quiet.clone().filter(grew).count() > quiet.count();
            if often && !self.starved.contains(name) {
                self.starved.push(name.clone());
            }
        }
    }

    /// Whether the round counts. Where a class starves its requests get lost by design, and the rest is shown.
    pub(crate) fn counts(&self, round: &Round) -> bool {
        round.objections.is_empty() || (!self.starved.is_empty() && !round.disturbed())
    }

    /// Whether the round counts, or would if the machine had not delayed it.
    pub(crate) fn may_count(&self, round: &Round) -> bool {
        self.counts(round) || round.objections.iter().all(Objection::only_delays)
    }

    /// The rounds that do not, and why.
    pub(crate) fn excluded(&self) -> Vec<Excluded> {
        let rounds = self.rounds.iter().enumerate();
        let flawed = rounds.filter(|(_, round)| !self.counts(round));
        let excluded = |(index, round): (usize, &Round)| Excluded {
            policy: self.name.clone(),
            round: index + 1,
            why: round.objections.iter().map(ToString::to_string).collect(),
        };
        flawed.map(excluded).collect()
    }

    /// The rounds that count.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(|round| self.counts(round))
    }

    /// Rounds at whose end the longest class was kept from some worker.
    pub(crate) fn reserving(&self, workers: usize) -> usize {
        self.valid().filter(|round| round.reserved(workers)).count()
    }

    /// Histograms of all rounds that count, as one; none where no round does.
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        let mut rounds = self.valid();
        let mut merged = rounds.next()?.recorder.clone();
        rounds.for_each(|round| merged.merge(&round.recorder));
        Some(merged)
    }

    /// All rounds that count, as one run.
    pub(crate) fn run(&self, stage: &Stage) -> Option<Run> {
        let recorder = self.recorder()?;
        let rounds: Vec<&Round> = self.valid().collect();
        let mean = |value: fn(&Run) -> f64| {
            rounds.iter().map(|round| value(&round.run)).sum::<f64>() / rounds.len() as f64
        };
        let last = rounds.last()?;
        let mut meta = rounds[0].run.meta.clone();
        meta.requests = rounds.iter().map(|round| round.run.meta.requests).sum();
        meta.dropped = rounds.iter().map(|round| round.run.meta.dropped).sum();
        meta.offered_rps = mean(|run| run.meta.offered_rps);
        meta.achieved_rps = mean(|run| run.meta.achieved_rps);
        meta.load = mean(|run| run.meta.load);
        meta.utilization = mean(|run| run.meta.utilization);
        meta.overloaded = !self.starved.is_empty();
        let mut extras = last.run.extras.clone();
        extras.starved.clone_from(&self.starved);
        extras.delivery = Some(delivery(&rounds));
        extras.noise = Some(Noise {
            lost_fraction: stage.noise.lost_fraction,
            gaps_over_10us: stage.noise.gaps_over_10us,
        });
        extras.reservation = reservation(last);
        Some(Run::new(meta, &recorder, extras))
    }
}

fn delivery(rounds: &[&Round]) -> Delivery {
    let parts = rounds.iter().filter_map(|round| round.run.extras.delivery);
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
    let plan = round.stats.plan.as_ref()?;
    let names: Vec<&String> = round.run.classes.iter().map(|class| &class.name).collect();
    let group = |group: &headway_policy::Group| {
        let class = headway_policy::ClassId(group.classes.first()? as u16);
        let name = |class: usize| {
            names
                .get(class)
                .map_or("unknown".to_owned(), |&name| name.clone())
        };
        Some(Reservation {
            classes: group.classes.iter().map(name).collect(),
            reserved: plan.reserved(class).iter().collect(),
            stealable: plan.stealable(class).iter().collect(),
        })
    };
    let groups: Vec<Reservation> = plan.groups.iter().filter_map(group).collect();
    (!groups.is_empty()).then_some(groups)
}
