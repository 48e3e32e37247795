//! A wrapper decides as what it wraps: over random events both are asked everything there is to ask.

use headway_contract::PlainQueues;
use headway_policy::server::controls::{
    AnyControl, Control, Darc, DarcRules, DarcStable, Fixed, GivenShares, Partition,
};
use headway_policy::server::disciplines::{
    AnyDiscipline, CycleStealing, Deadlines, DeficitRoundRobin, Discipline, Earliest, Fifo,
    Gittins, Levels, Mlfq, MultiQueue, Reentry, Shortest, SizeSource, Sizes, SplitFifo, Typed,
    WeightedRoundRobin,
};
use headway_policy::server::monitors::{
    AnyMonitor, Lateness, Outranked, Overtake, Quantum, Ticks, Urgency,
};
use headway_policy::server::placements::{
    self, AnyPlacement, Bounded, Choices, IdleWorker, Placement, Reserved, ReservedBounded, Workers,
};
use headway_policy::server::reservation::Rules;
use headway_policy::server::role::{GroupShares, Share};
use headway_policy::server::role::{Ingress, Monitor};
use headway_policy::{
    BitSet, Central, CentralParts, ClassId, Job, JobId, Jobs, Order, Plan, Resume, Shape, WorkerId,
    Working,
};
use proptest::prelude::*;

const WORKERS: usize = 3;
const CLASSES: u16 = 3;
const LIMIT: usize = 6;
/// Short, long, UNKNOWN.
const QUEUES: usize = 3;

fn shape() -> Shape {
    let shape = Shape::new(WORKERS).class(1_000, 0.5).class(100_000, 0.5);
    Shape {
        queue_limit: LIMIT,
        ..shape
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(u16),
    Poll,
    /// The worker's request yields after this time.
    Yield(usize, u64),
    Finish(usize),
    Leave(usize),
    Join(usize),
    Withdraw(u16),
    Assign(usize, usize),
    /// A monitor is asked about the worker.
    Expire(usize),
    /// Other rules, or the first ones again.
    Adopt,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..CLASSES).prop_map(Event::Arrive),
        6 => Just(Event::Poll),
        2 => (0..WORKERS, 1..20_000u64).prop_map(|(worker, ns)| Event::Yield(worker, ns)),
        3 => (0..WORKERS).prop_map(Event::Finish),
        1 => (0..WORKERS).prop_map(Event::Leave),
        1 => (0..WORKERS).prop_map(Event::Join),
        1 => (0..CLASSES).prop_map(Event::Withdraw),
        1 => (1..3usize, 1..3usize).prop_map(|(short, long)| Event::Assign(short, long)),
        2 => (0..WORKERS).prop_map(Event::Expire),
        1 => Just(Event::Adopt),
    ];
    prop::collection::vec(event, 1..120)
}

fn group_shares(short: usize, long: usize) -> GroupShares {
    let share = |classes: &[usize], workers| Share {
        classes: classes.iter().copied().collect(),
        workers,
    };
    GroupShares {
        shares: vec![share(&[0], short), share(&[1, 2], long)],
        ascending: Vec::new(),
    }
}

/// Everything that can be asked of two ingresses.
fn same<A: Ingress, B: Ingress>(plain: &A, wrapped: &B, jobs: u32) -> Result<(), TestCaseError> {
    prop_assert_eq!(A::OWNER, B::OWNER);
    prop_assert_eq!(plain.waiting(), wrapped.waiting());
    for worker in (0..WORKERS as u16).map(WorkerId) {
        prop_assert_eq!(plain.wants(worker), wrapped.wants(worker));
    }
    for others in 0..4 {
        prop_assert_eq!(plain.peek(others), wrapped.peek(others));
    }
    for job in (0..jobs).map(JobId) {
        prop_assert_eq!(plain.dispatched(job), wrapped.dispatched(job));
    }
    for class in (0..CLASSES).map(ClassId) {
        prop_assert_eq!(plain.would_start(class), wrapped.would_start(class));
        for attained_ns in [0, 1_500, 70_000] {
            let index = plain.index(class, attained_ns);
            prop_assert_eq!(index, wrapped.index(class, attained_ns));
        }
    }
    prop_assert_eq!(plain.plan(), wrapped.plan());
    prop_assert_eq!(plain.revisions(), wrapped.revisions());
    Ok(())
}

/// Two monitors over one ingress say the same.
struct Watch<A, B>(A, B);

