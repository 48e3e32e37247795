//! After construction a policy never allocates: a million events under a counting allocator.

#![expect(unsafe_code, reason = "a global allocator is an unsafe trait")]

use headway_contract::PlainQueues;
use headway_policy::host::{
    self, Allocator, AppId, AppKind, AppShape, CoreId, HostShape, HostTopology, Move,
};
use headway_policy::rack::{
    self, Bouncing, Forward, Mark, Packet, RackShape, RackSystem, RackVisit, Reply, ServerId,
    Switch,
};
use headway_policy::server::role::{Ingress, Local, Monitor, Next, Owner};
use headway_policy::server::systems::{self, NAMES, System, VisitInstance};
use headway_policy::{BitSet, ClassHint, ClassId, Job, JobId, Rng, Shape, WorkerId};
use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract is the callee's.
        unsafe { SystemAllocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { SystemAllocator.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const EVENTS: u64 = 1_000_000;
const WORKERS: usize = 14;

struct Drive;

impl VisitInstance for Drive {
    type Output = u64;

    /// Workers are kept busy and look for work in random turns, service times wander so that plans are revised, and now and
    /// then a core goes and comes back.
    fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, mut system: System<I, L, M>) -> u64 {
        let ingress = &mut system.ingress;
        let mut rng = Rng::new(7);
        let mut toy = PlainQueues::new(WORKERS, 512);
        let mut free: Vec<JobId> = (0..256).map(JobId).collect();
        let mut running: Vec<(WorkerId, JobId)> = Vec::with_capacity(512);
        let before = ALLOCATIONS.with(Cell::get);
        for event in 0..EVENTS {
            let now_ns = event * 1_000;
            if let Some(id) = free.pop() {
                let class = ClassId(rng.below(6) as u16);
                let job = Job {
                    flow: rng.next_u64() as u32,
                    ..Job::new(id, class, now_ns)
                };
                if ingress.arrived(now_ns, job).is_err() {
                    free.push(id);
                }
            }
            while let Some(dispatch) = ingress.poll(now_ns) {
                toy.deliver(dispatch.worker, dispatch.job);
            }
            toy.me = rng.below(WORKERS);
            if let Next::Run { job, .. } = system.locals[toy.me].next(now_ns, &mut toy) {
                running.push((WorkerId(toy.me as u16), job));
            }
            if !running.is_empty() {
                let (worker, job) = running.swap_remove(rng.below(running.len()));
                let swing = 1 + (event / 50_000) % 7;
                ingress.finished(
                    now_ns,
                    worker,
                    job,
                    swing * 1_000 * (1 + rng.below(100) as u64),
                );
                toy.me = worker.index();
                system.locals[worker.index()].finished(
                    now_ns,
                    &Job::new(job, ClassId(0), 0),
                    1_000,
                    &mut toy,
                );
                free.push(job);
            }
            if I::OWNER == Owner::Dispatcher && event % 10_007 == 0 {
                ingress.worker_removed(now_ns, WorkerId(3));
                ingress.worker_added(now_ns, WorkerId(3));
            }
        }
        ALLOCATIONS.with(Cell::get) - before
    }
}

#[test]
fn a_million_events_allocate_nothing() {
    let mut shape = Shape::new(WORKERS);
    for mean_ns in [5_700, 6_000, 20_000, 88_000, 100_000] {
        shape = shape.class(mean_ns, 0.2);
    }
    shape.queue_limit = 200;
    let composed = [
        "compose,discipline=typed,placement=jbsq,preemption=quantum,control=darc,window=1000",
        "compose,discipline=mq,pick=bvt,preemption=quantum",
        "compose,placement=shortest",
        "compose,placement=choices",
    ];
    for name in NAMES.iter().chain(&composed) {
        let params = match *name {
            "darc" | "darc-stable" => ",window=1000",
            _ => "",
        };
        let spec = format!("{name}{params}").parse().unwrap();
        let allocations = systems::with(&spec, &shape, Drive).unwrap();
        assert_eq!(allocations, 0, "{name} allocated");
    }
}

/// Applications that are always congested, and kthreads that leave at random.
struct Hosts;

impl host::HostView for Hosts {
    fn kthread(&self, _app: AppId, _kthread: host::KthreadId) -> host::Kthread {
        let queued = host::Counters { head: 0, tail: 1 };
        host::Kthread {
            run: queued,
            ingress: queued,
        }
    }

    fn shared(&self, _app: AppId) -> host::Counters {
        host::Counters::default()
    }
    fn usage(&self, _app: AppId) -> host::Usage {
        host::Usage::default()
    }
    fn interrupted(&self, _app: AppId) -> BitSet {
        BitSet::range(0, 1)
    }
}

struct DriveHost;

impl host::systems::HostVisit for DriveHost {
    type Output = u64;

    fn visit<A: Allocator>(self, mut system: host::systems::HostSystem<A>) -> u64 {
        let allocator = &mut system.allocator;
        let mut rng = Rng::new(7);
        let before = ALLOCATIONS.with(Cell::get);
        for event in 0..EVENTS {
            let now_ns = event * 1_000;
            while let Some(decision) = allocator.poll() {
                if let Move::Revoke { core, .. } = decision {
                    allocator.released(now_ns, core);
                }
            }
            let core = CoreId(rng.below(16) as u16);
            if A::PARKS && allocator.cores().tenant(core).is_some() {
                allocator.released(now_ns, core);
            }
            allocator.arrived(now_ns, AppId(rng.below(3) as u16));
            if allocator
                .next_deadline_ns()
                .is_some_and(|at_ns| at_ns <= now_ns)
            {
                allocator.look(now_ns, &Hosts);
            }
        }
        ALLOCATIONS.with(Cell::get) - before
    }
}

#[test]
fn a_host_allocates_nothing_either() {
    let app = |guaranteed, kind| AppShape {
        guaranteed,
        most: 16,
        kind,
    };
    let shape = HostShape {
        topology: HostTopology::paired(16),
        apps: vec![
            app(6, AppKind::Latency),
            app(4, AppKind::Latency),
            app(0, AppKind::Batch),
        ],
        seed: 1,
    };
    for name in ["static", "interval,period=50us", "shenango"] {
        let allocations = host::systems::with(&name.parse().unwrap(), &shape, DriveHost).unwrap();
        assert_eq!(allocations, 0, "{name} allocated");
    }
}

struct DriveRack;

impl RackVisit for DriveRack {
    type Output = (u64, u64);

    /// Requests and replies in random turns, some bounced, and now and then a server that loses a core and gains it back.
    /// Counting begins after the tables are written, since the control plane is not on a request's path.
    fn visit<S: Switch + Send + 'static>(self, mut system: RackSystem<S>) -> (u64, u64) {
        const IN_FLIGHT: usize = 4096;
        let switch = &mut system.switch;
        if let (Some(control), Some(shaper)) = (&mut system.control, switch.shaper()) {
            let scores: Vec<f64> = (0..control.candidates().len())
                .map(|grouping: usize| -(grouping as f64))
                .collect();
            control.choose(&scores);
            control.install(shaper);
        }
        let mut rng = Rng::new(7);
        let mut flights: Vec<(ServerId, Packet)> = Vec::with_capacity(IN_FLIGHT);
        let mut answered = 0;
        let before = ALLOCATIONS.with(Cell::get);
        for event in 0..EVENTS {
            let now_ns = event * 100;
            let mut packet = Packet::new(ClassId(rng.below(6) as u16), event as u32);
            packet.bounced = system.bouncing != Bouncing::Off && event % 100 == 0;
            // Bursts: for a while more arrive than are answered.
            if flights.len() < IN_FLIGHT / 2 && (rng.below(2) == 0 || event / 50_000 % 2 == 0) {
                match switch.request(now_ns, packet) {
                    Forward::To(server) => flights.push((server, packet)),
                    Forward::Both(original, clone) => {
                        let marked = |mark| Packet { mark, ..packet };
                        flights.push((original, marked(Mark::Original)));
                        flights.push((clone, marked(Mark::Clone)));
                    }
                    Forward::Held | Forward::Shed => {}
                }
            }
            if !flights.is_empty() {
                let (server, packet) = flights.swap_remove(rng.below(flights.len()));
                let reply = Reply {
                    server,
                    class: packet.class,
                    index: packet.index,
                    mark: packet.mark,
                    execution_ns: 1 + rng.below(100_000) as u64,
                    queue: rng.below(12) as u32,
                };
                answered += u64::from(switch.reply(now_ns, &reply));
            }
            if event % 10_007 < 2 {
                switch.capacity(ServerId(3), 9 + event as usize % 10_007);
            }
            while let Some(released) = switch.release() {
                flights.push(released);
            }
        }
        (ALLOCATIONS.with(Cell::get) - before, answered)
    }
}

#[test]
fn a_switch_allocates_nothing_on_the_way_of_a_request() {
    let shape = RackShape {
        cores: vec![10; 8],
        types: [5_700.0, 6_000.0, 20_000.0, 88_000.0, 100_000.0]
            .map(|mean_ns| ClassHint::new(mean_ns, 0.2))
            .to_vec(),
        room: 1024,
        seed: 7,
    };
    let bounded = "r2p2,n=3";
    for name in
        rack::systems::NAMES
            .iter()
            .chain(&[bounded, "pallas,clone=any", "racksched,choices=2"])
    {
        let spec = name.parse().unwrap();
        let (allocations, answered) = rack::systems::with(&spec, &shape, DriveRack).unwrap();
        assert_eq!(allocations, 0, "{name} allocated");
        assert!(answered > EVENTS / 2, "{name} answered {answered}");
    }
}
