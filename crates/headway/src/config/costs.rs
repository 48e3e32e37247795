//! Measured costs, as a live server takes them.

use headway_runtime::LayoutCosts;
use headway_sim::{MachineCosts, ThreadLayout};

/// What a live server chooses its layout by, of measured costs. What was not measured is as [built in](LayoutCosts).
#[must_use]
pub fn layout_costs(costs: &MachineCosts) -> LayoutCosts {
    let mut layout = LayoutCosts::default();
    if let Some(dedicated) = costs.measured(ThreadLayout::Dedicated) {
        layout.dispatch_ns = dedicated.dispatch_ns;
        layout.worker_ns = dedicated.overhead_ns;
    }
    if let Some(inline) = costs.measured(ThreadLayout::Inline) {
        layout.inline_ns = inline.overhead_ns;
        layout.turn_ns = inline.dispatch_ns;
    }
    if let Some(steered) = costs.measured(ThreadLayout::Steered) {
        layout.renew_ns = steered.renew_ns;
    }
    layout
}
