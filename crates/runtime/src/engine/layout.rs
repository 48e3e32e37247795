//! Who carries out what is not a request: a thread of its own, or the workers.
//!
//! The engine, the settings file and the command's `--check` all ask [`Layout::resolve`] and [`default_workers`], so that they agree. Both choose by
//! [`LayoutCosts`], which `headway calibrate` measures.

use headway_fiber::Mechanism;
use headway_policy::MAX_WORKERS;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Preemption, ServerSpec};

use crate::engine::admission::Admission;
use crate::engine::layout_costs::{LayoutCosts, ThreadBeside};
use crate::error::StartError;
use crate::threads::server_threads::cores;

/// Who carries the dispatcher out; without one, who carries out the monitor that interrupts requests (SYNERGY's timer core).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// Dedicated if there is a core to spare and the server carries as much by it, else inline: see [`LayoutCosts`].
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
    /// What the layouts cost on this machine.
    pub costs: LayoutCosts,
    /// The mean service time of a request, ns, where it is known.
    pub service_ns: Option<f64>,
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
    /// who has no core for it, except a dispatcher that interrupts by signals, which only another thread can send. With a core to spare, `Auto` chooses by
    /// what the server then [carries](LayoutCosts).
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
            costs,
            service_ns,
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
            Self::Auto if by_signal || hosted => by_signal && !hosted,
            Self::Auto => {
                let thread = ThreadBeside {
                    dispatchers: admission.dispatchers,
                    inline_workers: workers,
                    workers,
                };
                cores >= workers + beside && costs.favour(thread, service_ns)
            }
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

/// What the default number of workers depends on.
#[derive(Clone, Copy, Debug)]
pub struct WorkersFacts {
    /// Cores that the threads may use.
    pub cores: usize,
    /// Whether a dispatcher interrupts by signals, which only another thread can send.
    pub by_signal: bool,
    /// What the layouts cost on this machine.
    pub costs: LayoutCosts,
    /// The mean service time of a request, ns, where it is known.
    pub service_ns: Option<f64>,
}

impl WorkersFacts {
    /// Of a machine with so many cores, by the costs that are built in, for services of any length.
    #[must_use]
    pub fn of_cores(cores: usize) -> Self {
        Self {
            cores,
            by_signal: false,
            costs: LayoutCosts::default(),
            service_ns: None,
        }
    }
}

/// The default number of workers: one on each core, minus one where a thread beside them takes a core. It does so in the dedicated layout, where it
/// interrupts by signals, and where the server [carries](LayoutCosts) enough with it.
///
/// ```
/// use headway_runtime::{Layout, WorkersFacts, default_workers};
///
/// let (darc, synergy) = ("darc".parse()?, "synergy".parse()?);
/// let on = WorkersFacts::of_cores;
/// assert_eq!(default_workers(&darc, Layout::Auto, &on(2)), 2);
/// assert_eq!(default_workers(&darc, Layout::Auto, &on(16)), 15);
/// assert_eq!(default_workers(&synergy, Layout::Auto, &on(16)), 16);
/// assert_eq!(default_workers(&synergy, Layout::Dedicated, &on(16)), 15);
/// # Ok::<(), headway_policy::spec::SpecError>(())
/// ```
#[must_use]
pub fn default_workers(policy: &ServerSpec, layout: Layout, facts: &WorkersFacts) -> usize {
    let policy = policy.facts();
    let has_monitor = matches!(policy.preemption, Preemption::ByMonitor { .. });
    let (threads, dispatchers) = match policy.owner {
        Owner::Dispatcher => (policy.dispatchers, policy.dispatchers),
        Owner::Steering | Owner::Nobody => (usize::from(has_monitor), 0),
    };
    let left = facts.cores.saturating_sub(threads).max(1);
    let thread = ThreadBeside {
        dispatchers,
        inline_workers: facts.cores,
        workers: left,
    };
    let dedicated = match layout {
        Layout::Dedicated => threads > 0,
        Layout::Inline => false,
        Layout::Auto if threads == 0 || facts.cores <= threads => {
            facts.by_signal && dispatchers > 0
        }
        Layout::Auto => {
            (facts.by_signal && dispatchers > 0) || facts.costs.favour(thread, facts.service_ns)
        }
    };
    let workers = if dedicated { left } else { facts.cores };
    workers.clamp(1, MAX_WORKERS)
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
            costs: LayoutCosts::default(),
            service_ns: None,
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

    /// The defaults of workers and of the layout agree: whoever was left a core uses it, and nobody else wants one.
    #[test]
    fn as_many_workers_as_the_layout_leaves_cores_for() {
        let (dear, cheap) = (
            LayoutCosts {
                inline_ns: 5_000,
                ..LayoutCosts::default()
            },
            LayoutCosts {
                dispatch_ns: 2_000,
                ..LayoutCosts::default()
            },
        );
        for policy in ["darc", "concord", "synergy", "d-fcfs", "tardis"] {
            let spec: ServerSpec = policy.parse().unwrap();
            for costs in [LayoutCosts::default(), dear, cheap] {
                for service_ns in [None, Some(1_000.0), Some(1e6)] {
                    for cores in [1, 2, 3, 5, 16, 64, 200] {
                        let facts = WorkersFacts {
                            costs,
                            service_ns,
                            ..WorkersFacts::of_cores(cores)
                        };
                        let workers = default_workers(&spec, Layout::Auto, &facts);
                        let mut shape = Shape::new(workers).class(1_000, 0.5).class(100_000, 0.5);
                        shape.resume = Resume::Anywhere;
                        let admission = admit(&spec, &shape).unwrap();
                        let resolved = Layout::Auto.resolve(&LayoutFacts {
                            admission: &admission,
                            workers,
                            mechanism: Mechanism::Flag,
                            hosted: false,
                            cores,
                            costs,
                            service_ns,
                        });
                        let threads = workers + resolved.unwrap().threads_beside;
                        assert_eq!(threads, cores, "{policy} on {cores}: {facts:?}");
                    }
                }
            }
        }
    }

    /// The same server on the same cores, on machines that differ in one cost.
    #[test]
    fn the_layout_follows_what_was_measured() {
        let workers = |costs, service_ns, cores| {
            let facts = WorkersFacts {
                costs,
                service_ns: Some(service_ns),
                ..WorkersFacts::of_cores(cores)
            };
            default_workers(&"darc".parse().unwrap(), Layout::Auto, &facts)
        };
        let measured = LayoutCosts::default();
        assert_eq!(workers(measured, 10_000.0, 3), 3);
        // Where turns are dear, a thread for the dispatcher pays on few cores.
        let dear_turns = LayoutCosts {
            inline_ns: 20_000,
            ..measured
        };
        assert_eq!(workers(dear_turns, 10_000.0, 3), 2);
        // Where one dispatcher cannot keep up, workers share its work.
        let slow = LayoutCosts {
            dispatch_ns: 1_000,
            turn_ns: 100,
            ..measured
        };
        assert_eq!(workers(measured, 10_000.0, 16), 15);
        assert_eq!(workers(slow, 10_000.0, 16), 16);
    }
}
