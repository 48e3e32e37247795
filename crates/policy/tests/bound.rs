//! Requests that may only go on where they were interrupted, over random traffic under every dispatcher.

use headway_policy::server::role::{Dispatch, Ingress, Local, Monitor, Owner};
use headway_policy::server::systems::{self, NAMES, System, VisitInstance};
use headway_policy::{ClassId, Job, JobId, Resume, Shape, WorkerId};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet, VecDeque};

const WORKERS: usize = 3;
const SLICE_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive {
        class: u16,
    },
    /// The n-th busy worker finishes what it runs, or is interrupted.
    Finish {
        nth: usize,
    },
    Yield {
        nth: usize,
    },
    /// The last worker leaves, or comes back.
    Toggle,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..2u16).prop_map(|class| Event::Arrive { class }),
        3 => (0..WORKERS).prop_map(|nth| Event::Finish { nth }),
        4 => (0..WORKERS).prop_map(|nth| Event::Yield { nth }),
        1 => Just(Event::Toggle),
    ];
    prop::collection::vec(event, 1..300)
}

fn shape(resume: Resume) -> Shape {
    let mut shape = Shape::new(WORKERS).class(1_000, 0.5).class(100_000, 0.5);
    shape.resume = resume;
    shape
}

/// An ingress and workers that run what they are given in order.
struct Drive<I> {
    ingress: I,
    depth: usize,
    now_ns: u64,
    last_present: bool,
    held: [VecDeque<Job>; WORKERS],
    /// What each request attained and where it was begun.
    begun: HashMap<JobId, (u64, WorkerId)>,
    jobs: HashMap<JobId, Job>,
    arrived: u32,
    finished: u32,
    /// Requests that were ordered to yield.
    interrupted: HashSet<JobId>,
}

impl<I: Ingress> Drive<I> {
    fn new(ingress: I, depth: usize) -> Self {
        Self {
            ingress,
            depth,
            now_ns: 0,
            last_present: true,
            held: Default::default(),
            begun: HashMap::new(),
            jobs: HashMap::new(),
            arrived: 0,
            finished: 0,
            interrupted: HashSet::new(),
        }
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        self.now_ns += SLICE_NS;
        match event {
            Event::Arrive { class } => self.arrive(class),
            Event::Finish { nth } => self.finish(nth),
            Event::Yield { nth } => self.interrupt(nth),
            Event::Toggle => self.toggle(),
        }
        self.dispatch()
    }

    fn arrive(&mut self, class: u16) {
        let job = Job::new(JobId(self.arrived), ClassId(class), self.now_ns);
        self.arrived += 1;
        self.jobs.insert(job.id, job);
        self.ingress.arrived(self.now_ns, job).expect("no bound");
    }

    fn busy(&self, nth: usize) -> Option<usize> {
        let busy: Vec<usize> = (0..WORKERS).filter(|&w| !self.held[w].is_empty()).collect();
        busy.get(nth % busy.len().max(1)).copied()
    }

    fn finish(&mut self, nth: usize) {
        let Some(w) = self.busy(nth) else { return };
        let job = self.held[w].pop_front().expect("it is busy");
        self.jobs.remove(&job.id);
        self.finished += 1;
        let cpu_ns = job.attained_ns + SLICE_NS / 2;
        self.ingress
            .finished(self.now_ns, WorkerId(w as u16), job.id, cpu_ns);
    }

    fn interrupt(&mut self, nth: usize) {
        let Some(w) = self.busy(nth) else { return };
        let mut job = self.held[w].pop_front().expect("it is busy");
        let worker = WorkerId(w as u16);
        job.attained_ns += SLICE_NS;
        self.jobs.insert(job.id, job);
        self.begun.insert(job.id, (job.attained_ns, worker));
        self.interrupted.insert(job.id);
        self.ingress.yielded(self.now_ns, worker, job);
    }

    fn toggle(&mut self) {
        let last = WorkerId(WORKERS as u16 - 1);
        self.last_present = !self.last_present;
        if self.last_present {
            self.ingress.worker_added(self.now_ns, last);
        } else {
            self.ingress.worker_removed(self.now_ns, last);
        }
    }

    fn dispatch(&mut self) -> Result<(), TestCaseError> {
        while let Some(Dispatch { worker, job }) = self.ingress.poll(self.now_ns) {
            let held = &mut self.held[worker.index()];
            prop_assert!(held.len() < self.depth, "{worker:?} was given too much");
            let job = *self.jobs.get(&job).expect("it waits");
            if let Some((attained_ns, own)) = self.begun.get(&job.id) {
                prop_assert_eq!(worker, *own, "it goes on where it was interrupted");
                prop_assert_eq!(job.attained_ns, *attained_ns);
                self.interrupted.remove(&job.id);
            }
            held.push_back(job);
        }
        let held: usize = self.held.iter().map(VecDeque::len).sum();
        let accepted = (self.arrived - self.finished) as usize;
        prop_assert_eq!(self.ingress.waiting() + held, accepted, "nothing is lost");
        for (job, (_, own)) in &self.begun {
            let waits = self.interrupted.contains(job);
            let idle = self.held[own.index()].is_empty();
            prop_assert!(!(waits && idle), "{own:?} idles while {job:?} waits for it");
        }
        Ok(())
    }
}

