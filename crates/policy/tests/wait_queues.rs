//! SYNERGY with a wait queue for each kind of longs, over random traffic.

use headway_contract::PlainQueues;
use headway_policy::server::locals::SynergyWorker;
use headway_policy::server::monitors::TimerCore;
use headway_policy::server::role::{
    Backlog, Hearing, Heeding, Ingress, Local, Monitor, Next, PreemptionDecision, Ticking,
};
use headway_policy::server::systems::{self, Steered, System};
use headway_policy::spec::Spec;
use headway_policy::{ClassHint, ClassId, Job, JobId, Shape, WorkerId};
use proptest::prelude::*;

const WORKERS: usize = 3;
const MOST: usize = 256;
/// Means of the classes, µs, not in order: the shorts are 3 and 1, the longs by length 2, 4, 0.
const MEANS_US: [f64; 5] = [500.0, 2.0, 20.0, 1.0, 100.0];
const LONGS: [usize; 3] = [2, 4, 0];

fn shape() -> Shape {
    Shape {
        classes: MEANS_US
            .map(|mean_us| ClassHint::new(mean_us * 1e3, 0.2))
            .to_vec(),
        ..Shape::new(WORKERS)
    }
}

type Synergy = System<Steered, SynergyWorker, TimerCore>;

fn synergy(params: &str) -> Synergy {
    let spec: Spec = format!("synergy,{params}").parse().unwrap();
    systems::synergy(&shape(), &spec).unwrap()
}

#[test]
fn each_kind_has_its_queue_and_the_last_takes_the_rest() {
    assert_eq!(shape().wait_queues(1), [0; 6]);
    assert_eq!(shape().wait_queues(2), [1, 0, 0, 0, 1, 0]);
    assert_eq!(shape().wait_queues(64), [2, 0, 0, 0, 1, 0]);
    let queues = |params| synergy(params).shared_queues.count;
    assert_eq!(
        [queues("q=5us"), queues("waits=2"), queues("waits=9")],
        [1, 2, 3]
    );
    // Nothing long, nothing to tell apart.
    let equal = Shape {
        classes: vec![ClassHint::new(1e3, 1.0)],
        ..shape()
    };
    let spec: Spec = "synergy,waits=4".parse().unwrap();
    assert_eq!(
        systems::synergy(&equal, &spec).unwrap().shared_queues.count,
        1
    );
}

/// What a request says of itself counts for it alone, beside what its class says (§ 5.1): it is timed from then on, goes to the wait queue, and does not
/// count among the shorts.
#[test]
fn a_request_that_says_it_is_long_is_a_long() {
    const SHORT: ClassId = ClassId(3);
    for longs in ["auto", "hints", "learned"] {
        let mut system = synergy(&format!("longs={longs},factor=4"));
        let mut toy = PlainQueues::with_shared(WORKERS, system.shared_queues.count, MOST);
        let (me, quiet) = (WorkerId(0), Job::new(JobId(0), SHORT, 0));
        let said = Job {
            said_long: true,
            ..Job::new(JobId(1), SHORT, 0)
        };
        let local = &mut system.locals[0];
        local.finished(1, &quiet, 1_000, &mut toy);
        for _ in 0..100 {
            local.finished(1, &said, 1_000_000, &mut toy);
        }
        assert_eq!(toy.short_ns(me), 1_000, "{longs}: its time is no short's");
        assert!(!toy.is_long(me, SHORT), "{longs}: its class is not long");
        let monitor = &mut system.monitor;
        assert_eq!(monitor.started(5, me, &quiet, 1, &toy), None);
        assert_eq!(monitor.said_long(9, me, &said, 1, &toy), Some(4_000));
        assert_eq!(monitor.started(20, me, &said, 2, &toy), Some(4_000));
        let by_class = Job {
            said_long: true,
            ..Job::new(JobId(2), ClassId(0), 0)
        };
        let again = monitor.said_long(30, me, &by_class, 2, &toy);
        assert_eq!(again, (longs == "learned").then_some(4_000), "{longs}");
        let (_, before) = toy.shared_counters(0);
        assert!(system.locals[0].yielded(40, &said, &mut toy));
        assert_eq!(toy.shared_counters(0).1, before + 1, "{longs}");
    }
}

/// A long looks at its queue at the end of each quantum: by shorts that do nothing it would look at every probe.
#[test]
fn shorts_of_no_time_leave_longs_half_a_microsecond() {
    let me = WorkerId(0);
    for (short_ns, quantum_ns) in [(1, 500), (249, 500), (251, 502), (3_000, 6_000)] {
        let mut system = synergy("factor=2");
        let mut toy = PlainQueues::with_shared(WORKERS, system.shared_queues.count, MOST);
        let short = Job::new(JobId(0), ClassId(3), 0);
        system.locals[0].finished(1, &short, short_ns, &mut toy);
        let long = Job::new(JobId(1), ClassId(0), 0);
        let asked_ns = system.monitor.started(5, me, &long, 1, &toy);
        assert_eq!(asked_ns, Some(quantum_ns), "shorts of {short_ns} ns");
    }
}

