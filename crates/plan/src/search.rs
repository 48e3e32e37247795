//! Successive halving: fewer candidates and longer runs in each round.

use crate::arrangement::LaidOutCandidate;
use crate::compare::with_best;
use crate::question::{PlanError, PlanProgress, Question};
use crate::ranked::Ranked;
use crate::situations::{Stressed, stressed};
use crate::trial::{SeededTask, try_all};
use headway_policy::server::systems::ServerSpec;
use headway_report::{CompareMethod, PlanComparison, PlanEntry, PlanRound};
use headway_sim::CONFIDENCE;

/// Candidates that reach the last round, besides those kept for comparison.
const FINALISTS: usize = 6;
/// A round keeps one candidate in this number.
const KEPT: usize = 3;
/// The policy that stays in every round as the baseline.
const BASELINE: &str = "c-fcfs";

/// The result of the search: the last round, best first, and all rounds.
pub(crate) struct Search {
    pub(crate) ranked: Vec<Ranked>,
    pub(crate) rounds: Vec<PlanRound>,
    /// The best under more load and longer service times, where that was tried to choose it.
    pub(crate) stressed: Option<Stressed>,
    /// Whether the last round is complete, on whose runs the verdict rests.
    pub(crate) is_decided: bool,
}

/// The length of a round's runs, as a fraction of the last round's, and their number.
struct RoundSize {
    requests: f64,
    replications: u64,
    /// Seed of the first run. Each round has its own seeds, so the runs that led to a choice never confirm it.
    seed: u64,
    /// It keeps one candidate in this number, but as many as the last round holds.
    keeps_one_in: usize,
}

pub(crate) fn search(
    question: &Question,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Search, PlanError> {
    let field = question.entrants()?;
    if field.is_empty() {
        return Err(PlanError::NoCandidates);
    }
    let recording = question.on_the_recording();
    let mut found = Search {
        ranked: Vec::new(),
        rounds: Vec::new(),
        stressed: None,
        is_decided: false,
    };
    let searched = found.narrow(question, recording.as_ref(), field, progress);
    match searched {
        // What the complete rounds have shown stays.
        Err(PlanError::CutOff) if !found.ranked.is_empty() => {}
        searched => searched?,
    }
    Ok(found)
}

/// The rounds before the last one, and the question that they are about. A recording decides in the end, so it decides who gets there: it is played once, as
/// long as a run of the last round.
fn heats<'a>(
    question: &'a Question,
    recording: Option<&'a Question>,
) -> (&'a Question, Vec<RoundSize>) {
    let after_last = question.seed.wrapping_add(question.replications);
    if let Some(recording) = recording {
        let whole = question.requests as f64 / recording.requests.max(1) as f64;
        let heat = RoundSize {
            requests: whole.min(1.0),
            replications: 1,
            seed: after_last,
            keeps_one_in: usize::MAX,
        };
        return (recording, vec![heat]);
    }
    let heats = vec![
        RoundSize {
            requests: 0.125,
            replications: 1,
            seed: after_last,
            keeps_one_in: KEPT,
        },
        RoundSize {
            requests: 0.4,
            replications: 2.min(question.replications),
            seed: after_last.wrapping_add(1),
            keeps_one_in: KEPT,
        },
    ];
    (question, heats)
}

