//! Who was told to leave a core, and does not.

use super::moves::Move;
use super::{AppKind, AppShape, CoreId, Cores};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How many times the bound doubles for an application whose kthreads leave late.
const DOUBLINGS_MAX: u32 = 3;
/// Departures in order after which it halves again: so at most one departure in so many is an eviction, where the work between two looks at the orders is
/// shorter than the longest bound.
const DEPARTURES: u32 = 40;
/// How long an evicted kthread may finish what it does, at its ordinary weight, ns.
const FINISHES_NS: u64 = 10_000_000;

/// Since when each core's tenant is told to leave it. One that has not left after a bound is moved away, once.
///
/// The bound grows for a latency-critical application that exceeds it: its kthreads finish a request before they leave, and a request on the shared core takes
/// longer for everybody. It does not grow for batch work, nor for who exceeds the longest one, too, until that has left in order: neither will leave soon. The
/// paper, whose kthreads leave anywhere, names no bound (§ 4.1.3).
pub(super) struct Evictions {
    after_ns: u64,
    since_ns: Vec<Option<u64>>,
    kinds: Vec<AppKind>,
    history: Vec<DepartureHistory>,
}

/// What an application's departures were like.
#[derive(Clone, Copy, Default)]
struct DepartureHistory {
    doublings: u32,
    /// Departures in order since the last eviction or halving.
    in_order: u32,
    /// Whether it exceeded the longest bound, and has not left in order since.
    refuses: bool,
}

impl DepartureHistory {
    fn evicted(&mut self, kind: AppKind) {
        self.in_order = 0;
        if kind == AppKind::Batch || self.refuses {
            return;
        }
        self.refuses = self.doublings == DOUBLINGS_MAX;
        self.doublings = if self.refuses { 0 } else { self.doublings + 1 };
    }
}

impl Evictions {
    /// Nobody is told to leave any of so many cores.
    pub(super) fn new(cores: usize, apps: &[AppShape], after_ns: u64) -> Self {
        Self {
            after_ns,
            since_ns: alloc::vec![None; cores],
            kinds: apps.iter().map(|app| app.kind).collect(),
            history: alloc::vec![DepartureHistory::default(); apps.len()],
        }
    }

    /// Forgets what was learnt of an application.
    pub(super) fn forget(&mut self, app: super::AppId) {
        self.history[app.index()] = DepartureHistory::default();
    }

    /// The core's tenant was told to leave it.
    pub(super) fn told(&mut self, core: CoreId, now_ns: u64) {
        self.since_ns[core.index()] = Some(now_ns);
    }

    /// A kthread of this application has left it, or is gone.
    pub(super) fn left(&mut self, core: CoreId, app: super::AppId) {
        if self.since_ns[core.index()].take().is_none() {
            return;
        }
        let history = &mut self.history[app.index()];
        history.refuses = false;
        history.in_order += 1;
        if history.in_order >= DEPARTURES {
            *history = DepartureHistory {
                doublings: history.doublings.saturating_sub(1),
                ..DepartureHistory::default()
            };
        }
    }

    /// When the next one has had its time.
    pub(super) fn next_ns(&self, cores: &Cores) -> Option<u64> {
        let since_ns = self.since_ns.iter().enumerate();
        let due_ns = since_ns.filter_map(|(core, since_ns)| {
            Some((*since_ns)? + self.bound_ns(CoreId(core as u16), cores))
        });
        due_ns.min()
    }

    /// The moves for those that have had theirs.
    pub(super) fn due(&mut self, now_ns: u64, cores: &Cores, moves: &mut VecDeque<Move>) {
        for index in 0..self.since_ns.len() {
            let core = CoreId(index as u16);
            let bound_ns = self.bound_ns(core, cores);
            if self.since_ns[index].is_none_or(|since_ns: u64| now_ns < since_ns + bound_ns) {
                continue;
            }
            self.since_ns[index] = None;
            if let Some(from) = cores.tenant(core) {
                let app = from.app.index();
                self.history[app].evicted(self.kinds[app]);
                moves.push_back(Move::Evict { core, from });
            }
        }
    }

    /// How long the core's tenant may take.
    fn bound_ns(&self, core: CoreId, cores: &Cores) -> u64 {
        let doublings = cores
            .tenant(core)
            .map_or(0, |tenant| self.history[tenant.app.index()].doublings);
        self.after_ns << doublings
    }
}

impl AppKind {
    /// How long an evicted kthread of such an application keeps its ordinary weight on the shared core, ns. Then it gets only the idle time there. A request
    /// in its middle is finished soon; batch work can wait.
    #[must_use]
    pub fn finishes_ns(self) -> u64 {
        match self {
            AppKind::Latency => FINISHES_NS,
            AppKind::Batch => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AppId, HostShape, HostTopology};
    use super::*;

    const AFTER_NS: u64 = 100;

    /// One core, whose tenant is told to leave so many times, and takes so long. Returns how often it is evicted.
    fn evicted(evictions: &mut Evictions, times: usize, takes_ns: u64) -> usize {
        let mut cores = Cores::new(&HostShape {
            topology: HostTopology::flat(1),
            apps: app(AppKind::Latency).to_vec(),
            seed: 1,
        });
        cores.grant(CoreId(0), AppId(0)).unwrap();
        let mut moves = VecDeque::new();
        for _ in 0..times {
            evictions.told(CoreId(0), 0);
            evictions.due(takes_ns, &cores, &mut moves);
            evictions.left(CoreId(0), AppId(0));
        }
        moves.len()
    }

    fn app(kind: AppKind) -> [AppShape; 1] {
        [AppShape {
            guaranteed: 0,
            most: 1,
            kind,
        }]
    }

    fn of(kind: AppKind) -> Evictions {
        Evictions::new(1, &app(kind), AFTER_NS)
    }

    #[test]
    fn who_takes_longer_than_the_bound_is_evicted_once_in_twenty_times_at_most() {
        for takes_ns in [10, 150, 300, 700] {
            let mut evictions = of(AppKind::Latency);
            let count = evicted(&mut evictions, 2_000, takes_ns);
            assert!(count <= 100, "{count} of 2000 that take {takes_ns} ns");
        }
        let mut evictions = of(AppKind::Latency);
        let hanging = evicted(&mut evictions, 50, 8 * AFTER_NS);
        assert_eq!(hanging, 50, "the bound has an end");
    }

    #[test]
    fn who_never_leaves_in_order_is_soon_evicted_at_the_first_bound() {
        let mut refuses = of(AppKind::Latency);
        let begins = evicted(&mut refuses, 4, u64::MAX / 2);
        assert_eq!((begins, evicted(&mut refuses, 50, AFTER_NS)), (4, 50));
        let mut batch = of(AppKind::Batch);
        assert_eq!(evicted(&mut batch, 50, AFTER_NS), 50);
    }

    #[test]
    fn the_bound_comes_back() {
        let mut evictions = of(AppKind::Latency);
        evicted(&mut evictions, 10, 8 * AFTER_NS);
        evicted(&mut evictions, 4 * DEPARTURES as usize, 10);
        assert_eq!(evicted(&mut evictions, 1, AFTER_NS), 1);
    }
}
