//! Who carries out what is not a request: a thread of its own, or the workers.
//!
//! The engine, the settings file and the command's `--check` all ask [`Layout::resolve`], so that they agree.

use headway_fiber::Mechanism;
use headway_policy::MAX_WORKERS;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Preemption, ServerSpec};

use crate::engine::admission::Admission;
use crate::error::StartError;
use crate::threads::server_threads::cores;

/// Who carries the dispatcher out; without one, who carries out the monitor that interrupts requests (SYNERGY's timer core).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// Dedicated if there is a core to spare, else inline.
    #[default]
    Auto,
    /// A thread of its own.
    Dedicated,
    /// The workers: they take turns as the dispatcher, whoever has nothing to run; each interrupts its own requests.
    Inline,
}

/// What the choice of a layout depends on.
#[derive(Clone, Copy, Debug)]
pub struct LayoutFacts<'a> {
    /// How the policy is carried out.
    pub admission: &'a Admission,
    /// Of the server.
    pub workers: usize,
    /// By what a dispatcher interrupts.
    pub mechanism: Mechanism,
    /// Whether an arbiter grants the workers' cores.
    pub hosted: bool,
    /// Cores that the threads may use: see [`usable_cores`](Self::usable_cores).
    pub cores: usize,
}

/// A layout, decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedLayout {
    /// [`Layout::Dedicated`] or [`Layout::Inline`]; `None` where there is neither a dispatcher nor a monitor.
    pub layout: Option<Layout>,
    /// Threads beside the workers: a dispatcher's each, or the monitor's.
    pub threads_beside: usize,
}

impl ResolvedLayout {
    /// Whether a dispatcher, or the monitor of a policy without one, has a thread of its own.
    #[must_use]
    pub fn is_dedicated(&self) -> bool {
        self.layout == Some(Layout::Dedicated)
    }
}

impl Layout {
    /// Decides the layout of a server. A thread that shares a core with a worker costs more than it brings, so `Auto` gives nobody a thread
    /// who has no core for it, except a dispatcher that interrupts by signals, which only another thread can send.
    ///
    /// # Errors
    /// [`StartError::InlineSignals`], and [`StartError::ClockTooLate`]: the mechanism does not go with the layout.
    pub fn resolve(self, facts: &LayoutFacts<'_>) -> Result<ResolvedLayout, StartError> {
        let LayoutFacts {
            admission,
            workers,
            mechanism,
            hosted,
            cores,
        } = *facts;
        let beside = admission.threads_beside();
        if beside == 0 {
            return Ok(ResolvedLayout {
                layout: None,
                threads_beside: 0,
            });
        }
        let by_signal =
            admission.has_dispatcher && admission.interrupts() && mechanism == Mechanism::Signal;
        let dedicated = match self {
            Self::Dedicated => true,
            Self::Inline if by_signal => return Err(StartError::InlineSignals),
            Self::Inline => false,
            Self::Auto => !hosted && (by_signal || cores >= workers + beside),
        };
        let by_clock = admission.dispatcher_interrupts && mechanism == Mechanism::Tsc;
        if dedicated && by_clock && !admission.keeps_times {
            return Err(StartError::ClockTooLate);
        }
        Ok(if dedicated {
            ResolvedLayout {
                layout: Some(Self::Dedicated),
                threads_beside: beside,
            }
        } else {
            ResolvedLayout {
                layout: Some(Self::Inline),
                threads_beside: 0,
            }
        })
    }
}

impl LayoutFacts<'_> {
    /// Cores that this process may use.
    #[must_use]
    pub fn usable_cores() -> usize {
        cores()
    }
}

/// The most cores on which, by default, workers take turns as the dispatcher: a thread of its own would take a quarter of the cores or more.
pub const TURNS_CORES_MAX: usize = 4;

