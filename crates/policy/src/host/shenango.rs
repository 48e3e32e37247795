//! Shenango's allocator (§ 4.1): a core more for whoever is congested, every 5 µs; a core less for whoever
//! finds nothing to do, at once.
//!
//! What the paper's listings leave to its text, and how it is settled here:
//! - an application below its guarantee may take a core from one that bursts (Algorithm 2); at or above it, from a batch
//!   application that bursts, which is there for the cycles that are left (§ 7), but from no other that serves requests, unless it has none at all;
//! - who serves requests and has no core takes one at once from a batch application, or from who keeps another. Whoever has
//!   but one core loses it only where the other had none at two looks in a row, as Algorithm 1 defines congestion: so
//!   nobody starves, and two without guarantees do not trade a core at each request;
//! - who was congested and got nothing, or lost a core, is *wanting*: it gets the next core
//!   given back before the next look, first if it ran on that core or on its sibling;
//! - who does not leave within a bound of our own is moved to a core that all such share (§ 4.1.3 names no bound).

use super::congestion::Congestion;
use super::evictions::Evictions;
use super::selection::{Taking, select};
use super::{Allocator, AppId, AppShape, CoreId, Cores, HeldCore, HostShape, HostView, Move};
use crate::{BitSet, Rng};
use alloc::collections::VecDeque;

/// Parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShenangoRules {
    /// Between two looks, ns, above 0; the paper's is 5 µs.
    pub interval_ns: u64,
    /// How long a kthread may take to leave before it is moved away, ns. The paper names no bound.
    pub evict_ns: u64,
}

impl Default for ShenangoRules {
    fn default() -> Self {
        Self {
            interval_ns: 5_000,
            evict_ns: 100_000,
        }
    }
}

/// Shenango's allocator.
pub struct Shenango {
    rules: ShenangoRules,
    cores: Cores,
    congestion: Congestion,
    /// Applications that could use one more core.
    wanting: BitSet,
    /// Those of the wanting that had no core at the last look.
    starved: BitSet,
    /// Who of the wanting was served last: the next comes first.
    served: usize,
    next_look_ns: u64,
    evictions: Evictions,
    moves: VecDeque<Move>,
    rng: Rng,
}

impl Shenango {
    /// All cores idle; the first look is one interval after time 0.
    ///
    /// # Panics
    /// When the shape does not pass its check, or the interval is 0.
    #[must_use]
    pub fn new(shape: &HostShape, rules: ShenangoRules) -> Self {
        assert!(
            rules.interval_ns > 0,
            "an allocator cannot look all the time"
        );
        Self {
            rules,
            cores: Cores::new(shape),
            congestion: Congestion::new(shape),
            wanting: BitSet::EMPTY,
            starved: BitSet::EMPTY,
            served: 0,
            next_look_ns: rules.interval_ns,
            evictions: Evictions::new(shape.topology.cores(), shape.apps.len(), rules.evict_ns),
            moves: VecDeque::with_capacity(shape.topology.cores() + shape.apps.len()),
            rng: Rng::new(shape.seed),
        }
    }

    /// Those of the wanting that have no core, and none promised.
    fn without_core(&self) -> BitSet {
        self.wanting
            .iter()
            .filter(|&app: &usize| self.cores.held(AppId(app as u16)) == 0)
            .collect()
    }

    /// What the application may take from others; `starves`: it had no core at two looks.
    fn taking(&self, app: AppId, starves: bool) -> Taking {
        let held = self.cores.held(app);
        if held < self.cores.shape(app).guaranteed {
            Taking::Burst
        } else if self.cores.is_batch(app) {
            Taking::Nothing
        } else if held > 0 {
            Taking::Batch
        } else if starves {
            Taking::Burst
        } else {
            Taking::Spare
        }
    }

    /// One more core for an application: an idle one, or one that it may take.
    fn add_core(&mut self, now_ns: u64, app: AppId, taking: Taking) {
        if !self.cores.has_room(app) {
            return;
        }
        let Some(core) = select(&self.cores, app, taking, &mut self.rng) else {
            self.wanting.insert(app.index());
            return;
        };
        if self.cores.idle().contains(core.index()) {
            self.give(core, app);
            return;
        }
        let victim = self.cores.tenant(core).map(|tenant| tenant.app);
        if let Some(victim) = victim
            && let Some(revoke) = self.cores.revoke(core, Some(app))
        {
            self.moves.push_back(revoke);
            self.evictions.told(core, victim, now_ns);
            self.wanting.remove(app.index());
            self.wanting.insert(victim.index());
        }
    }

    fn give(&mut self, core: CoreId, app: AppId) {
        if let Some(grant) = self.cores.grant(core, app) {
            self.moves.push_back(grant);
            self.wanting.remove(app.index());
            self.served = app.index();
        }
    }