/// The class of requests that say that they are long is not long by that, but refused first: after enough of them, and until half say nothing. Hinted longs
/// stay refused first.
#[test]
fn a_class_whose_requests_say_that_they_are_long_is_refused_first() {
    const SAYS: ClassId = ClassId(3);
    let mut system = synergy("longs=auto,factor=4");
    let hinted = system.sheds_first;
    assert!(!hinted.is_empty() && !hinted.contains(SAYS.index()));
    let mut toy = PlainQueues::with_shared(WORKERS, system.shared_queues.count, MOST);
    let job = |said_long| Job {
        said_long,
        ..Job::new(JobId(1), SAYS, 0)
    };
    let local = &mut system.locals[0];
    for said in 1..=16 {
        assert!(toy.sheds_first[0].is_empty(), "after {said}");
        local.said_long(&job(true), &mut toy);
        // Of one that said so its end says nothing more.
        local.finished(said, &job(true), 1_000_000, &mut toy);
    }
    let mut both = hinted;
    both.set(SAYS.index(), true);
    assert_eq!(toy.sheds_first[0], both);
    assert!(!toy.is_long(WorkerId(0), SAYS));
    for quiet in 0..64 {
        local.finished(quiet, &job(false), 1_000, &mut toy);
    }
    assert_eq!(toy.sheds_first[0], hinted);
}

/// A server: what each worker runs, and what is where.
struct Drive {
    system: Synergy,
    toy: PlainQueues,
    jobs: Vec<Job>,
    running: [Option<JobId>; WORKERS],
    /// Longs that were interrupted, in that order.
    waiting: Vec<JobId>,
    done: usize,
    now_ns: u64,
    /// Whether a queue may ever be congested.
    congests: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive { class: usize, flow: u32 },
    Look { worker: usize },
    Expire { worker: usize },
    Finish { worker: usize },
    Tick,
}

impl Drive {
    fn new(params: &str) -> Self {
        let system = synergy(params);
        Self {
            toy: PlainQueues::with_shared(WORKERS, system.shared_queues.count, MOST),
            system,
            jobs: vec![],
            running: [None; WORKERS],
            waiting: vec![],
            done: 0,
            now_ns: 0,
            congests: params.contains("thresh_wqd"),
        }
    }

    fn class(&self, id: JobId) -> usize {
        self.jobs[id.index()].class.index()
    }

    fn arrive(&mut self, class: usize, flow: u32) {
        let id = JobId(self.jobs.len() as u32);
        let job = Job {
            flow,
            ..Job::new(id, ClassId(class as u16), self.now_ns)
        };
        self.jobs.push(job);
        self.system.ingress.arrived(self.now_ns, job).unwrap();
        let dispatch = self.system.ingress.poll(self.now_ns).unwrap();
        self.toy.deliver(dispatch.worker, id);
    }

    /// An idle worker takes something; what it resumes is the first of the shortest kind among `among`.
    fn look(&mut self, worker: usize) -> Result<(), TestCaseError> {
        if self.running[worker].is_some() {
            return Ok(());
        }
        self.toy.me = worker;
        let own = self.toy.len(WorkerId(worker as u16)) > 0;
        match self.system.locals[worker].next(self.now_ns, &mut self.toy) {
            Next::Run { job, slice_ns } => {
                prop_assert_eq!(slice_ns, None);
                if let Some(at) = self.waiting.iter().position(|&id| id == job) {
                    let rank = |id: JobId| LONGS.iter().position(|&class| class == self.class(id));
                    let first = if self.congests {
                        self.waiting.iter().find(|&&id| rank(id) == rank(job))
                    } else {
                        prop_assert!(!own, "nothing is congested: new requests first");
                        self.waiting.iter().min_by_key(|&&id| rank(id))
                    };
                    let first = first.copied();
                    prop_assert_eq!(Some(job), first, "of {:?}", self.waiting);
                    self.waiting.remove(at);
                }
                prop_assert!(!self.running.contains(&Some(job)), "{job:?} runs twice");
                self.running[worker] = Some(job);
            }
            Next::Idle => prop_assert!(!own && self.waiting.is_empty()),
            Next::Retry => {}
        }
        Ok(())
    }

