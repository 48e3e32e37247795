//! Decisions of an allocator.

use super::ids::{AppId, CoreId, KthreadId};

/// A kthread of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenant {
    /// The application.
    pub app: AppId,
    /// Which of its kthreads.
    pub kthread: KthreadId,
}

/// A core that a kthread has already, from before its application was admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldCore {
    /// Which core.
    pub core: CoreId,
    /// Which kthread of the application.
    pub kthread: KthreadId,
}

/// A decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// The core is idle: wake this kthread on it.
    Grant {
        /// Which core.
        core: CoreId,
        /// Who gets it.
        to: Tenant,
    },
    /// Make the kthread put what it runs back into its queue and leave. The engine reports
    /// [`Allocator::released`](super::Allocator::released) once it has.
    Revoke {
        /// Which core.
        core: CoreId,
        /// Who loses it.
        from: Tenant,
    },
    /// The kthread was told to leave and did not: move it to the core that all who refuse share, whatever it does. The engine reports
    /// [`Allocator::released`](super::Allocator::released) once the core is free.
    Evict {
        /// Which core.
        core: CoreId,
        /// Who loses it.
        from: Tenant,
    },
}

impl Move {
    /// The application that gets or loses the core.
    pub(super) fn app(self) -> AppId {
        match self {
            Self::Grant { to, .. } => to.app,
            Self::Revoke { from, .. } | Self::Evict { from, .. } => from.app,
        }
    }
}
