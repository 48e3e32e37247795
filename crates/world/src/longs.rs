//! What SYNERGY promises of longs: they are interrupted for what waits at their worker, and leave buffers to shorts.

use std::ops::Range;

use crate::network::{Datagram, Fate, HandlerRun};
use crate::play::WorldOutcome;
use crate::scenario::Scenario;

/// The longest quantum until a worker's first short has ended, as its owner orders it, ns.
const FIRST_QUANTUM_NS: u64 = 30_000;

/// Quanta are so many times the shorts' service.
const FACTOR: u64 = 2;

/// What wakes, switches and readings of clocks may add to a quantum, ns.
const WAKES_NS: u64 = 50_000;

/// From a worker's poll to the first instruction of the request that it chose, at most, ns: a batch of refusals leaves in between.
const CHOICE_NS: u64 = 30_000;

/// A worker takes in, or refuses, so many requests at once; what waits beyond them waits for the next time.
const BATCH: usize = 64;

/// Of so many buffers one is kept from longs.
const KEPT_FROM_LONGS: usize = 4;

/// What must hold of longs.
pub(crate) fn longs_give_way(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    faults: &mut Vec<String>,
) {
    if scenario.policy.to_string() != "synergy" || scenario.crash.is_some() {
        return;
    }
    let longs = WorldLongs { scenario, outcome };
    longs.are_interrupted(faults);
    longs.wait_for_what_came(faults);
    longs.leave_buffers(faults);
}

/// A world in which some requests are long.
struct WorldLongs<'a> {
    scenario: &'a Scenario,
    outcome: &'a WorldOutcome,
}

