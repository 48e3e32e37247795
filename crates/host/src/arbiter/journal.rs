//! The journal of core changes, and the durations of the arbiter's steps.

use std::collections::VecDeque;
use std::sync::Arc;

use headway_machine::histogram::TimeHistogram;

/// The number of changes kept.
const KEPT: usize = 1 << 17;

/// A core that got or lost a tenant.
#[derive(Clone, Debug)]
pub(super) struct NotedChange {
    pub(super) at_ns: u64,
    pub(super) core: usize,
    pub(super) app: Option<Arc<str>>,
}

/// The last changes.
#[derive(Debug, Default)]
pub(super) struct TenancyJournal {
    changes: VecDeque<NotedChange>,
    names: Vec<Arc<str>>,
}

impl TenancyJournal {
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &NotedChange> {
        self.changes.iter().rev()
    }

    pub(super) fn note(&mut self, at_ns: u64, core: usize, app: Option<&String>) {
        let app = app.map(|name| self.name(name));
        if self.changes.len() == KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(NotedChange { at_ns, core, app });
    }

    /// One copy of each name.
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        // Names come from the settings: there are few.
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        name
    }
}

/// Durations of the arbiter's steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    /// The allocator's part of a pass with a look.
    pub(super) look: TimeHistogram,
    /// Carrying a grant out.
    pub(super) grant: TimeHistogram,
    /// Sending a revocation.
    pub(super) revoke: TimeHistogram,
    /// From a revocation until the core was free.
    pub(super) leave: TimeHistogram,
}
