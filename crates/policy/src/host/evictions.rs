//! Who was told to leave a core, and does not.

use super::moves::Move;
use super::{AppId, AppKind, CoreId, Cores};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How many times the bound doubles for an application whose kthreads leave late.
const DOUBLINGS_MAX: u32 = 3;
/// Departures in order after which it halves again: so at most one departure in so many is an eviction, where the work between two looks at the orders is
/// shorter than the longest bound.
const DEPARTURES: u32 = 40;
/// How long an evicted kthread may finish what it does, at its ordinary weight, ns.
const FINISHES_NS: u64 = 10_000_000;

/// Until when each core's tenant, told to leave it, has time for that. One that has not left by then is moved away, once.
///
/// The bound grows for a latency-critical application that exceeds it: its kthreads finish a request before they leave, and a request on the shared core takes
/// longer for everybody. It does not grow for batch work, nor for who exceeds the longest one, too, until that has left in order: neither will leave soon. The
/// paper, whose kthreads leave anywhere, names no bound (§ 4.1.3).
pub(super) struct Evictions {
    after_ns: u64,
    due_ns: Vec<Option<u64>>,
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
    pub(super) fn new(cores: usize, apps: usize, after_ns: u64) -> Self {
        Self {
            after_ns,
            due_ns: alloc::vec![None; cores],
            history: alloc::vec![DepartureHistory::default(); apps],
        }
    }

    /// Forgets what was learnt of an application.
    pub(super) fn forget(&mut self, app: AppId) {
        self.history[app.index()] = DepartureHistory::default();
    }

    /// The core's tenant, of this application, was told to leave it. Its time is what the application's bound is now: what is learnt later is for the next one.
    pub(super) fn told(&mut self, core: CoreId, app: AppId, now_ns: u64) {
        let bound_ns = self.after_ns << self.history[app.index()].doublings;
        self.due_ns[core.index()] = Some(now_ns + bound_ns);
    }

    /// A kthread of this application has left it, or is gone.
    pub(super) fn left(&mut self, core: CoreId, app: AppId) {
        if self.due_ns[core.index()].take().is_none() {
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
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.due_ns.iter().copied().flatten().min()
    }

    /// The moves for those that have had theirs.
    pub(super) fn due(&mut self, now_ns: u64, cores: &Cores, moves: &mut VecDeque<Move>) {
        for (index, due_ns) in self.due_ns.iter_mut().enumerate() {
            let core = CoreId(index as u16);
            if due_ns.take_if(|due_ns| *due_ns <= now_ns).is_none() {
                continue;
            }
            if let Some(from) = cores.tenant(core) {
                self.history[from.app.index()].evicted(cores.shape(from.app).kind);
                moves.push_back(Move::Evict { core, from });
            }
        }
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
    use super::super::{AppShape, HostShape, HostTopology};
    use super::*;

    const AFTER_NS: u64 = 100;

    /// An application on every core, and its evictions.
    struct LeaverDepartures {
        cores: Cores,
        evictions: Evictions,
    }

    impl LeaverDepartures {
        fn of(kind: AppKind) -> Self {
            Self::on(1, kind)
        }

        fn on(cores: usize, kind: AppKind) -> Self {
            let app = AppShape {
                guaranteed: 0,
                most: cores,
                kind,
            };
            let mut tenants = Cores::new(&HostShape {
                topology: HostTopology::flat(cores),
                apps: alloc::vec![app],
                seed: 1,
            });
            for core in 0..cores {
                tenants.grant(CoreId(core as u16), AppId(0)).unwrap();
            }
            Self {
                cores: tenants,
                evictions: Evictions::new(cores, 1, AFTER_NS),
            }
        }

        /// How many are evicted at this time.
        fn due(&mut self, now_ns: u64) -> usize {
            let mut moves = VecDeque::new();
            self.evictions.due(now_ns, &self.cores, &mut moves);
            moves.len()
        }

        /// The first core's tenant is told to leave so many times, and takes so long. Returns how often it is evicted.
        fn evicted(&mut self, times: usize, takes_ns: u64) -> usize {
            let once = |departures: &mut Self| {
                departures.evictions.told(CoreId(0), AppId(0), 0);
                let evicted = departures.due(takes_ns);
                departures.evictions.left(CoreId(0), AppId(0));
                evicted
            };
            (0..times).map(|_| once(self)).sum()
        }
    }

    #[test]
    fn who_takes_longer_than_the_bound_is_evicted_once_in_twenty_times_at_most() {
        for takes_ns in [10, 150, 300, 700] {
            let count = LeaverDepartures::of(AppKind::Latency).evicted(2_000, takes_ns);
            assert!(count <= 100, "{count} of 2000 that take {takes_ns} ns");
        }
        let hanging = LeaverDepartures::of(AppKind::Latency).evicted(50, 8 * AFTER_NS);
        assert_eq!(hanging, 50, "the bound has an end");
    }

    #[test]
    fn who_never_leaves_in_order_is_soon_evicted_at_the_first_bound() {
        let mut refuses = LeaverDepartures::of(AppKind::Latency);
        let begins = refuses.evicted(4, u64::MAX / 2);
        assert_eq!((begins, refuses.evicted(50, AFTER_NS)), (4, 50));
        let mut batch = LeaverDepartures::of(AppKind::Batch);
        assert_eq!(batch.evicted(50, AFTER_NS), 50);
    }

    #[test]
    fn the_bound_comes_back() {
        let mut departures = LeaverDepartures::of(AppKind::Latency);
        departures.evicted(10, 8 * AFTER_NS);
        departures.evicted(4 * DEPARTURES as usize, 10);
        assert_eq!(departures.evicted(1, AFTER_NS), 1);
    }

    /// Else its time would lie in the past, and nobody would have looked then.
    #[test]
    fn who_was_told_keeps_its_time_when_the_bound_comes_back() {
        let mut departures = LeaverDepartures::on(2, AppKind::Latency);
        departures.evicted(3, 8 * AFTER_NS);
        for core in [0, 1] {
            let told_ns = AFTER_NS * u64::from(core);
            departures.evictions.told(CoreId(core), AppId(0), told_ns);
        }
        assert_eq!(departures.due(8 * AFTER_NS), 1, "it exceeds the longest");
        assert_eq!(departures.evictions.next_ns(), Some(9 * AFTER_NS));
    }
}
