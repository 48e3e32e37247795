//! A request on its way into a server, and its departure.

use headway_policy::Plan;

/// The time of no event: later than every event.
pub const NEVER: u64 = u64::MAX;

/// A request on its way to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimRequest {
    /// The sender's identifier; the server passes it through.
    pub tag: u64,
    /// Start of its latency, ns.
    pub arrived_ns: u64,
    /// Its service time without any cost of the machinery, ns.
    pub service_ns: u64,
    /// Hash of its flow.
    pub flow: u32,
    /// Its class.
    pub class: u16,
    /// The class that the server's classifier assigns.
    pub taken_for: u16,
    /// Whether it is measured.
    pub counted: bool,
}

/// Receives the events of a server.
pub trait Sink {
    /// The request is done.
    fn finished(&mut self, now_ns: u64, request: &SimRequest);
    /// The request was shed.
    fn shed(&mut self, now_ns: u64, request: &SimRequest);
    /// The server's plan changed.
    fn replanned(&mut self, now_ns: u64, plan: Option<&Plan>);
}

/// A request's departure from a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// Time of the departure, ns.
    pub at_ns: u64,
    /// The request.
    pub request: SimRequest,
    /// Whether it was shed instead of served.
    pub shed: bool,
}

impl Sink for Vec<Left> {
    #[inline]
    fn finished(&mut self, now_ns: u64, request: &SimRequest) {
        self.push(Left {
            at_ns: now_ns,
            request: *request,
            shed: false,
        });
    }

    #[inline]
    fn shed(&mut self, now_ns: u64, request: &SimRequest) {
        self.push(Left {
            at_ns: now_ns,
            request: *request,
            shed: true,
        });
    }

    /// A caller that collects requests reads the plan itself.
    #[inline]
    fn replanned(&mut self, _now_ns: u64, _plan: Option<&Plan>) {}
}

/// Sums over a server's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Worker time spent on requests and on the machinery's costs, ns.
    pub busy_ns: u64,
    /// Worker time idle while some request waited, ns; in a rack, while one waited anywhere in it.
    pub wasted_ns: u64,
    /// Requests interrupted.
    pub preemptions: u64,
    /// Time the dispatcher ran requests itself, ns.
    pub dispatcher_ns: u64,
}
