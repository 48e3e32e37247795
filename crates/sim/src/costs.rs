//! The costs of a real system; an ideal one has none.

use crate::error::SimError;
use headway_policy::server::systems::ServerSpec;
use headway_policy::{PreemptionCosts, Shape};
use serde::{Deserialize, Serialize};

/// Costs of the machinery, ns. All zero (the default) is the ideal system of the papers'
/// simulations; `headway calibrate` writes this machine's. The costs of an interruption come with the
/// policy; values given here replace them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// The dispatcher's work per request, serial: requests queue for it. Systems whose requests
    /// are steered by the network do not pay it.
    pub dispatch_ns: u64,
    /// From the dispatcher's decision to the worker's start; where there is no dispatcher, from the arrival to an idle worker's start.
    pub handoff_ns: u64,
    /// From a completion or an interruption until the dispatcher notices it.
    pub completion_ns: u64,
    /// A worker's work per request besides the service itself: receiving it, sending the reply.
    pub overhead_ns: u64,
    /// The dispatcher's work per request that comes back unfinished, serial with what arrives: it signals, queues it,
    /// and hands it out again (Concord § 2.2.2). Systems without a dispatcher do not pay it.
    #[serde(skip_serializing_if = "is_zero")]
    pub requeue_ns: u64,
    /// The interval between a busy worker's looks for arrivals, where workers take turns as the dispatcher and their requests are
    /// preemptible. The worker pays `dispatch_ns` for each arrival that it finds. 0: a dispatcher's thread sees each arrival at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub look_ns: u64,
    /// A worker's work at the end of a quantum or slice after which its request goes on, and at a look for arrivals (`look_ns`). 0: a core of its own
    /// keeps the time, and no worker pays (a dispatcher's, SYNERGY's timer core).
    #[serde(skip_serializing_if = "is_zero")]
    pub renew_ns: u64,
    /// The slowdown of a request that the dispatcher runs itself, %: such code reads the clock in order
    /// to interrupt itself (Concord § 3.3).
    #[serde(skip_serializing_if = "is_zero")]
    pub dispatcher_slowdown_percent: u64,
    /// Replaces the policy's [`PreemptionCosts::notif_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notif_ns: Option<u64>,
    /// Replaces the policy's [`PreemptionCosts::switch_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_ns: Option<u64>,
    /// Replaces the policy's [`PreemptionCosts::next_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_ns: Option<u64>,
    /// Replaces the policy's [`PreemptionCosts::proc_permille`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proc_permille: Option<u64>,
}

impl Costs {
    /// The policies' own parameters for [`notif_ns`](Self::notif_ns).
    const NOTIF_PARAMS: [&'static str; 2] = ["notif", "cost"];

    /// The interval between a live worker's looks for arrivals, ns, unless it is chosen otherwise.
    pub const INLINE_LOOK_NS: u64 = 5_000;

    /// Whether this is the ideal system.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }

    /// The costs of interrupting: these fields where given, otherwise the policy's own `costs`.
    #[must_use]
    pub fn applied_to(&self, costs: PreemptionCosts) -> PreemptionCosts {
        PreemptionCosts {
            notif_ns: self.notif_ns.unwrap_or(costs.notif_ns),
            switch_ns: self.switch_ns.unwrap_or(costs.switch_ns),
            next_ns: self.next_ns.unwrap_or(costs.next_ns),
            proc_permille: self.proc_permille.unwrap_or(costs.proc_permille),
            charge: costs.charge,
        }
    }

    /// Checks the policy's parameters, its cost of an interruption replaced by `notif_ns` where that is given.
    pub(crate) fn check_policy(&self, policy: &ServerSpec, shape: &Shape) -> Result<(), SimError> {
        let params = policy.check(shape)?;
        let own = params
            .iter()
            .find(|(key, _)| Self::NOTIF_PARAMS.contains(key));
        if let (Some(notif_ns), Some((key, _))) = (self.notif_ns, own) {
            let measured = policy.clone().with_param(key, format!("{notif_ns}ns"))?;
            measured.check(shape).map_err(SimError::WithMeasuredCost)?;
        }
        Ok(())
    }

    /// The costs of interrupting that these fields leave to the policy, each with the names of the policies' parameters for it.
    pub fn not_given(&self) -> impl Iterator<Item = (&'static str, [&'static str; 2])> {
        let all = [
            (self.notif_ns, "notif_ns", Self::NOTIF_PARAMS),
            (self.switch_ns, "switch_ns", ["switch", "switch"]),
            (self.next_ns, "next_ns", ["next", "next"]),
            (self.proc_permille, "proc_permille", ["proc", "proc"]),
        ];
        all.into_iter()
            .filter(|(given, ..)| given.is_none())
            .map(|(_, name, params)| (name, params))
    }

    /// The time that a dispatcher needs for work of `stretch_ns` on a worker.
    pub(crate) fn on_dispatcher_ns(&self, stretch_ns: u64) -> u64 {
        stretch_ns + stretch_ns * self.dispatcher_slowdown_percent / 100
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
