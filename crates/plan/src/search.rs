//! Successive halving: fewer candidates and longer runs in each round.

use crate::candidates::{Candidate, candidates, candidates_of};
use crate::compare::with_best;
use crate::question::{PlanError, PlanProgress, Question};
use crate::trial::{SeededTask, Tried, try_all};
use headway_policy::server::systems::ServerSpec;
use headway_report::stats::ConfidenceInterval;
use headway_report::{CompareMethod, PlanComparison, PlanEntry, PlanRound};
use headway_sim::CONFIDENCE;

/// Candidates that reach the last round, besides those kept for comparison.
const FINALISTS: usize = 6;
/// A round keeps one candidate in this number.
const KEPT: usize = 3;
/// The policy that stays in every round as the baseline.
const BASELINE: &str = "c-fcfs";

/// A candidate with its last replications.
pub(crate) struct Ranked {
    pub(crate) policy: ServerSpec,
    pub(crate) tried: Tried,
    /// The run on the recorded arrivals, where there are any.
    pub(crate) recorded: Option<Tried>,
    pub(crate) live: bool,
    /// Candidates under which every request fared the same.
    alike: Vec<ServerSpec>,
}

/// The result of the search: the last round, best first, and all rounds.
pub(crate) struct Search {
    pub(crate) ranked: Vec<Ranked>,
    pub(crate) rounds: Vec<PlanRound>,
}

/// The length of a round's runs, as a fraction of the last round's, and their number.
struct RoundSize {
    requests: f64,
    replications: u64,
    /// Seed of the first run. Each round has its own seeds, so the runs that led to a choice never confirm it.
    seed: u64,
}

pub(crate) fn search(
    question: &Question,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Search, PlanError> {
    let mut field = match &question.policies {
        Some(given) => candidates_of(given, &question.workload, &question.shape())?,
        None => candidates(&question.workload, &question.shape())?,
    };
    if field.is_empty() {
        return Err(PlanError::NoCandidates);
    }
    let after_last = question.seed.wrapping_add(question.replications);
    let heats = [
        RoundSize {
            requests: 0.125,
            replications: 1,
            seed: after_last,
        },
        RoundSize {
            requests: 0.4,
            replications: 2.min(question.replications),
            seed: after_last.wrapping_add(1),
        },
    ];
    let mut rounds = Vec::new();
    let mut alike: Vec<(ServerSpec, ServerSpec)> = Vec::new();
    for heat in heats {
        if field.len() <= FINALISTS {
            break;
        }
        let ranked = round(question, field, &heat, "screening", &mut rounds, progress)?;
        for one in &ranked {
            let pairs = one
                .alike
                .iter()
                .map(|other| (one.policy.clone(), other.clone()));
            alike.extend(pairs);
        }
        field = kept(ranked, question.policies.is_some());
    }
    let last = RoundSize {
        requests: 1.0,
        replications: question.replications,
        seed: question.seed,
    };
    let mut ranked = round(question, field, &last, "comparing", &mut rounds, progress)?;
    for one in &mut ranked {
        let before = alike.iter().filter(|(kept, _)| *kept == one.policy);
        one.alike.extend(before.map(|(_, other)| other.clone()));
    }
    if let Some(recording) = question.on_the_recording() {
        replay(&recording, &mut ranked, progress)?;
    }
    Ok(Search { ranked, rounds })
}

/// Runs all candidates, and ranks them.
fn round(
    question: &Question,
    field: Vec<Candidate>,
    effort: &RoundSize,
    stage: &'static str,
    rounds: &mut Vec<PlanRound>,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Vec<Ranked>, PlanError> {
    let requests = ((question.requests as f64 * effort.requests) as u64).max(1);
    rounds.push(PlanRound {
        candidates: field.len(),
        requests,
        replications: effort.replications,
    });
    let tasks = field
        .iter()
        .map(|candidate: &Candidate| SeededTask {
            policy: candidate.simulated.clone(),
            workload: question.workload.clone(),
            workers: question.workers_of(&candidate.policy),
            offered: question.offered,
            requests,
            replications: effort.replications,
            seed: effort.seed,
        })
        .collect();
    let tried = try_all(question, tasks, stage, progress)?;
    let mut ranked: Vec<Ranked> = field
        .into_iter()
        .zip(tried)
        .map(|(candidate, tried)| Ranked {
            live: (question.live)(&candidate.policy),
            policy: candidate.policy,
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
            ..recording.task(&one.tried.task.policy)
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

/// The candidates of the next round: the best third, at least as many as the last round holds, the best live one, the baseline, and of
/// policies that were `asked_for` the best of each name.
fn kept(ranked: Vec<Ranked>, asked_for: bool) -> Vec<Candidate> {
    let names: Vec<&str> = ranked.iter().map(|one| one.policy.name()).collect();
    let first_of_name = |index: usize| !names[..index].contains(&names[index]);
    let firsts: Vec<bool> = (0..names.len()).map(first_of_name).collect();
    let count = ranked.len().div_ceil(KEPT).max(FINALISTS);
    let best_live = ranked.iter().position(|one| one.live);
    ranked
        .into_iter()
        .enumerate()
        .filter(|(index, one): &(usize, Ranked)| {
            let asked_for = asked_for && firsts[*index];
            *index < count
                || asked_for
                || Some(*index) == best_live
                || one.policy.name() == BASELINE
        })
        .map(|(_, one): (usize, Ranked)| Candidate {
            simulated: one.tried.task.policy,
            policy: one.policy,
        })
        .collect()
}

impl Ranked {
    /// The key of the ranking: the largest ratio of value to bound; infinite where a replication has none.
    fn badness(&self) -> f64 {
        self.tried.used().unwrap_or(f64::INFINITY)
    }

    /// The runs that decide: those on the recording, where there is one.
    pub(crate) fn deciding(&self) -> &Tried {
        self.recorded.as_ref().unwrap_or(&self.tried)
    }

    fn entry(&self, of_best: Option<ConfidenceInterval>) -> PlanEntry {
        PlanEntry {
            policy: self.policy.to_string(),
            params: self.tried.replications[0].run.meta.params.clone(),
            workers: self.tried.task.workers,
            cores: self.tried.task.workers + self.policy.facts().cores_beside_workers(),
            live: self.live,
            lost_fraction: self.tried.lost(),
            met: self.tried.met(),
            replications: self.tried.task.replications,
            overloaded: self.tried.overloaded(),
            slo_use: self.tried.interval(),
            tightest: self.tried.tightest(),
            replay: self
                .recorded
                .as_ref()
                .map(|tried| tried.report(&self.policy)),
            alike: self.alike.iter().map(ServerSpec::to_string).collect(),
            tied: of_best.is_some_and(|ratio| !ratio.distinguishable_from(1.0)),
            of_best,
        }
    }
}

impl Search {
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
