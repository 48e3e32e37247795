//! What a [`Server`](crate::server::Server) is made of.

use crate::server::{Request, Sink, Work};
use headway_policy::controls::Assignment;
use headway_policy::host::Counters;
use headway_policy::{ClassId, Plan, WorkerId};
use headway_report::schedule::Slice;
use std::ops::Range;

/// A server in virtual time that knows its sink's type, so that nothing is called indirectly on the way of a
/// request. Whatever is this is a [`Server`](crate::server::Server), which documents the methods of the same names.
pub(crate) trait Simulated {
    fn next_ns(&self) -> u64;
    /// When a request is next concerned; [`NEVER`](crate::server::NEVER) when only deadlines remain.
    fn next_work_ns(&self) -> u64;
    fn step(&mut self, sink: &mut impl Sink);
    fn arrive(&mut self, now_ns: u64, request: Request, sink: &mut impl Sink);
    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink);
    fn revoke(&mut self, now_ns: u64, worker: WorkerId, sink: &mut impl Sink);
    fn assign(&mut self, now_ns: u64, assignment: &Assignment, sink: &mut impl Sink);
    fn withdraw(&mut self, class: ClassId, withdrawn: &mut Vec<Request>);
    fn would_start(&self, request: &Request) -> bool;
    /// Workers that are there and run nothing.
    fn idle(&self) -> usize;
    fn waiting(&self) -> usize;
    fn in_flight(&self) -> usize;
    fn queued_at(&self, worker: WorkerId) -> usize;
    fn counters_at(&self, worker: WorkerId) -> Counters;
    fn central_counters(&self) -> Counters;
    fn is_idle(&self, worker: WorkerId) -> bool;
    fn work(&self) -> Work;
    fn plan(&self) -> Option<&Plan>;
    /// Notes who runs where within the window, ns, if there is one.
    fn record(&mut self, window: Option<Range<u64>>);
    /// What was noted, in the order in which it stopped.
    fn take_slices(&mut self) -> Vec<Slice>;
}