/// Drives both; what one says the other says. The second of each has the rules that are adopted.
fn agree<A: Ingress, B: Ingress, M: Monitor, N: Monitor>(
    [mut plain, fresh_plain]: [A; 2],
    [mut wrapped, fresh_wrapped]: [B; 2],
    watch: Option<[Watch<M, N>; 2]>,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let (mut watch, fresh_watch) = watch.map(|[watch, fresh]| (watch, fresh)).unzip();
    let toy = PlainQueues::new(WORKERS, 8);
    let mut running: [Option<Job>; WORKERS] = [None; WORKERS];
    let mut present = [true; WORKERS];
    let mut jobs = Vec::<Job>::new();
    let mut epoch = 0;
    for (at, event) in events.iter().enumerate() {
        let now_ns = (at as u64 + 1) * 1_000;
        match *event {
            Event::Arrive(class) => {
                let job = Job::new(JobId(jobs.len() as u32), ClassId(class), now_ns);
                prop_assert_eq!(plain.arrived(now_ns, job), wrapped.arrived(now_ns, job));
                jobs.push(job);
            }
            Event::Poll => {
                let dispatch = plain.poll(now_ns);
                prop_assert_eq!(dispatch, wrapped.poll(now_ns));
                if let Some(dispatch) = dispatch {
                    let job = *plain
                        .dispatched(dispatch.job)
                        .unwrap_or(&jobs[dispatch.job.index()]);
                    let held = &mut running[dispatch.worker.index()];
                    // A queue of one would do: what is behind the first only waits for a finish.
                    if held.is_none() {
                        *held = Some(job);
                        epoch += 1;
                        if let Some(Watch(a, b)) = &mut watch {
                            prop_assert_eq!(
                                a.started(now_ns, dispatch.worker, &job, epoch, &toy),
                                b.started(now_ns, dispatch.worker, &job, epoch, &toy)
                            );
                        }
                    } else {
                        plain.finished(now_ns, dispatch.worker, job.id, 1_000);
                        wrapped.finished(now_ns, dispatch.worker, job.id, 1_000);
                    }
                }
            }
            Event::Yield(worker, ran_ns) => {
                if let Some(job) = running[worker].take() {
                    let id = WorkerId(worker as u16);
                    let attained_ns = job.attained_ns + ran_ns;
                    let job = Job { attained_ns, ..job };
                    stopped(&mut watch, now_ns, id, epoch);
                    plain.yielded(now_ns, id, job);
                    wrapped.yielded(now_ns, id, job);
                }
            }
            Event::Finish(worker) => {
                if let Some(job) = running[worker].take() {
                    let id = WorkerId(worker as u16);
                    let cpu_ns = job.attained_ns + 5_000;
                    stopped(&mut watch, now_ns, id, epoch);
                    plain.finished(now_ns, id, job.id, cpu_ns);
                    wrapped.finished(now_ns, id, job.id, cpu_ns);
                }
            }
            Event::Leave(worker)
                if present[worker] && present.iter().filter(|&&is| is).count() > 1 =>
            {
                present[worker] = false;
                plain.worker_removed(now_ns, WorkerId(worker as u16));
                wrapped.worker_removed(now_ns, WorkerId(worker as u16));
            }
            Event::Join(worker) if !present[worker] => {
                present[worker] = true;
                plain.worker_added(now_ns, WorkerId(worker as u16));
                wrapped.worker_added(now_ns, WorkerId(worker as u16));
            }
            Event::Leave(_) | Event::Join(_) => {}
            Event::Withdraw(class) => {
                let class = ClassId(class);
                prop_assert_eq!(plain.withdraw(class), wrapped.withdraw(class));
            }
            Event::Assign(short, long) => {
                plain.assign(now_ns, &group_shares(short, long));
                wrapped.assign(now_ns, &group_shares(short, long));
            }
            Event::Expire(worker) => {
                let id = WorkerId(worker as u16);
                if let (Some(Watch(a, b)), true) = (&mut watch, running[worker].is_some()) {
                    let verdict = a.expired(now_ns, id, &plain, &toy);
                    prop_assert_eq!(verdict, b.expired(now_ns, id, &wrapped, &toy));
                }
            }
            Event::Adopt => {
                plain.adopt(&fresh_plain);
                wrapped.adopt(&fresh_wrapped);
                if let (Some(Watch(a, b)), Some(Watch(x, y))) = (&mut watch, &fresh_watch) {
                    a.adopt(x);
                    b.adopt(y);
                }
            }
        }
        if let Some(Watch(a, b)) = &mut watch {
            prop_assert_eq!(
                (M::PREEMPTS, M::ON_DISPATCHER),
                (N::PREEMPTS, N::ON_DISPATCHER)
            );
            prop_assert!(N::POLLS || !M::POLLS, "a wrapper polls what it wraps");
            prop_assert_eq!(a.keeps_times(), b.keeps_times());
            prop_assert_eq!(a.next_deadline_ns(), b.next_deadline_ns());
            prop_assert_eq!(a.poll(now_ns, &plain, &toy), b.poll(now_ns, &wrapped, &toy));
            if a.next_deadline_ns().is_some() {
                prop_assert_eq!(a.tick(now_ns, &toy), b.tick(now_ns, &toy));
            }
        }
        same(&plain, &wrapped, jobs.len() as u32)?;
    }
    Ok(())
}

