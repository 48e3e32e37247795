//! Under a flood of longs, shorts that ask for less than their share are answered: 999 of 1 000, under every policy that promises it, in every layout,
//! though the server has fewer buffers than there are longs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use headway_machine::Topology;
use headway_machine::thread::pin_current;
use headway_policy::server::systems::{NAMES, ServerSpec};
use headway_policy::{Resume, Shape};
use headway_runtime::{Layout, admit};
use headway_world::{ServedWorkload, TimedRequest};

const SHORT_NS: u64 = 2_000;
const LONG_NS: u64 = 100_000;
/// The shorts ask for a fifth of one worker, the longs for six times what all have.
const SHORT_GAP_NS: u64 = 10_000;
const SHORTS: u64 = 500;

/// Whether a policy promises that shorts are served beside a flood of longs, in all layouts. A new policy says it here.
fn promises_shorts(policy: &str) -> bool {
    match policy {
        "fixed-priority" | "static-partition" | "darc-static" | "synergy" | "sjf" | "srpt"
        | "mlfq" | "gittins" | "drr" | "cscq" | "shinjuku-mq" => true,
        // Requests of all classes wait in one queue, which a flood of any fills.
        "c-fcfs" | "d-fcfs" | "work-stealing" | "jbsq" | "shinjuku-sq" | "shinjuku-ci"
        | "concord" | "tiny-quanta" | "tardis" | "on-blocked" | "compose" => false,
        // They learn what the classes ask for first.
        "darc" | "darc-paper" | "darc-stable" => false,
        // A long that waited has the earlier deadline: who is overloaded misses them all (Liu and Layland, 1973).
        "edf" => false,
        // A request of each class by turns: of what these workers can serve, the shorts ask for more than that.
        "wrr" => false,
        other => panic!("say whether {other} promises shorts anything under a flood of longs"),
    }
}

/// A server that is flooded.
struct FloodedServer {
    policy: &'static str,
    layout: Layout,
    workers: usize,
    /// Its buffers, fewer than there are longs.
    slots: usize,
}

impl FloodedServer {
    /// Of each policy that promises it, in each layout.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for policy in NAMES
            .iter()
            .copied()
            .filter(|policy| promises_shorts(policy))
        {
            let mut shape = Shape::new(2).class(SHORT_NS, 0.5).class(LONG_NS, 0.5);
            shape.resume = Resume::Anywhere;
            let spec: ServerSpec = policy.parse().unwrap();
            let layouts: &[Layout] = if admit(&spec, &shape).unwrap().is_laid_out() {
                &[Layout::Inline, Layout::Dedicated]
            } else {
                &[Layout::Auto]
            };
            for &layout in layouts {
                for (workers, slots) in [(2, 200), (3, 240)] {
                    all.push(Self {
                        policy,
                        layout,
                        workers,
                        slots,
                    });
                }
            }
        }
        all
    }

    fn arrivals(&self) -> Vec<TimedRequest> {
        let end_ns = SHORTS * SHORT_GAP_NS;
        let every = |gap_ns: u64, class, service_ns| {
            (0..end_ns / gap_ns).map(move |number| TimedRequest {
                at_ns: number * gap_ns,
                class,
                service_ns,
            })
        };
        let long_gap_ns = LONG_NS / self.workers as u64 / 6;
        let mut arrivals: Vec<TimedRequest> = every(SHORT_GAP_NS, 0, SHORT_NS)
            .chain(every(long_gap_ns, 1, LONG_NS))
            .collect();
        arrivals.sort_by_key(|arrival| arrival.at_ns);
        arrivals
    }

    /// Of the shorts and of the longs, how many are answered, and how many there are.
    fn served(&self) -> [(usize, usize); 2] {
        let Self {
            policy,
            layout,
            workers,
            slots,
        } = *self;
        let workload = ServedWorkload {
            policy: policy.parse().unwrap(),
            workers,
            layout,
            slots: Some(slots),
            room: 256,
            means_ns: [SHORT_NS, LONG_NS],
            arrivals: self.arrivals(),
        };
        let sojourns = workload.sojourns_ns(7);
        let sojourns = sojourns.unwrap_or_else(|faults| panic!("{policy}, {layout:?}: {faults:?}"));
        [0, 1].map(|class| {
            let fates = workload.arrivals.iter().zip(&sojourns);
            let of_class = fates.filter(|(arrival, _)| arrival.class == class);
            let answered = of_class.clone().filter(|(_, sojourn)| sojourn.is_some());
            (answered.count(), of_class.count())
        })
    }

    /// What does not hold of it.
    fn fault(&self) -> Option<String> {
        let Self {
            policy,
            layout,
            workers,
            slots,
        } = self;
        let [(shorts, of_shorts), (longs, of_longs)] = self.served();
        let said = format!(
            "{policy}, {layout:?}, {workers} workers, {slots} buffers: {shorts} of {of_shorts} shorts, {longs} of {of_longs} longs"
        );
        let amiss = shorts * 1_000 < of_shorts * 999;
        let is_flood = 0 < longs && longs < of_longs;
        (amiss || !is_flood).then_some(said)
    }
}

#[test]
fn shorts_within_their_share_are_answered() {
    let (servers, next) = (FloodedServer::all(), AtomicUsize::new(0));
    let faults = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = Topology::read("/sys").map(|topology| topology.pinning_order());
    let cores = cores.unwrap_or_default();
    std::thread::scope(|scope| {
        for place in 0..threads {
            let core = cores.get(place % cores.len().max(1)).copied();
            let (servers, next, faults) = (&servers, &next, &faults);
            scope.spawn(move || {
                // The world's threads inherit the core: they take turns anyway, and a turn that stays on its core is cheap.
                let _ = core.map(pin_current);
                while let Some(server) = servers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    faults.lock().unwrap().extend(server.fault());
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
