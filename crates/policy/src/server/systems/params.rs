//! Parameters that several systems have, and what they make.

use alloc::format;

use crate::server::monitors::Lateness;
use crate::server::{Charge, PreemptionCosts};
use crate::spec::{Param, Reader, SpecError};

/// Longest time a parameter may be.
pub(super) const LONGEST_NS: u64 = 3_600_000_000_000;

/// Most requests that a bounded queue at a worker may hold.
const DEEPEST: u64 = 1024;

/// Requests at a worker.
pub(super) const K: Param = Param::whole("k", 2, 1, DEEPEST)
    .in_units("requests")
    .means("most requests at a worker, the running one included");

/// A quantum.
pub(super) const fn quantum(default_ns: u64) -> Param {
    Param::time("q", default_ns, 1, LONGEST_NS).means("service until a request is interrupted")
}

/// Any time up to an hour, 0 included.
pub(super) const fn any_time(key: &'static str, default_ns: u64) -> Param {
    Param::time(key, default_ns, 0, LONGEST_NS)
}

/// A worker's time per interruption.
pub(super) const fn cost(default_ns: u64) -> Param {
    any_time("cost", default_ns).means("what an interruption takes of the worker")
}

/// Where that falls.
pub(super) const CHARGE: Param = Param::word("charge", &["blocking", "request"])
    .means("the cost blocks the worker before it switches, or lengthens the request");

/// A worker's time per start.
pub(super) const fn switch(default_ns: u64) -> Param {
    any_time("switch", default_ns).means("delays each start and resume")
}

/// An idle worker's wait for the dispatcher.
pub(super) const fn next(default_ns: u64) -> Param {
    any_time("next", default_ns).means("delays a start for which a worker waited idle")
}

/// Lateness by a distribution.
pub(super) const SIGMA: Param =
    any_time("sigma", 0).means("an interruption is late by |N(0, sigma)|");

/// Lateness as measured.
pub(super) const LATE: Param = Param::text(
    "late",
    "",
    "2 to 1000 ascending times, such as 0ns/80ns/2us",
)
.means("measured quantiles of the lateness, equally spaced, instead of sigma");

/// Flows among which requests are drawn.
pub(super) const FLOWS: Param = Param::whole("flows", 0, 0, 1 << 32)
    .in_units("flows")
    .means("requests are drawn from this many flows; 0: each is a flow of its own");

/// The source of sizes.
pub(super) const SIZE: Param = Param::word("size", &["known", "profile"])
    .means("a request's size: its own where it says one, or its class's mean");

/// The SLO of a class that declares none.
pub(super) const SLO: Param = Param::number("slo", 10.0, f64::MIN_POSITIVE, 1e6)
    .in_units("mean service times of the class")
    .means("the SLO of a class that declares none")
    .while_serving();

/// Service of a turn of deficit round robin.
pub(super) const TURN: Param = Param::time("quantum", 1, 1, LONGEST_NS)
    .following("the longest class's mean")
    .means("service that a class's turn is worth")
    .while_serving();

/// Requests of a turn of weighted round robin.
pub(super) const WEIGHTS: Param = Param::text(
    "weights",
    "",
    "a whole number above 0 for each class, such as 3/1",
)
.means("requests of each class in turn; one each by default")
.while_serving();

/// Levels of feedback.
pub(super) const LEVELS: Param = Param::whole("levels", 8, 1, 64)
    .in_units("levels")
    .means("level l lasts q times 2^l of service, the last for ever");

/// Hosts of the longs.
pub(super) const LONG: Param = Param::whole("long", 1, 1, 256)
    .in_units("workers")
    .following("by the longs' part of the demand")
    .means("workers on which longs are first")
    .while_serving();

/// The order of classes by wait or by service.
pub(super) const PICK: Param = Param::word("pick", &["slo", "bvt"])
    .means("first is the largest wait for its SLO, or the least service so far");

/// Where what is interrupted joins its queue.
pub(super) const REENTRY: Param = Param::word("reentry", &["tail", "head"])
    .means("where a request joins its queue again")
    .while_serving();

/// How long a notice is under way.
pub(super) const PROPAGATION: Param =
    any_time("propagation", 0).means("how long the notice is on its way to the worker");

/// Workers kept for the shortest class.
pub(super) const RESERVED: Param = Param::whole("reserved", 1, 0, 256)
    .in_units("workers")
    .means("workers kept for the shortest class; one stays open to all")
    .while_serving();

pub(super) fn quantum_ns(read: &mut Reader<'_>, derived_ns: u64) -> Result<u64, SpecError> {
    match read.time_or("q", derived_ns)? {
        0 => {
            let expected = "a time above 0 such as 5us: a request needs a turn to get on";
            Err(read.bad("q", read.text("q"), expected))
        }
        quantum_ns => Ok(quantum_ns),
    }
}

/// Where a cost falls.
pub(super) fn charge(read: &mut Reader<'_>) -> Result<Charge, SpecError> {
    Ok(match read.word("charge")? {
        "blocking" => Charge::Blocking,
        _ => Charge::Request,
    })
}

/// How late interruptions come: `sigma`, or `late` with measured quantiles.
pub(super) fn lateness(read: &mut Reader<'_>) -> Result<Lateness, SpecError> {
    let sigma_ns = read.time("sigma")?;
    let quantiles_ns = read.times("late")?;
    Ok(if quantiles_ns.is_empty() {
        Lateness::one_sided_normal(sigma_ns)
    } else {
        Lateness::measured(&quantiles_ns)
    })
}

/// What interrupting costs; `derived_ns` where the default depends on who interrupts.
pub(super) fn preemption_costs(
    read: &mut Reader<'_>,
    derived_ns: u64,
) -> Result<PreemptionCosts, SpecError> {
    Ok(PreemptionCosts {
        notif_ns: read.time_or("cost", derived_ns)?,
        charge: charge(read)?,
        switch_ns: read.time("switch")?,
        next_ns: read.time("next")?,
        ..PreemptionCosts::default()
    })
}

/// The costs `costs`, of which `key` is that of an interruption: where requests pay for it out of slices that are no longer, none ever ends beside another.
pub(super) fn within_slices(
    read: &Reader<'_>,
    key: &'static str,
    slice_ns: u64,
    costs: PreemptionCosts,
) -> Result<PreemptionCosts, SpecError> {
    if costs.charge == Charge::Request && costs.notif_ns >= slice_ns {
        let given = format!("{}ns", costs.notif_ns);
        let expected = "with charge=request a time below q: a request that pays its whole quantum for an interruption never gets on";
        return Err(read.bad(key, &given, expected));
    }
    Ok(costs)
}

/// What interrupting costs where only `cost` and `charge` say so.
pub(super) fn interruption(read: &mut Reader<'_>) -> Result<PreemptionCosts, SpecError> {
    Ok(PreemptionCosts {
        notif_ns: read.time("cost")?,
        charge: charge(read)?,
        ..PreemptionCosts::default()
    })
}