impl WorldLongs<'_> {
    fn deliveries(&self) -> impl Iterator<Item = (&Fate, &Datagram)> {
        self.outcome.log.fates.iter().zip(&self.scenario.datagrams)
    }

    /// Whether hints say that the class is long: its mean is ten times the shortest's.
    fn is_long(&self, class: u8) -> bool {
        let [short_ns, long_ns] = self.scenario.means_ns;
        class == 1 && long_ns >= 10 * short_ns
    }

    fn came_ns(&self, datagram: &Datagram) -> u64 {
        self.outcome.start_ns + datagram.at_ns
    }

    /// The thread whose receive queue the request comes to.
    fn thread_of(&self, datagram: &Datagram) -> Option<usize> {
        let workers = &self.outcome.past.workers;
        let worker = datagram.delivery as usize % self.scenario.workers;
        workers.get(worker).copied()
    }

    /// For how long a request that has said that it is long may run on beside one that waits at its worker, ns: the rest of a quantum, one more
    /// by a look that found nothing, and the next look.
    fn most_ns(&self) -> u64 {
        let shorts = self.deliveries().filter_map(|(fate, datagram)| {
            let is_sample = fate.said_long.is_some_and(|said| said.begun == 0);
            let took_ns = fate.answered_ns.first()? - fate.begun_ns.first()?;
            (is_sample && !self.is_long(datagram.class)).then_some(took_ns)
        });
        let quantum_ns = shorts.max().unwrap_or(0) * FACTOR;
        let quantum_ns = quantum_ns.max(FIRST_QUANTUM_NS);
        let look_ns = self.scenario.look_ns.unwrap_or(0);
        2 * quantum_ns + look_ns + self.scenario.probe_gap_ns + WAKES_NS
    }

    /// When the request surely waits at its worker, ns: until the worker, or a thief, takes it. Where there is no thief, until it begins.
    fn waits(&self, fate: &Fate, datagram: &Datagram) -> Range<u64> {
        let until_ns = match fate.taken_ns {
            None => self.outcome.ended_ns,
            Some(taken_ns) if self.scenario.workers > 1 => taken_ns,
            Some(taken_ns) => fate.begun_ns.first().copied().unwrap_or(taken_ns),
        };
        self.came_ns(datagram)..until_ns
    }

    /// A request that has said that it is long does not run on for longer than stated beside one that waits at its worker.
    fn are_interrupted(&self, faults: &mut Vec<String>) {
        if !self.scenario.probes {
            return;
        }
        let most_ns = self.most_ns();
        let turns = heard_turns(&self.outcome.log.runs);
        let turns = turns
            .iter()
            .filter(|turn| turn.to_ns - turn.from_ns > most_ns);
        for turn in turns {
            for (fate, datagram) in self.deliveries().filter(|(fate, _)| !fate.dropped) {
                let is_here = self.thread_of(datagram) == Some(turn.thread);
                if !is_here || datagram.delivery == turn.delivery {
                    continue;
                }
                let waits = self.waits(fate, datagram);
                let within = turn.from_ns.max(waits.start)..turn.to_ns.min(waits.end);
                let ran_ns = within.end.saturating_sub(within.start);
                if ran_ns > most_ns && !self.outcome.past.stalled(&within) {
                    faults.push(format!(
                        "datagram {} waited while {}, which says that it is long, ran on for {ran_ns} ns from {}, more than {most_ns} ns: {fate:?}",
                        datagram.delivery, turn.delivery, within.start
                    ));
                }
            }
        }
    }

    /// Before a worker resumes an interrupted request it takes in, or refuses, what came to its receive queue.
    fn wait_for_what_came(&self, faults: &mut Vec<String>) {
        let runs = &self.outcome.log.runs;
        for thread in &self.outcome.past.workers {
            let own: Vec<&HandlerRun> = runs.iter().filter(|run| run.thread == *thread).collect();
            for pair in own.windows(2) {
                let run = pair[1];
                let begun_ns = self.outcome.log.fates[run.delivery as usize].begun_ns[0];
                let resumes = pair[0].delivery != run.delivery && begun_ns < pair[0].from_ns;
                let choice = run.from_ns.saturating_sub(CHOICE_NS)..run.from_ns;
                if !resumes
                    || run.from_ns > self.outcome.stop_ns
                    || self.outcome.past.stalled(&choice)
                {
                    continue;
                }
                let waiting = self.deliveries().filter(|(fate, datagram)| {
                    let is_here = self.thread_of(datagram) == Some(*thread) && !fate.dropped;
                    let is_left = fate.taken_ns.is_none_or(|taken_ns| taken_ns > choice.start);
                    is_here && is_left && self.came_ns(datagram) < choice.start
                });
                let waiting: Vec<_> = waiting.collect();
                let left = waiting
                    .iter()
                    .find(|(fate, _)| fate.taken_ns.is_none_or(|taken_ns| taken_ns > run.from_ns));
                if let Some((fate, datagram)) = left.filter(|_| waiting.len() < BATCH) {
                    faults.push(format!(
                        "{} went on at {} ns while datagram {} was left at the receive queue since {} ns: {fate:?}",
                        run.delivery,
                        run.from_ns,
                        datagram.delivery,
                        self.came_ns(datagram)
                    ));
                }
            }
        }
    }

    /// A short is not refused while longs hold the buffers that are kept from them. Buffers of several workers change hands, so this holds of a single one.
    /// Where handlers have long parts, most requests of the short class say that they are long, and the policy may count the class among the longs.
    fn leave_buffers(&self, faults: &mut Vec<String>) {
        let holds = self.scenario.workers == 1 && !self.scenario.sections;
        let Some(slots) = self.scenario.slots.filter(|_| holds) else {
            return;
        };
        let kept = (slots / KEPT_FROM_LONGS).saturating_sub(1);
        for (fate, datagram) in self.deliveries() {
            let is_shed = !fate.refused_ns.is_empty() && !fate.turned_away;
            let (true, 0, Some(at_ns)) = (is_shed, datagram.class, fate.taken_ns) else {
                continue;
            };
            let held = self.deliveries().filter(|(other, of)| {
                let is_in = other.taken_ns.is_some_and(|taken_ns| taken_ns < at_ns);
                let mut left = other.answered_ns.iter().chain(&other.refused_ns);
                is_in && !self.is_long(of.class) && left.all(|left_ns| *left_ns >= at_ns)
            });
            let held = held.count();
            if held < kept {
                faults.push(format!(
                    "datagram {} of class short was refused while {held} shorts held buffers, and {kept} are kept for them: {fate:?}",
                    datagram.delivery
                ));
            }
        }
    }
}

/// Runs of requests that have said that they are long, those between two suspensions as one.
fn heard_turns(runs: &[HandlerRun]) -> Vec<HandlerRun> {
    let mut turns: Vec<HandlerRun> = Vec::new();
    for run in runs {
        let last = turns
            .iter_mut()
            .rev()
            .find(|turn| turn.thread == run.thread);
        match last {
            Some(turn)
                if (turn.delivery, turn.suspensions, turn.is_heard)
                    == (run.delivery, run.suspensions, run.is_heard) =>
            {
                turn.to_ns = run.to_ns;
            }
            _ => turns.push(*run),
        }
    }
    turns.retain(|turn| turn.is_heard);
    turns
}