/// The default number of workers on a machine with `cores` cores: one on each core, minus one where a dispatcher's thread takes a core. It does so with more
/// than [`TURNS_CORES_MAX`] cores, in the dedicated layout, and where it interrupts `by_signal`. A policy without a dispatcher leaves a core to its monitor in
/// the dedicated layout only.
///
/// ```
/// use headway_runtime::{Layout, default_workers};
///
/// let (darc, synergy) = ("darc".parse()?, "synergy".parse()?);
/// assert_eq!(default_workers(&darc, Layout::Auto, false, 2), 2);
/// assert_eq!(default_workers(&darc, Layout::Auto, false, 16), 15);
/// assert_eq!(default_workers(&synergy, Layout::Auto, false, 16), 16);
/// assert_eq!(default_workers(&synergy, Layout::Dedicated, false, 16), 15);
/// # Ok::<(), headway_policy::spec::SpecError>(())
/// ```
#[must_use]
pub fn default_workers(
    policy: &ServerSpec,
    layout: Layout,
    by_signal: bool,
    cores: usize,
) -> usize {
    let facts = policy.facts();
    let has_dispatcher = facts.owner == Owner::Dispatcher;
    let has_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
    let dedicated = match layout {
        Layout::Dedicated => has_dispatcher || has_monitor,
        Layout::Inline => false,
        Layout::Auto => has_dispatcher && (by_signal || cores > TURNS_CORES_MAX),
    };
    let threads_beside = match facts.owner {
        _ if !dedicated => 0,
        Owner::Dispatcher => facts.dispatchers,
        Owner::Steering | Owner::Nobody => 1,
    };
    cores.saturating_sub(threads_beside).clamp(1, MAX_WORKERS)
}

#[cfg(test)]
mod tests {
    use headway_policy::{Resume, Shape};

    use super::*;
    use crate::engine::admission::admit;

    fn resolved(
        policy: &str,
        layout: Layout,
        mechanism: Mechanism,
        cores: usize,
    ) -> Result<ResolvedLayout, StartError> {
        let mut shape = Shape::new(2).class(1_000, 0.5).class(100_000, 0.5);
        shape.resume = Resume::Anywhere;
        let admission = admit(&policy.parse().unwrap(), &shape).unwrap();
        layout.resolve(&LayoutFacts {
            admission: &admission,
            workers: 2,
            mechanism,
            hosted: false,
            cores,
        })
    }

    fn beside(policy: &str, layout: Layout, cores: usize) -> usize {
        let resolved = resolved(policy, layout, Mechanism::Flag, cores).unwrap();
        resolved.threads_beside
    }

    #[test]
    fn a_thread_beside_the_workers_has_a_core_unless_it_was_asked_for() {
        for policy in ["darc", "concord", "synergy"] {
            assert_eq!(beside(policy, Layout::Auto, 2), 0, "{policy}");
            assert_eq!(beside(policy, Layout::Auto, 3), 1, "{policy}");
            assert_eq!(beside(policy, Layout::Dedicated, 2), 1, "{policy}");
            assert_eq!(beside(policy, Layout::Inline, 9), 0, "{policy}");
        }
        for policy in ["d-fcfs", "tardis", "work-stealing"] {
            for layout in [Layout::Auto, Layout::Dedicated, Layout::Inline] {
                let resolved = resolved(policy, layout, Mechanism::Flag, 9).unwrap();
                assert_eq!((resolved.layout, resolved.threads_beside), (None, 0));
            }
        }
    }

    #[test]
    fn signals_come_from_a_thread_of_their_own() {
        let by_signal = |policy, layout| resolved(policy, layout, Mechanism::Signal, 2);
        assert!(by_signal("concord", Layout::Auto).unwrap().is_dedicated());
        assert!(matches!(
            by_signal("concord", Layout::Inline),
            Err(StartError::InlineSignals)
        ));
        // Nothing is interrupted, so there are no signals.
        assert!(!by_signal("darc", Layout::Auto).unwrap().is_dedicated());
    }
}