    /// Who gets a core that was just given back: who used it, who is on its sibling, or the next in turn.
    fn heir(&self, core: CoreId, last: AppId) -> Option<AppId> {
        let wants = |app: &AppId| self.wanting.contains(app.index()) && self.cores.has_room(*app);
        let beside = self
            .cores
            .topology()
            .sibling(core)
            .and_then(|sibling| self.cores.tenant(sibling))
            .map(|tenant| tenant.app);
        Some(last)
            .filter(wants)
            .or_else(|| beside.filter(wants))
            .or_else(|| self.in_turn().find(wants))
    }

    /// Everybody once, who comes after the one served last first.
    fn in_turn(&self) -> impl Iterator<Item = AppId> + use<> {
        let (apps, served) = (self.cores.apps(), self.served);
        (1..=apps).map(move |offset| AppId(((served + offset) % apps) as u16))
    }
}

impl Allocator for Shenango {
    const PARKS: bool = true;

    fn admit(&mut self, _now_ns: u64, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.cores.admit(app, shape, holding);
        self.congestion.forget(app, shape.most);
        self.evictions.forget(app);
        if !holding.is_empty() {
            // The arbiter is new and the application is not.
            let holds = |kthread| {
                holding
                    .iter()
                    .any(|held: &HeldCore| held.kthread == kthread)
            };
            self.congestion.doubt(app, holds);
        }
    }

    /// Who was promised its cores has them; the others go to who wants one.
    fn retire(&mut self, _now_ns: u64, app: AppId) {
        self.moves.retain(|decision: &Move| decision.app() != app);
        self.wanting.remove(app.index());
        self.starved.remove(app.index());
        let active = *self.cores.active(app);
        for core in active.iter().map(|core| CoreId(core as u16)) {
            self.evictions.left(core, app);
            if let Some(successor) = self.cores.release(core).successor {
                let grant = self.cores.keep_promise(core, successor);
                self.moves.push_back(grant);
            }
        }
        self.cores.vacate(app);
        self.congestion.forget(app, 0);
        for core in active.iter().map(|core| CoreId(core as u16)) {
            if self.cores.idle().contains(core.index())
                && let Some(heir) = self.heir(core, app)
            {
                self.give(core, heir);
            }
        }
    }

    /// An application without a core is not looked at until the next interval: it gets one at once
    /// (§ 4.1.1).
    fn arrived(&mut self, now_ns: u64, app: AppId) {
        if self.cores.held(app) == 0 {
            self.add_core(now_ns, app, self.taking(app, false));
        }
    }

    fn released(&mut self, _now_ns: u64, core: CoreId) {
        let released = self.cores.release(core);
        let last = released.from.app;
        self.evictions.left(core, last);
        if released.forced {
            self.congestion.stranded(last, released.from.kthread);
        } else {
            self.wanting.remove(last.index());
        }
        if let Some(successor) = released.successor {
            let grant = self.cores.keep_promise(core, successor);
            self.moves.push_back(grant);
        } else if let Some(heir) = self.heir(core, last) {
            self.give(core, heir);
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        Some(self.next_look_ns)
    }

    /// First those below their guarantees and those without a core, then those that would burst.
    fn look<V: HostView>(&mut self, now_ns: u64, view: &V) {
        // The first look of an arbiter comes at whatever time its clock says.
        let late_ns = now_ns.saturating_sub(self.next_look_ns);
        self.next_look_ns += (late_ns / self.rules.interval_ns + 1) * self.rules.interval_ns;
        self.evictions.due(now_ns, &self.cores, &mut self.moves);
        let starved = self.without_core();
        let starved_before = core::mem::replace(&mut self.starved, starved);
        for app in self.cores.ids() {
            // Nobody looks at the queues of kthreads without cores: who has none goes on wanting.
            let is_starved = starved.contains(app.index());
            let active = self.cores.active_kthreads(app);
            let wants = self.congestion.look(app, active, view) || is_starved;
            self.cores.set_interrupted(app, &view.interrupted(app));
            self.wanting.set(app.index(), wants);
            let starves = is_starved && starved_before.contains(app.index());
            let taking = self.taking(app, starves);
            if wants && !matches!(taking, Taking::Nothing | Taking::Batch) {
                self.add_core(now_ns, app, taking);
            }
        }
        for app in self.in_turn() {
            if self.wanting.contains(app.index()) {
                self.add_core(now_ns, app, self.taking(app, false));
            }
        }
    }

    fn poll(&mut self) -> Option<Move> {
        self.moves.pop_front()
    }

    fn cores(&self) -> &Cores {
        &self.cores
    }
}
