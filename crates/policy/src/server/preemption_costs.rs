//! The costs of interrupting requests.

/// Where the cost of an interruption falls (SYSTEMS' time sharing).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Charge {
    /// It blocks the worker before it switches.
    #[default]
    Blocking,
    /// It is added to the interrupted request's service.
    Request,
}

/// What a system pays to interrupt a request and to hand out the next, ns. A simulator adds them to
/// its virtual time; a live server pays them anyway. All zero is the ideal system.
///
/// In Concord's terms (§ 2, Equation 2): `notif_ns` is c_notif, `switch_ns` is c_switch, `next_ns`
/// is c_next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PreemptionCosts {
    /// From the order to stop until the worker notices it, at each interruption.
    pub notif_ns: u64,
    /// Where `notif_ns` falls.
    pub charge: Charge,
    /// Switching contexts, at each start and resume.
    pub switch_ns: u64,
    /// What probes in the code add to every service time, in thousandths (c_proc).
    pub proc_permille: u64,
    /// An idle worker's wait for the dispatcher to hand it the next request.
    pub next_ns: u64,
}

impl PreemptionCosts {
    /// The service time with probes of a request that takes `service_ns` without.
    #[inline]
    #[must_use]
    pub fn slowed_ns(&self, service_ns: u64) -> u64 {
        match self.proc_permille {
            0 => service_ns,
            permille => service_ns + service_ns * permille / 1000,
        }
    }
}
