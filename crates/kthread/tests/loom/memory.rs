//! The memory that an application and the daemon share, with loom's words.

use headway_kthread::{KthreadLine, OrderLine};
use loom::sync::atomic::{AtomicU32, AtomicU64};

/// As the daemon's memory, under the name by which the included code knows it.
pub(crate) use self::ModelLines as SharedLines;

/// The application's words.
#[derive(Debug, Default)]
pub(crate) struct ModelAppLine {
    pub(crate) wants: AtomicU64,
}

/// The daemon's words for the application.
#[derive(Debug)]
pub(crate) struct ModelArbiterLine {
    pub(crate) parks: AtomicU32,
    pub(crate) doorbell: AtomicU32,
    pub(crate) daemons_core: AtomicU32,
}

/// The lines of an application under a daemon that takes cores back from kthreads without work.
#[derive(Debug)]
pub(crate) struct ModelLines {
    app: ModelAppLine,
    arbiter: ModelArbiterLine,
    kthreads: Vec<(KthreadLine, OrderLine)>,
}

impl ModelLines {
    pub(crate) fn new(kthreads: usize) -> ModelLines {
        ModelLines {
            app: ModelAppLine::default(),
            arbiter: ModelArbiterLine {
                parks: AtomicU32::new(1),
                doorbell: AtomicU32::new(0),
                daemons_core: AtomicU32::new(0),
            },
            kthreads: (0..kthreads).map(|_| Default::default()).collect(),
        }
    }

    pub(crate) fn kthreads(&self) -> usize {
        self.kthreads.len()
    }

    pub(crate) fn app(&self) -> &ModelAppLine {
        &self.app
    }

    pub(crate) fn arbiter(&self) -> &ModelArbiterLine {
        &self.arbiter
    }

    pub(crate) fn line(&self, kthread: usize) -> &KthreadLine {
        &self.kthreads[kthread].0
    }

    pub(crate) fn orders(&self, kthread: usize) -> &OrderLine {
        &self.kthreads[kthread].1
    }
}
