//! What a machine's scheduling costs, for each layout of a server's threads.

use crate::Costs;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Facts, Preemption};
use serde::{Deserialize, Serialize};

/// Who dispatches, and who interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadLayout {
    /// A dispatcher with a thread of its own.
    Dedicated,
    /// The workers take turns as the dispatcher.
    Inline,
    /// The network steers requests to the workers, which interrupt their own requests.
    Steered,
    /// The network steers requests to the workers, and a thread of its own interrupts them (SYNERGY's timer core).
    Monitored,
    /// Nobody places requests: the workers take them from one queue (Tardis).
    Unplaced,
}

impl ThreadLayout {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Dedicated,
        Self::Inline,
        Self::Steered,
        Self::Monitored,
        Self::Unplaced,
    ];

    /// The layout of a policy's server, with a thread beside the workers for its dispatcher or monitor (`dedicated`) or without.
    #[must_use]
    pub fn of(facts: &Facts, dedicated: bool) -> Self {
        let has_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
        match facts.owner {
            Owner::Dispatcher if dedicated => Self::Dedicated,
            Owner::Dispatcher => Self::Inline,
            Owner::Steering if dedicated && has_monitor => Self::Monitored,
            Owner::Steering => Self::Steered,
            Owner::Nobody => Self::Unplaced,
        }
    }

    /// Whether a policy leaves the choice between a thread beside the workers and none.
    #[must_use]
    pub fn has_choice(facts: &Facts) -> bool {
        Self::of(facts, true) != Self::of(facts, false)
    }

    /// The layout of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Cores beside those of the workers under a policy.
    #[must_use]
    pub fn cores_beside(self, facts: &Facts) -> usize {
        if self.has_thread_beside() {
            facts.cores_beside_workers()
        } else {
            0
        }
    }

    /// Its name in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::Inline => "inline",
            Self::Steered => "steered",
            Self::Monitored => "monitored",
            Self::Unplaced => "unplaced",
        }
    }

    /// Whether a thread beside the workers dispatches or interrupts.
    #[must_use]
    pub fn has_thread_beside(self) -> bool {
        matches!(self, Self::Dedicated | Self::Monitored)
    }

    /// Whether there is a dispatcher.
    #[must_use]
    pub fn has_dispatcher(self) -> bool {
        matches!(self, Self::Dedicated | Self::Inline)
    }
}

/// The costs of a machine under the layouts that were measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineCosts {
    /// Of layouts that were not measured: those of a dispatcher.
    #[serde(skip)]
    pub other: Costs,
    /// Of [`ThreadLayout::Dedicated`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedicated: Option<Costs>,
    /// Of [`ThreadLayout::Inline`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<Costs>,
    /// Of [`ThreadLayout::Steered`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steered: Option<Costs>,
    /// Of [`ThreadLayout::Monitored`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitored: Option<Costs>,
    /// Of [`ThreadLayout::Unplaced`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced: Option<Costs>,
}

impl MachineCosts {
    /// The costs of a layout: its own where they were measured.
    #[must_use]
    pub fn of(&self, layout: ThreadLayout) -> Costs {
        self.measured(layout)
            .unwrap_or_else(|| self.derived(layout))
    }

    /// The costs of a layout that were measured.
    #[must_use]
    pub fn measured(&self, layout: ThreadLayout) -> Option<Costs> {
        match layout {
            ThreadLayout::Dedicated => self.dedicated,
            ThreadLayout::Inline => self.inline,
            ThreadLayout::Steered => self.steered,
            ThreadLayout::Monitored => self.monitored,
            ThreadLayout::Unplaced => self.unplaced,
        }
    }

    /// Sets the costs of a layout.
    pub fn set(&mut self, layout: ThreadLayout, costs: Costs) {
        let place = match layout {
            ThreadLayout::Dedicated => &mut self.dedicated,
            ThreadLayout::Inline => &mut self.inline,
            ThreadLayout::Steered => &mut self.steered,
            ThreadLayout::Monitored => &mut self.monitored,
            ThreadLayout::Unplaced => &mut self.unplaced,
        };
        *place = Some(costs);
    }

    /// The same with every layout's costs changed.
    #[must_use]
    pub fn map(self, change: impl Fn(Costs) -> Costs) -> Self {
        Self {
            other: change(self.other),
            dedicated: self.dedicated.map(&change),
            inline: self.inline.map(&change),
            steered: self.steered.map(&change),
            monitored: self.monitored.map(&change),
            unplaced: self.unplaced.map(&change),
        }
    }

    /// Whether this is the ideal system under every layout.
    #[must_use]
    pub fn is_free(&self) -> bool {
        let all = ThreadLayout::ALL;
        self.other.is_free()
            && all
                .iter()
                .all(|layout| self.measured(*layout).is_none_or(|costs| costs.is_free()))
    }

    /// The costs of a layout without its own. Without a dispatcher there is no hand-off; workers that take turns do the dispatcher's work themselves.
    fn derived(&self, layout: ThreadLayout) -> Costs {
        let costs = self.other;
        match layout {
            ThreadLayout::Dedicated => costs,
            ThreadLayout::Inline if costs.look_ns > 0 => costs,
            ThreadLayout::Inline => Costs {
                overhead_ns: costs.overhead_ns + costs.dispatch_ns,
                dispatch_ns: 0,
                handoff_ns: 0,
                look_ns: Costs::INLINE_LOOK_NS,
                ..costs
            },
            ThreadLayout::Steered | ThreadLayout::Monitored | ThreadLayout::Unplaced => Costs {
                handoff_ns: 0,
                ..costs
            },
        }
    }
}

impl From<Costs> for MachineCosts {
    /// The same costs under every layout.
    fn from(other: Costs) -> Self {
        Self {
            other,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::server::systems::ServerSpec;

    #[test]
    fn a_policy_has_the_layout_of_its_owner() {
        let of = |policy: &str, dedicated| {
            let policy: ServerSpec = policy.parse().unwrap();
            ThreadLayout::of(&policy.facts(), dedicated).name()
        };
        let both = |policy| [of(policy, false), of(policy, true)];
        assert_eq!(both("concord"), ["inline", "dedicated"]);
        assert_eq!(both("synergy"), ["steered", "monitored"]);
        assert_eq!(both("d-fcfs"), ["steered", "steered"]);
        assert_eq!(both("tardis"), ["unplaced", "unplaced"]);
    }

    #[test]
    fn a_layout_that_was_not_measured_has_what_follows_from_a_dispatchers_costs() {
        let measured = Costs {
            dispatch_ns: 100,
            handoff_ns: 50,
            overhead_ns: 40,
            ..Costs::default()
        };
        let mut costs = MachineCosts::from(measured);
        assert_eq!(costs.of(ThreadLayout::Dedicated), measured);
        let inline = costs.of(ThreadLayout::Inline);
        assert_eq!((inline.overhead_ns, inline.dispatch_ns), (140, 0));
        assert_eq!(costs.of(ThreadLayout::Steered).handoff_ns, 0);
        costs.set(
            ThreadLayout::Steered,
            Costs {
                handoff_ns: 7,
                ..measured
            },
        );
        assert_eq!(costs.of(ThreadLayout::Steered).handoff_ns, 7);
    }
}
