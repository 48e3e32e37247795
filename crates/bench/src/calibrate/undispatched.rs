//! The costs where no dispatcher places requests: the network steers them to workers, or workers take them from one queue.

use super::dispatched::InterruptionParts;
use super::loads::{
    ALONE, CALM, IN_TURNS, LONG_NS, LoadFigures, LoadMeter, ONCE_EACH, ONCE_NS, QUEUED, SERVICE_NS,
    SteadyLoad,
};
use crate::TrialError;
use headway_sim::{Costs, ThreadLayout};

/// SYNERGY with quanta of a fixed length.
const STEERED: &str = "synergy,parts=ws+wq+cp,q=5us,longs=hints";
const UNPLACED: &str = "tardis,q=5us";

/// Measures the costs of a layout without a dispatcher. `step` is called after each of [`STEPS`](super::STEPS) parts.
pub(super) fn measure(
    layout: ThreadLayout,
    meter: &mut LoadMeter,
    mut step: impl FnMut(),
) -> Result<Costs, TrialError> {
    let unplaced = layout == ThreadLayout::Unplaced;
    let policy = if unplaced { UNPLACED } else { STEERED };
    let beyond = |ns: u64| ns.saturating_sub(SERVICE_NS);
    let latency_overhead_ns =
        beyond(meter.typical_ns(&CALM.under(policy), LoadFigures::median_ns)?);
    step();
    let queued = QUEUED.under(policy);
    let queued_overhead_ns = beyond(meter.typical_ns(&queued, LoadFigures::per_request_ns)?);
    step();
    let preemption_ns = if unplaced {
        let work_ns = 2.0 * LONG_NS as f64;
        let turns = IN_TURNS.under(policy);
        meter.typical_ns(&turns, |shown| shown.per_preemption_ns(work_ns))?
    } else {
        interrupted_once(meter, policy, queued_overhead_ns)?
    };
    step();
    let renew_ns = meter.typical_ns(&ALONE.under(policy), LoadFigures::per_renewal_ns)?;
    step();
    let InterruptionParts { switch_ns, .. } = InterruptionParts::measure(meter.layout)?;
    step();
    step();
    Ok(Costs {
        // The first start of a request switches to a fiber too.
        overhead_ns: queued_overhead_ns.saturating_sub(switch_ns),
        handoff_ns: latency_overhead_ns.saturating_sub(queued_overhead_ns),
        notif_ns: Some(preemption_ns.saturating_sub(switch_ns)),
        switch_ns: Some(switch_ns),
        // There is no dispatcher to wait for.
        next_ns: Some(0),
        // Service times include the probes' cost.
        proc_permille: Some(0),
        renew_ns,
        ..Costs::default()
    })
}

/// The cost of an interruption where a long gives way only to what waits at its worker: of many longs each is interrupted once, but for the last.
fn interrupted_once(
    meter: &mut LoadMeter,
    policy: &'static str,
    overhead_ns: u64,
) -> Result<u64, TrialError> {
    let longs = SteadyLoad {
        policy,
        service_ns: ONCE_NS,
        requests: ONCE_EACH,
        ..IN_TURNS
    };
    let work_ns = (ONCE_EACH * (ONCE_NS + overhead_ns)) as f64;
    meter.typical_ns(&longs, |shown| shown.per_preemption_ns(work_ns))
}
