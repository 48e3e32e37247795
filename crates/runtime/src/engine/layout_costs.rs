//! By what a layout is chosen: what a server carries with a thread beside its workers, and without.

use headway_policy::ClassHint;

/// The policy's quantum where nothing else is known, ns: a worker that keeps its own time looks about so often.
const QUANTUM_NS: f64 = 5_000.0;

/// The service time for which a layout is chosen where none is declared, ns.
const UNKNOWN_SERVICE_NS: f64 = 10_000.0;

/// A dispatcher's thread sees each arrival at once, while busy workers look for arrivals now and then. So they take turns only where that carries this many
/// times as much.
const TURNS_GAIN: f64 = 1.25;

/// What the layouts of a server cost on a machine, ns. [`Layout::Auto`](crate::Layout::Auto) compares how many requests a second the server carries:
///
/// | layout | requests per second |
/// |---|---|
/// | a dispatcher's thread | the smaller of workers ÷ (service + `worker_ns`) and 1 ÷ `dispatch_ns` |
/// | workers in turn | the smaller of workers ÷ (service + `inline_ns`) and 1 ÷ `turn_ns` |
///
/// Workers take turns where that carries a quarter more. A monitor's thread (SYNERGY's timer core) spares workers `renew_ns` each quantum, and
/// pays where that is more than its core.
///
/// `headway calibrate` measures the costs, and prints the built-in ones beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutCosts {
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

/// Measured on an EPYC of family 25, two cores of a virtual machine (docs/lab/2026-11-22-performance.md, "The dispatcher": 13 M requests a second through
/// one dispatcher in batches, 6.6 M through one worker that takes turns), and what docs/performance.md has of a slice that ends with nothing waiting.
impl Default for LayoutCosts {
    fn default() -> Self {
        Self {
            dispatch_ns: 77,
            worker_ns: 77,
            inline_ns: 152,
            turn_ns: 75,
            renew_ns: 39,
        }
    }
}

/// The mean service time of requests of these classes, ns; `None` where a class says nothing of its own.
#[must_use]
pub fn mean_service_ns(classes: &[ClassHint]) -> Option<f64> {
    let is_told =
        |hint: &ClassHint| hint.mean_ns > 0.0 && hint.mean_ns.is_finite() && hint.share > 0.0;
    if classes.is_empty() || !classes.iter().all(is_told) {
        return None;
    }
    let shares: f64 = classes.iter().map(|hint| hint.share).sum();
    let sum: f64 = classes.iter().map(|hint| hint.share * hint.mean_ns).sum();
    Some(sum / shares)
}

/// A thread beside the workers that may be had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadBeside {
    /// Threads that dispatch; 0: a monitor's.
    pub(crate) dispatchers: usize,
    /// Workers without it.
    pub(crate) inline_workers: usize,
    /// Workers with it.
    pub(crate) workers: usize,
}

impl LayoutCosts {
    /// Whether the thread is worth its core, for requests of this mean service time.
    pub(crate) fn favour(&self, thread: ThreadBeside, service_ns: Option<f64>) -> bool {
        let service_ns = service_ns.unwrap_or(UNKNOWN_SERVICE_NS);
        let carried = |workers: usize, per_request_ns: f64| workers as f64 / per_request_ns;
        if thread.dispatchers == 0 {
            let renewals_ns = service_ns / QUANTUM_NS * self.renew_ns as f64;
            let alone = carried(thread.inline_workers, service_ns + renewals_ns);
            return alone <= carried(thread.workers, service_ns);
        }
        let serial = |ns: u64| thread.dispatchers as f64 / ns.max(1) as f64;
        let inline = carried(thread.inline_workers, service_ns + self.inline_ns as f64);
        let beside = carried(thread.workers, service_ns + self.worker_ns as f64);
        let inline = inline.min(serial(self.turn_ns));
        inline <= TURNS_GAIN * beside.min(serial(self.dispatch_ns))
    }
}
