//! Applications as a test says that they are, and what tests do with allocators.

use headway_policy::BitSet;
use headway_policy::host::{
    Allocator, AppId, AppKind, AppShape, CoreId, Counters, HostShape, HostTopology, HostView,
    Kthread, KthreadId, Move, Shenango, ShenangoRules, Usage,
};

/// Applications whose queues and usage are whatever a test says.
#[derive(Default)]
pub(crate) struct Toy {
    pub(crate) kthreads: Vec<Vec<Kthread>>,
    pub(crate) usage: Vec<Usage>,
}

impl HostView for Toy {
    fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread {
        self.kthreads[app.index()][kthread.index()]
    }
    fn shared(&self, _app: AppId) -> Counters {
        Counters::default()
    }

    fn usage(&self, app: AppId) -> Usage {
        self.usage[app.index()]
    }
    fn interrupted(&self, _app: AppId) -> BitSet {
        BitSet::EMPTY
    }
}

/// Applies all moves; every application leaves a revoked core at once.
pub(crate) fn settle(allocator: &mut impl Allocator) {
    while let Some(decision) = allocator.poll() {
        if let Move::Revoke { core, .. } = decision {
            allocator.released(0, core);
        }
    }
}

pub(crate) fn app(guaranteed: usize, most: usize) -> AppShape {
    AppShape {
        guaranteed,
        most,
        kind: AppKind::Latency,
    }
}

pub(crate) fn shenango(topology: HostTopology, apps: Vec<AppShape>) -> Shenango {
    Shenango::new(
        &HostShape {
            topology,
            apps,
            seed: 1,
        },
        ShenangoRules::default(),
    )
}

/// The core of the only move, which must be a grant.
pub(crate) fn granted(allocator: &mut Shenango) -> CoreId {
    let Some(Move::Grant { core, .. }) = allocator.poll() else {
        panic!("nothing was granted");
    };
    assert_eq!(allocator.poll(), None);
    core
}

pub(crate) struct AllQueued;

impl HostView for AllQueued {
    fn kthread(&self, _app: AppId, _kthread: KthreadId) -> Kthread {
        Kthread {
            ingress: Counters { head: 0, tail: 1 },
            ..Kthread::default()
        }
    }
    fn shared(&self, _app: AppId) -> Counters {
        Counters::default()
    }

    fn usage(&self, _app: AppId) -> Usage {
        Usage::default()
    }
    fn interrupted(&self, _app: AppId) -> BitSet {
        BitSet::EMPTY
    }
}

pub(crate) struct NoneQueued;

impl HostView for NoneQueued {
    fn kthread(&self, _app: AppId, _kthread: KthreadId) -> Kthread {
        Kthread::default()
    }
    fn shared(&self, _app: AppId) -> Counters {
        Counters::default()
    }
    fn usage(&self, _app: AppId) -> Usage {
        Usage::default()
    }
    fn interrupted(&self, _app: AppId) -> BitSet {
        BitSet::EMPTY
    }
}