/// Runs all candidates, and ranks them.
fn round(
    question: &Question,
    field: Vec<LaidOutCandidate>,
    effort: &RoundSize,
    stage: &'static str,
    rounds: &mut Vec<PlanRound>,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Vec<Ranked>, PlanError> {
    let requests = ((question.requests as f64 * effort.requests) as u64).max(1);
    let candidates = field.len();
    let tasks = field
        .iter()
        .map(|entrant: &LaidOutCandidate| SeededTask {
            requests,
            replications: effort.replications,
            seed: effort.seed,
            ..question.task(&entrant.server)
        })
        .collect();
    let tried = try_all(question, tasks, stage, progress)?;
    rounds.push(PlanRound {
        candidates,
        requests,
        replications: effort.replications,
    });
    let mut ranked: Vec<Ranked> = field
        .into_iter()
        .zip(tried)
        .map(|(entrant, tried)| Ranked {
            live: (question.live)(&entrant.policy),
            policy: entrant.policy,
            tried,
            recorded: None,
            alike: Vec::new(),
        })
        .collect();
    // The sort is stable: of two equal candidates, the one earlier in the table, the simpler, comes first.
    ranked.sort_by(|a, b| a.badness().total_cmp(&b.badness()));
    Ok(without_twins(ranked, question.policies.is_some()))
}

/// Runs the finalists on the recorded arrivals. Those that meet the SLO there come first, in the order of the ranking, then the others
/// by how much of it they use there.
fn replay(
    recording: &Question,
    ranked: &mut [Ranked],
    progress: &mut impl FnMut(PlanProgress),
) -> Result<(), PlanError> {
    let tasks = ranked
        .iter()
        .map(|one| SeededTask {
            workers: one.tried.task.workers,
            ..recording.task(&one.tried.task.server)
        })
        .collect();
    let tried = try_all(recording, tasks, "replaying", progress)?;
    for (one, tried) in ranked.iter_mut().zip(tried) {
        one.recorded = Some(tried);
    }
    let order = |one: &Ranked| match &one.recorded {
        Some(recorded) if !recorded.all_met() => (1, recorded.used().unwrap_or(f64::INFINITY)),
        _ => (0, one.badness()),
    };
    ranked.sort_by(|a, b| {
        let ((a_misses, a), (b_misses, b)) = (order(a), order(b));
        a_misses.cmp(&b_misses).then(a.total_cmp(&b))
    });
    Ok(())
}

/// Merges candidates with identical results for every request into the first of them, which keeps the
/// others' names. Many parameters make no difference to many workloads. The baseline stays separate, and so do policies of different names
/// that were `asked_for`.
fn without_twins(ranked: Vec<Ranked>, asked_for: bool) -> Vec<Ranked> {
    let mut distinct: Vec<Ranked> = Vec::new();
    for one in ranked {
        let twin = distinct.iter_mut().find(|other| {
            let alike = !asked_for || other.policy.name() == one.policy.name();
            alike && other.tried.is_twin(&one.tried)
        });
        match twin {
            Some(twin) if one.policy.name() != BASELINE => twin.alike.push(one.policy),
            _ => distinct.push(one),
        }
    }
    distinct
}

/// The candidates of the next round: the best `one_in` that many, at least as many as the last round holds, the best live one, the baseline, and of
/// policies that were `asked_for` the best of each name.
fn kept(ranked: &[Ranked], one_in: usize, asked_for: bool) -> Vec<LaidOutCandidate> {
    let names: Vec<&str> = ranked.iter().map(|one| one.policy.name()).collect();
    let first_of_name = |index: usize| !names[..index].contains(&names[index]);
    let firsts: Vec<bool> = (0..names.len()).map(first_of_name).collect();
    let count = ranked.len().div_ceil(one_in).max(FINALISTS);
    let best_live = ranked.iter().position(|one| one.live);
    ranked
        .iter()
        .enumerate()
        .filter(|(index, one): &(usize, &Ranked)| {
            let asked_for = asked_for && firsts[*index];
            *index < count
                || asked_for
                || Some(*index) == best_live
                || one.policy.name() == BASELINE
        })
        .map(|(_, one): (usize, &Ranked)| LaidOutCandidate {
            server: one.tried.task.server.clone(),
            policy: one.policy.clone(),
        })
        .collect()
}

impl Search {
    /// Runs round after round, of which the last that was complete is the ranking.
    fn narrow(
        &mut self,
        question: &Question,
        recording: Option<&Question>,
        mut field: Vec<LaidOutCandidate>,
        progress: &mut impl FnMut(PlanProgress),
    ) -> Result<(), PlanError> {
        let mut alike: Vec<(ServerSpec, ServerSpec)> = Vec::new();
        let (screened, heats) = heats(question, recording);
        for heat in heats {
            if field.len() <= FINALISTS {
                break;
            }
            let rounds = &mut self.rounds;
            self.ranked = round(screened, field, &heat, "screening", rounds, progress)?;
            for one in &self.ranked {
                let pairs = one
                    .alike
                    .iter()
                    .map(|other| (one.policy.clone(), other.clone()));
                alike.extend(pairs);
            }
            field = kept(&self.ranked, heat.keeps_one_in, question.policies.is_some());
        }
        let last = RoundSize {
            requests: 1.0,
            replications: question.replications,
            seed: question.seed,
            keeps_one_in: 1,
        };
        let rounds = &mut self.rounds;
        let mut ranked = round(question, field, &last, "comparing", rounds, progress)?;
        for one in &mut ranked {
            let before = alike.iter().filter(|(kept, _)| *kept == one.policy);
            one.alike.extend(before.map(|(_, other)| other.clone()));
        }
        if let Some(recording) = recording {
            replay(recording, &mut ranked, progress)?;
        }
        (self.ranked, self.is_decided) = (ranked, true);
        self.settle_ties(question, progress)
    }

    pub(crate) fn best(&self) -> &Ranked {
        &self.ranked[0]
    }

    /// The best candidate that the live server runs and that has a key.
    pub(crate) fn best_live(&self) -> Option<&Ranked> {
        self.ranked
            .iter()
            .find(|one| one.live && one.tried.used().is_some())
    }

    pub(crate) fn baseline(&self) -> Option<&Ranked> {
        self.ranked.iter().find(|one| one.policy.name() == BASELINE)
    }

    /// Of what ties with the best, and meets the SLO or misses it as the best does, puts first what bears more load and longer service times.
    fn settle_ties(
        &mut self,
        question: &Question,
        progress: &mut impl FnMut(PlanProgress),
    ) -> Result<(), PlanError> {
        let uses: Vec<_> = self.ranked.iter().map(|one| one.tried.uses()).collect();
        let of_best = with_best(&uses, 0, CONFIDENCE).of_best;
        let best_meets = self.best().deciding().all_met();
        let ties = |index: &usize| {
            let ratio = of_best[*index].as_ref();
            let tied = ratio.is_some_and(|ratio| !ratio.distinguishable_from(1.0));
            tied && self.ranked[*index].deciding().all_met() == best_meets
        };
        let tied: Vec<usize> = (0..self.ranked.len())
            .filter(|index| *index == 0 || ties(index))
            .collect();
        if tied.len() < 2 {
            return Ok(());
        }
        let candidates: Vec<&Ranked> = tied.iter().map(|index| &self.ranked[*index]).collect();
        let stressed = stressed(question, &candidates, progress)?;
        if stressed.is_empty() {
            return Ok(());
        }
        let mut order: Vec<(usize, Stressed)> = tied.iter().copied().zip(stressed).collect();
        order.sort_by(|(_, a), (_, b)| {
            let ((a_missed, a_use), (b_missed, b_use)) = (a.rank(), b.rank());
            a_missed.cmp(&b_missed).then(a_use.total_cmp(&b_use))
        });
        let mut ranked: Vec<Option<Ranked>> = self.ranked.drain(..).map(Some).collect();
        let mut places = tied.into_iter();
        let mut settled: Vec<Option<Ranked>> = (0..ranked.len()).map(|_| None).collect();
        for (index, stressed) in order {
            let place = places.next().expect("a place for each");
            settled[place] = ranked[index].take();
            self.stressed.get_or_insert(stressed);
        }
        let rest = settled.into_iter().zip(ranked);
        self.ranked = rest
            .filter_map(|(settled, other)| settled.or(other))
            .collect();
        Ok(())
    }

    /// The ranking, and how its candidates were compared.
    pub(crate) fn entries(&self) -> (Vec<PlanEntry>, PlanComparison) {
        let uses: Vec<_> = self.ranked.iter().map(|one| one.tried.uses()).collect();
        let compared = with_best(&uses, 0, CONFIDENCE);
        let entries = self.ranked.iter().zip(compared.of_best);
        let comparison = PlanComparison {
            method: CompareMethod::Bonferroni,
            confidence: CONFIDENCE,
            pairs: compared.pairs,
        };
        let entries = entries.map(|(one, of_best)| one.entry(of_best)).collect();
        (entries, comparison)
    }
}
