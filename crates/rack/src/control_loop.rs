//! The loop of a control plane: it looks when its rules say so, and the thread that scores candidates beside it.

use crate::{RackControl, ScoringTask};
use headway_machine::Clock;
use headway_policy::rack::ControlPlane;
use headway_sync::{Guarded, world};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The pause between a control plane's panic and its successor's start.
const RESTART: Duration = Duration::from_millis(200);

/// A control plane with its clock: one look an interval, and sooner while requests overflow.
pub struct ControlCycle {
    rack: RackControl,
    clock: Clock,
    /// The time of the last look, or of the start.
    last_ns: u64,
}

/// The result of a step of a [`ControlCycle`].
pub enum ControlStep {
    /// No look is due: ask again in this many ns.
    Waits(u64),
    /// The control plane looked. Candidates to score, if the demand has moved.
    Looked(Option<Box<ScoringTask>>),
}

impl ControlCycle {
    /// The first look comes one interval from now.
    #[must_use]
    pub fn new(rack: RackControl, clock: Clock) -> Self {
        let last_ns = clock.now_ns();
        Self {
            rack,
            clock,
            last_ns,
        }
    }

    /// Takes scores that arrived, then looks if a look is due.
    ///
    /// # Panics
    /// When the number of scores differs from the number of candidates.
    pub fn step(&mut self, scores: Option<&[f64]>) -> ControlStep {
        if let Some(scores) = scores {
            self.rack.scored(scores);
        }
        let now_ns = self.clock.now_ns();
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        if !self.rack.is_due(elapsed_ns) {
            let glance_ns = self.rack.control().rules().glance_ns();
            return ControlStep::Waits(glance_ns - elapsed_ns % glance_ns);
        }
        self.last_ns = now_ns;
        ControlStep::Looked(self.rack.look(elapsed_ns).map(Box::new))
    }

    /// The control plane itself: its demand, groups and layout.
    #[must_use]
    pub fn control(&self) -> &ControlPlane {
        self.rack.control()
    }
}

/// Runs a control plane until `stopped`. After a panic the switch keeps forwarding by the last tables. `failed` is called, and 0.2 s later a
/// new control plane resumes from those tables.
pub fn keep_control(
    first: RackControl,
    clock: Clock,
    stopped: &AtomicBool,
    score: impl Fn(&ScoringTask) -> Vec<f64> + Sync,
    mut after_look: impl FnMut(&ControlPlane),
    mut failed: impl FnMut(),
) {
    let (tables, adapting) = first.to_take_up();
    let mut next = Some(first);
    while let Some(rack) = next {
        // A panic leaves only the control plane's own state half changed, and that state is dropped.
        let run = || run_control(rack, clock, stopped, &score, &mut after_look);
        if catch_unwind(AssertUnwindSafe(run)).is_ok() {
            return;
        }
        failed();
        let again_ns = clock.now_ns() + RESTART.as_nanos() as u64;
        while clock.now_ns() < again_ns && !stopped.load(Ordering::Acquire) {
            world::sleep(RESTART / 20);
        }
        next = RackControl::take_up(tables.clone()).map(|rack| rack.adapting(adapting));
    }
}

/// Runs a control plane until `stopped`: it looks every interval. `score` runs in a thread of its own, so that looks continue meanwhile;
/// `after_look` sees the control plane after each look.
pub fn run_control(
    rack: RackControl,
    clock: Clock,
    stopped: &AtomicBool,
    score: impl Fn(&ScoringTask) -> Vec<f64> + Send,
    mut after_look: impl FnMut(&ControlPlane),
) {
    let mut cycle = ControlCycle::new(rack, clock);
    let scoring = ScoringExchange::default();
    thread::scope(|scope| {
        let scorer = &scoring;
        scope.spawn(move || scorer.serve(score));
        let _end = ScoringEnd(&scoring);
        while !stopped.load(Ordering::Acquire) {
            match cycle.step(scoring.next_scores().as_deref()) {
                // The scorer panicked; the scope repeats that panic when it ends.
                ControlStep::Waits(_) if scoring.has_ended() => break,
                // Scores that arrive end the wait early.
                ControlStep::Waits(wait_ns) => scoring.wait(wait_ns),
                ControlStep::Looked(task) => {
                    scoring.give(task);
                    after_look(cycle.control());
                }
            }
        }
    });
}

/// The exchange between a control plane's loop and the thread that scores.
#[derive(Default)]
struct ScoringExchange(Guarded<ScoringState>);

#[derive(Default)]
struct ScoringState {
    tasks: VecDeque<Box<ScoringTask>>,
    scores: VecDeque<Vec<f64>>,
    /// One of the two threads has ended.
    ended: bool,
}

/// Ends the exchange when either thread leaves it, by a panic too.
struct ScoringEnd<'a>(&'a ScoringExchange);

impl Drop for ScoringEnd<'_> {
    fn drop(&mut self) {
        self.0.0.lock().ended = true;
        self.0.0.notify_all();
    }
}

impl ScoringExchange {
    /// The scorer's side: scores each task until the exchange ends.
    fn serve(&self, score: impl Fn(&ScoringTask) -> Vec<f64>) {
        let _end = ScoringEnd(self);
        loop {
            let waits = |state: &mut ScoringState| state.tasks.is_empty() && !state.ended;
            let mut state = self.0.wait_while(self.0.lock(), waits);
            if state.ended {
                return;
            }
            let task = state.tasks.pop_front();
            drop(state);
            let scores = task.iter().map(|task| score(task));
            let scores: Vec<_> = scores.collect();
            self.0.lock().scores.extend(scores);
            self.0.notify_all();
        }
    }

    fn give(&self, task: Option<Box<ScoringTask>>) {
        if task.is_some() {
            self.0.lock().tasks.extend(task);
            self.0.notify_all();
        }
    }

    fn next_scores(&self) -> Option<Vec<f64>> {
        self.0.lock().scores.pop_front()
    }

    fn has_ended(&self) -> bool {
        self.0.lock().ended
    }

    /// Waits for scores, or for so long.
    fn wait(&self, wait_ns: u64) {
        let state = self.0.lock();
        if state.scores.is_empty() && !state.ended {
            drop(self.0.wait_for(state, Duration::from_nanos(wait_ns)));
        }
    }
}