fn stopped<A: Monitor, B: Monitor>(
    watch: &mut Option<Watch<A, B>>,
    now_ns: u64,
    worker: WorkerId,
    epoch: u64,
) {
    if let Some(Watch(a, b)) = watch {
        a.stopped(now_ns, worker, epoch);
        b.stopped(now_ns, worker, epoch);
    }
}

const UNWATCHED: Option<[Watch<AnyMonitor, AnyMonitor>; 2]> = None;

fn central<D: Discipline, P: Placement, C: Control>(
    parts: CentralParts<D, P, C>,
    resume: Resume,
) -> Central<D, P, C> {
    let shape = shape();
    let plan = Plan::open(Order::Rank, shape.ascending(), BitSet::range(0, WORKERS));
    let jobs = Jobs::new(256);
    Central::new(jobs, Workers::new(WORKERS, 2), plan, parts).resuming(resume, WORKERS)
}

fn resume() -> impl Strategy<Value = Resume> {
    prop_oneof![Just(Resume::Anywhere), Just(Resume::OwnWorker)]
}

proptest! {
    /// Each discipline.
    #[test]
    fn disciplines_agree(events in events(), resume in resume()) {
        let shape = shape();
        let classes = shape.queues();
        macro_rules! check {
            ($kind:ident, $new:expr) => {
                check!($kind, $new, $new)
            };
            ($kind:ident, $new:expr, $other:expr) => {
                agree(
                    [$new, $other].map(|it| central(CentralParts { discipline: it, placement: IdleWorker, control: Fixed::Open }, resume)),
                    [$new, $other].map(|it| central(CentralParts { discipline: AnyDiscipline::$kind(it), placement: IdleWorker, control: Fixed::Open }, resume)),
                    UNWATCHED,
                    &events,
                )?;
            };
        }
        check!(Fifo, Fifo::new(LIMIT));
        check!(Typed, Typed::new(classes, LIMIT));
        check!(Shortest, Shortest::by_size(SizeSource::Profile, &shape));
        check!(
            Earliest,
            Earliest::by_deadline(Deadlines::new(&shape, 10.0), &shape),
            Earliest::by_deadline(Deadlines::new(&shape, 2.0), &shape)
        );
        check!(
            DeficitRoundRobin,
            DeficitRoundRobin::new(classes, LIMIT, 5_000, Sizes::new(SizeSource::Profile, &shape)),
            DeficitRoundRobin::new(classes, LIMIT, 500, Sizes::new(SizeSource::Profile, &shape))
        );
        check!(
            WeightedRoundRobin,
            WeightedRoundRobin::new(vec![3, 1, 1], LIMIT),
            WeightedRoundRobin::new(vec![1, 5, 1], LIMIT)
        );
        check!(
            Mlfq,
            Mlfq::new(Levels { quantum_ns: 5_000, count: 4 }, QUEUES, LIMIT),
            Mlfq::new(Levels { quantum_ns: 50_000, count: 4 }, QUEUES, LIMIT)
        );
        check!(Gittins, Gittins::new(&shape));
        check!(
            MultiQueue,
            MultiQueue::by_wait_over_slo(&shape, 10.0, Reentry::Head),
            MultiQueue::by_wait_over_slo(&shape, 3.0, Reentry::Tail)
        );
        check!(MultiQueue, MultiQueue::by_virtual_time(&shape, Reentry::Tail));
        check!(
            CycleStealing,
            CycleStealing::new(shape.longs(), 0.5, WORKERS, QUEUES, LIMIT),
            CycleStealing::new(shape.longs(), 0.9, WORKERS, QUEUES, LIMIT)
        );
    }

    /// Each placement.
    #[test]
    fn placements_agree(events in events()) {
        macro_rules! check {
            ($kind:ident, $new:expr) => {
                check!($kind, $new, $new)
            };
            ($kind:ident, $new:expr, $other:expr) => {
                agree(
                    [$new, $other].map(|it| central(CentralParts { discipline: Typed::new(3, LIMIT), placement: it, control: Fixed::First(1) }, Resume::Anywhere)),
                    [$new, $other].map(|it| {
                        central(CentralParts { discipline: Typed::new(3, LIMIT), placement: AnyPlacement::$kind(it), control: Fixed::First(1) }, Resume::Anywhere)
                    }),
                    UNWATCHED,
                    &events,
                )?;
            };
        }
        check!(Idle, IdleWorker);
        check!(Reserved, Reserved);
        check!(ReservedBounded, ReservedBounded);
        check!(Shortest, placements::ShortestQueue::new(7));
        check!(Choices, Choices::new(2, 7), Choices::new(1, 7));
    }

    /// Each control.
    #[test]
    fn controls_agree(events in events()) {
        let shape = shape();
        let rules = DarcRules { window: 4, ..DarcRules::default() };
        let reservation = Rules { delta: 1_000.0, spillway: 2 };
        let other = DarcRules { window: 3, delay: 1.0, reservation, ..rules };
        macro_rules! check {
            ($kind:ident, $new:expr) => {
                check!($kind, $new, $new)
            };
            ($kind:ident, $new:expr, $other:expr) => {
                agree(
                    [$new, $other].map(|it| central(CentralParts { discipline: Typed::new(3, LIMIT), placement: Reserved, control: it }, Resume::Anywhere)),
                    [$new, $other].map(|it| {
                        central(CentralParts { discipline: Typed::new(3, LIMIT), placement: Reserved, control: AnyControl::$kind(it) }, Resume::Anywhere)
                    }),
                    UNWATCHED,
                    &events,
                )?;
            };
        }
        check!(Fixed, Fixed::First(1), Fixed::First(2));
        check!(Partition, Partition::new(&shape.classes));
        check!(Darc, Darc::new(2, rules, None), Darc::new(2, other, None));
        check!(DarcStable, DarcStable::new(2, rules, None), DarcStable::new(2, other, None));
    }

    /// Each monitor.
    #[test]
    fn monitors_agree(events in events()) {
        let shape = shape();
        let levels = Levels { quantum_ns: 5_000, count: 4 };
        macro_rules! check {
            ($kind:ident, $discipline:expr, $new:expr, $other:expr) => {
                let discipline = || central(CentralParts { discipline: $discipline, placement: IdleWorker, control: Fixed::Open }, Resume::Anywhere);
                agree(
                    [discipline(), discipline()],
                    [discipline(), discipline()],
                    Some([
                        Watch($new, AnyMonitor::$kind($new)),
                        Watch($other, AnyMonitor::$kind($other)),
                    ]),
                    &events,
                )?;
            };
        }
        let lateness = || Lateness::one_sided_normal(100);
        check!(Quantum, Fifo::new(LIMIT), Quantum::new(5_000, lateness(), 7), Quantum::new(500, lateness(), 7));
        let longer = Levels { quantum_ns: 50_000, ..levels };
        check!(Ticks, Mlfq::new(levels, QUEUES, LIMIT), Ticks::new(levels, WORKERS), Ticks::new(longer, WORKERS));
        check!(Outranked, Gittins::new(&shape), Outranked::new(2_000, WORKERS), Outranked::new(9_000, WORKERS));
        let overtake = || Overtake::new(Urgency::Remaining, WORKERS).delayed(500);
        check!(Overtake, Shortest::by_size(SizeSource::Profile, &shape), overtake(), overtake().after(700));
    }

    /// A dispatcher that may work but does not decides like one that only dispatches. A working dispatcher reports its work for itself alone.
    #[test]
    fn a_working_dispatcher_agrees(events in events(), resume in resume()) {
        let given = || central(CentralParts { discipline: Typed::new(3, LIMIT), placement: Reserved, control: GivenShares::new(3) }, resume);
        agree([given(), given()], [given(), given()].map(|it| Working::new(it, 0)), UNWATCHED, &events)?;
        let split = || central(CentralParts { discipline: SplitFifo::new(LIMIT), placement: Bounded, control: Fixed::Open }, resume);
        agree([split(), split()], [split(), split()].map(|it| Working::new(it, 0)), UNWATCHED, &events)?;
    }
}