    /// The quantum is over: longs may be interrupted, shorts are not even timed.
    fn expire(&mut self, worker: usize) -> Result<(), TestCaseError> {
        let Some(id) = self.running[worker] else {
            return Ok(());
        };
        let (me, job) = (WorkerId(worker as u16), self.jobs[id.index()]);
        let timed = self
            .system
            .monitor
            .started(self.now_ns, me, &job, 1, &self.toy);
        prop_assert_eq!(timed.is_some(), LONGS.contains(&self.class(id)));
        if timed.is_none() {
            return Ok(());
        }
        let System {
            monitor, ingress, ..
        } = &mut self.system;
        let verdict = monitor.expired(self.now_ns, me, ingress, &self.toy);
        prop_assert_eq!(verdict == PreemptionDecision::Preempt, self.toy.len(me) > 0);
        if verdict == PreemptionDecision::Preempt {
            self.toy.me = worker;
            prop_assert!(self.system.locals[worker].yielded(self.now_ns, &job, &mut self.toy));
            self.running[worker] = None;
            self.waiting.push(id);
        }
        Ok(())
    }

    fn finish(&mut self, worker: usize) {
        if let Some(id) = self.running[worker].take() {
            let job = self.jobs[id.index()];
            let cpu_ns = (MEANS_US[job.class.index()] * 1e3) as u64;
            self.toy.me = worker;
            self.system.locals[worker].finished(self.now_ns, &job, cpu_ns, &mut self.toy);
            self.done += 1;
        }
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        self.now_ns += 100;
        match event {
            Event::Arrive { class, flow } => self.arrive(class, flow),
            Event::Look { worker } => self.look(worker)?,
            Event::Expire { worker } => self.expire(worker)?,
            Event::Finish { worker } => self.finish(worker),
            // An engine calls only a monitor that asks for it.
            Event::Tick if self.system.monitor.next_deadline_ns().is_some() => {
                self.toy.congested = self.system.monitor.tick(self.now_ns, &self.toy);
            }
            Event::Tick => {}
        }
        Ok(())
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..5_usize, any::<u32>()).prop_map(|(class, flow)| Event::Arrive { class, flow }),
        4 => (0..WORKERS).prop_map(|worker| Event::Look { worker }),
        4 => (0..WORKERS).prop_map(|worker| Event::Expire { worker }),
        2 => (0..WORKERS).prop_map(|worker| Event::Finish { worker }),
        1 => Just(Event::Tick),
    ]
}

proptest! {
    /// Nothing is lost or run twice, no short is interrupted, and what waits is resumed by kind unless one is congested, within a
    /// kind in order.
    #[test]
    fn longs_are_resumed_by_kind(
        events in prop::collection::vec(event(), 1..MOST),
        params in prop::sample::select(&["waits=3", "waits=3,thresh_wqd=300ns"][..]),
    ) {
        let mut drive = Drive::new(params);
        for event in events {
            drive.apply(event)?;
        }
        while drive.done < drive.jobs.len() {
            let before = drive.done;
            for worker in 0..WORKERS {
                drive.apply(Event::Look { worker })?;
                drive.apply(Event::Finish { worker })?;
            }
            prop_assert!(drive.done > before, "{} of {} are lost", drive.jobs.len() - drive.done, drive.jobs.len());
        }
    }
}

/// Interrupts a long of each of these classes, in this order, on worker 0.
fn interrupted(drive: &mut Drive, classes: &[usize]) -> Vec<JobId> {
    let mut ids = vec![];
    for &class in classes {
        let id = JobId(drive.jobs.len() as u32);
        let job = Job::new(id, ClassId(class as u16), 0);
        drive.jobs.push(job);
        drive.toy.me = 0;
        assert!(drive.system.locals[0].yielded(0, &job, &mut drive.toy));
        ids.push(id);
    }
    ids
}

fn next(drive: &mut Drive) -> JobId {
    match drive.system.locals[0].next(0, &mut drive.toy) {
        Next::Run { job, .. } => job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_queue_that_stands_still_comes_before_new_requests() {
    let mut drive = Drive::new("waits=3,thresh_wqd=10us");
    let ids = interrupted(&mut drive, &[0, 2, 4]);
    drive.apply(Event::Tick).unwrap();
    // The shortest kind moved on since; the others did not.
    assert_eq!(next(&mut drive), ids[1]);
    let later = interrupted(&mut drive, &[2]);
    drive.apply(Event::Tick).unwrap();
    let new = JobId(drive.jobs.len() as u32);
    drive.jobs.push(Job::new(new, ClassId(3), 0));
    drive.toy.deliver(WorkerId(0), new);
    let order: Vec<JobId> = (0..4).map(|_| next(&mut drive)).collect();
    assert_eq!(order, [ids[2], ids[0], new, later[0]]);
}

#[test]
fn one_queue_is_first_come_first_served() {
    let mut drive = Drive::new("waits=1");
    let ids = interrupted(&mut drive, &[0, 2, 4, 2]);
    let order: Vec<JobId> = (0..4).map(|_| next(&mut drive)).collect();
    assert_eq!(order, ids);
}