struct Play<'a>(&'a [Event]);

impl VisitInstance for Play<'_> {
    type Output = Result<(), TestCaseError>;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(
        self,
        system: System<I, L, M>,
    ) -> Self::Output {
        if I::OWNER != Owner::Dispatcher {
            return Ok(());
        }
        let mut drive = Drive::new(system.ingress, system.depth);
        self.0.iter().try_for_each(|&event| drive.apply(event))?;
        if !drive.last_present {
            drive.apply(Event::Toggle)?;
        }
        while drive.busy(0).is_some() {
            drive.apply(Event::Finish { nth: 0 })?;
        }
        prop_assert_eq!(drive.finished, drive.arrived);
        Ok(())
    }
}

fn specs() -> Vec<&'static str> {
    let composed = [
        "compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,control=darc,window=20",
        "compose,discipline=mq,pick=bvt,preemption=quantum",
        "compose,discipline=drr,placement=jbsq,k=2,preemption=quantum",
    ];
    let roams = |name: &&&str| {
        let policy = systems::find(name).unwrap();
        policy.defaults.roams()
    };
    let named = NAMES.iter().filter(|name| !roams(name)).copied();
    named
        .filter(|&name| name != "compose")
        .chain(composed)
        .collect()
}

proptest! {
    #[test]
    fn interrupted_requests_go_on_where_they_were(events in events(), policy in 0..specs().len()) {
        let spec = specs()[policy].parse().unwrap();
        systems::with(&spec, &shape(Resume::OwnWorker), Play(&events)).unwrap()?;
    }

    /// One worker: bound or not makes no difference to a queue in the order of admission.
    #[test]
    fn with_one_worker_nothing_changes(events in events()) {
        struct Order<'a>(&'a [Event]);
        impl VisitInstance for Order<'_> {
            type Output = Vec<JobId>;
            fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, mut system: System<I, L, M>) -> Vec<JobId> {
                let (mut order, mut running, mut arrived) = (Vec::new(), None::<Job>, 0);
                for (at, event) in self.0.iter().enumerate() {
                    let (now_ns, worker) = (at as u64 * SLICE_NS, WorkerId(0));
                    match event {
                        Event::Arrive { class } => {
                            let job = Job::new(JobId(arrived), ClassId(*class), now_ns);
                            arrived += 1;
                            system.ingress.arrived(now_ns, job).expect("no bound");
                        }
                        Event::Finish { .. } => if let Some(job) = running.take() {
                            system.ingress.finished(now_ns, worker, job.id, SLICE_NS);
                        },
                        Event::Yield { .. } => if let Some(mut job) = running.take() {
                            job.attained_ns += SLICE_NS;
                            system.ingress.yielded(now_ns, worker, job);
                        },
                        Event::Toggle => {}
                    }
                    if let Some(Dispatch { job, .. }) = system.ingress.poll(now_ns) {
                        running = system.ingress.dispatched(job).copied();
                        order.push(job);
                    }
                }
                order
            }
        }
        let run = |name: &str, resume| {
            let mut shape = shape(resume);
            shape.workers = 1;
            systems::with(&name.parse().unwrap(), &shape, Order(&events)).unwrap()
        };
        for name in ["shinjuku-sq", "concord,k=1"] {
            prop_assert_eq!(run(name, Resume::OwnWorker), run(name, Resume::Anywhere));
        }
    }
}

/// A stream of shorts does not keep an interrupted long from going on: the worker alternates.
#[test]
fn a_worker_alternates_where_there_is_no_order_of_admission() {
    struct Alternate;
    impl VisitInstance for Alternate {
        type Output = Vec<JobId>;
        fn visit_instance<I: Ingress, L: Local, M: Monitor>(
            self,
            system: System<I, L, M>,
        ) -> Vec<JobId> {
            let mut ingress = system.ingress;
            for id in 0..4 {
                ingress
                    .arrived(0, Job::new(JobId(id), ClassId(0), 0))
                    .expect("no bound");
            }
            let mut order = Vec::new();
            while let Some(Dispatch { worker, job }) = ingress.poll(0) {
                order.push(job);
                let mut ran = *ingress.dispatched(job).expect("it was dispatched");
                ran.attained_ns += SLICE_NS;
                match ran.attained_ns {
                    ..=SLICE_NS => ingress.yielded(0, worker, ran),
                    _ => ingress.finished(0, worker, job, ran.attained_ns),
                }
            }
            order
        }
    }
    let mut shape = shape(Resume::OwnWorker);
    shape.workers = 1;
    let order = systems::with(&"shinjuku-mq".parse().unwrap(), &shape, Alternate).unwrap();
    let ids: Vec<u32> = order.iter().map(|job| job.0).collect();
    assert_eq!(ids, [0, 1, 0, 2, 1, 3, 2, 3]);
}
