//! What a program says of its machine and of its looks, for the server to choose by.
#![expect(unsafe_code, reason = "reads structs of C programs")]

use std::ffi::c_char;
use std::time::Duration;

use headway_runtime::{Builder, LayoutCosts};

use crate::status::CallFailure;
use crate::text;

/// What the layouts of a server cost on a machine, ns, by which HEADWAY_LAYOUT_AUTO chooses (docs/scaling.md). `headway calibrate` prints the five figures. Begin
/// with those of the machine: 0 is no default here, but no cost at all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayLayoutCosts {
    /// A dispatcher's work per request, on a thread of its own.
    pub dispatch_ns: u64,
    /// A worker's work per request beside such a dispatcher, besides the service.
    pub worker_ns: u64,
    /// A worker's work per request where workers take turns, the dispatcher's included.
    pub inline_ns: u64,
    /// The part of it that one worker at a time does.
    pub turn_ns: u64,
    /// A worker's work for a quantum that it renews itself.
    pub renew_ns: u64,
}

impl From<HeadwayLayoutCosts> for LayoutCosts {
    fn from(costs: HeadwayLayoutCosts) -> Self {
        Self {
            dispatch_ns: costs.dispatch_ns,
            worker_ns: costs.worker_ns,
            inline_ns: costs.inline_ns,
            turn_ns: costs.turn_ns,
            renew_ns: costs.renew_ns,
        }
    }
}

/// Gives the builder what the program says: costs of layouts, how often workers look, where Prometheus asks.
///
/// # Safety
/// Each pointer is null, or its target is valid for this call.
pub(crate) unsafe fn tuned(
    mut builder: Builder,
    costs: *const HeadwayLayoutCosts,
    look_every_ns: u64,
    metrics: *const c_char,
) -> Result<Builder, CallFailure> {
    // SAFETY: the caller's promise.
    if let Some(costs) = unsafe { costs.as_ref() } {
        builder = builder.layout_costs((*costs).into());
    }
    if look_every_ns > 0 {
        builder = builder.look_every(Duration::from_nanos(look_every_ns));
    }
    // SAFETY: the caller's promise.
    let metrics = unsafe { text::optional(metrics, "headway_options.metrics") }?;
    let Some(metrics) = metrics else {
        return Ok(builder);
    };
    let addr = metrics.parse().map_err(|_| {
        CallFailure::argument(format!(
            "headway_options.metrics is '{metrics}': expected ADDRESS:PORT with a numeric address"
        ))
    })?;
    Ok(builder.metrics(addr))
}
