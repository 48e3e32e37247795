//! The promises of every system, over random traffic: nothing is lost or run twice, first come
//! first served within a class, plans are kept to, only the full queue sheds.

use headway_policy::server::role::{Dispatch, Ingress, Local, Monitor};
use headway_policy::server::systems::{self, NAMES, Promises, ServerSpec, System, VisitInstance};
use headway_policy::{BitSet, ClassId, Job, JobId, Order, Shape, WorkerId};
use proptest::prelude::*;
use std::collections::VecDeque;

const WORKERS: usize = 6;
const CLASSES: usize = 4;
const QUEUE_LIMIT: usize = 5;

/// The next event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request of this class arrives; `CLASSES` is UNKNOWN.
    Arrive { class: u16, flow: u32 },
    /// The n-th busy worker finishes.
    Finish { nth: usize, cpu_ns: u64 },
    /// A worker leaves, or comes back.
    Toggle { worker: u16 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 => (0..=CLASSES as u16, any::<u32>()).prop_map(|(class, flow)| Event::Arrive { class, flow }),
        5 => (0..WORKERS, 1u64..1_000_000).prop_map(|(nth, cpu_ns)| Event::Finish { nth, cpu_ns }),
        1 => (0..WORKERS as u16).prop_map(|worker| Event::Toggle { worker }),
    ];
    prop::collection::vec(event, 1..600)
}

fn shape() -> Shape {
    let mut shape = Shape::new(WORKERS)
        .class(1_000, 0.4)
        .class(1_500, 0.3)
        .class(50_000, 0.2)
        .class(500_000, 0.1);
    shape.queue_limit = QUEUE_LIMIT;
    shape
}

/// Drives an ingress as an engine with one-request workers would, checking every step.
struct Driver<'a> {
    events: &'a [Event],
    promises: Promises,
}

struct Checked<I> {
    ingress: I,
    promises: Promises,
    depth: usize,
    now_ns: u64,
    next_id: u32,
    present: BitSet,
    /// Per worker, what it was handed and has not finished.
    held: Vec<VecDeque<JobId>>,
    /// Admitted and waiting, per class, in order.
    waiting: Vec<VecDeque<JobId>>,
    class_of: Vec<u16>,
    done: Vec<bool>,
}

impl VisitInstance for Driver<'_> {
    type Output = Result<(), TestCaseError>;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(
        self,
        system: System<I, L, M>,
    ) -> Self::Output {
        let mut checked = Checked {
            ingress: system.ingress,
            promises: self.promises,
            depth: system.depth,
            now_ns: 0,
            next_id: 0,
            present: BitSet::range(0, WORKERS),
            held: vec![VecDeque::new(); WORKERS],
            waiting: vec![VecDeque::new(); CLASSES + 1],
            class_of: Vec::new(),
            done: Vec::new(),
        };
        for &event in self.events {
            checked.apply(system.name, event)?;
        }
        checked.drain(system.name)
    }
}

impl<I: Ingress> Checked<I> {
    fn apply(&mut self, name: &str, event: Event) -> Result<(), TestCaseError> {
        self.now_ns += 100;
        match event {
            Event::Arrive { class, flow } => self.arrive(name, class, flow)?,
            Event::Finish { nth, cpu_ns } => self.finish(nth, cpu_ns)?,
            Event::Toggle { worker } => self.toggle(worker),
        }
        self.dispatch_all(name)
    }

    fn arrive(&mut self, name: &str, class: u16, flow: u32) -> Result<(), TestCaseError> {
        let id = JobId(self.next_id);
        self.next_id += 1;
        self.class_of.push(class);
        self.done.push(false);
        let job = Job {
            flow,
            ..Job::new(id, ClassId(class), self.now_ns)
        };
        let total: usize = self.waiting.iter().map(VecDeque::len).sum();
        let own = self.waiting[usize::from(class)].len();
        let full = if self.promises.bound_per_class {
            own
        } else {
            total
        } >= QUEUE_LIMIT;
        let accepted = self.ingress.arrived(self.now_ns, job).is_ok();
        prop_assert_eq!(
            accepted,
            !full,
            "{} sheds exactly what its full queue cannot hold",
            name
        );
        if accepted {
            self.waiting[usize::from(class)].push_back(id);
        }
        Ok(())
    }

    fn finish(&mut self, nth: usize, cpu_ns: u64) -> Result<(), TestCaseError> {
        let busy: Vec<usize> = (0..WORKERS).filter(|&w| !self.held[w].is_empty()).collect();
        let Some(&worker) = busy.get(nth % busy.len().max(1)) else {
            return Ok(());
        };
        let job = self.held[worker].pop_front().expect("it is busy");
        prop_assert!(!self.done[job.index()], "{job:?} ran twice");
        self.done[job.index()] = true;
        self.ingress
            .finished(self.now_ns, WorkerId(worker as u16), job, cpu_ns);
        Ok(())
    }

    fn toggle(&mut self, worker: u16) {
        let index = usize::from(worker);
        if self.present.contains(index) {
            if self.present.len() > 1 {
                self.present.remove(index);
                self.ingress.worker_removed(self.now_ns, WorkerId(worker));
            }
        } else {
            self.present.insert(index);
            self.ingress.worker_added(self.now_ns, WorkerId(worker));
        }
    }

    fn dispatch_all(&mut self, name: &str) -> Result<(), TestCaseError> {
        while let Some(Dispatch { worker, job }) = self.ingress.poll(self.now_ns) {
            let (w, class) = (worker.index(), usize::from(self.class_of[job.index()]));
            prop_assert!(
                self.present.contains(w),
                "{name} used a worker that is gone"
            );
            prop_assert!(
                self.held[w].len() < self.depth,
                "{name} gave {worker:?} too much"
            );
            let place = self.waiting[class].iter().position(|&waits| waits == job);
            prop_assert!(place.is_some(), "{name} handed out what does not wait");
            prop_assert!(
                place == Some(0) || !self.promises.fcfs_in_class,
                "{name} is first come first served within a class"
            );
            self.waiting[class].remove(place.unwrap_or_default());
            self.follows_the_plan(name, w, class)?;
            self.held[w].push_back(job);
        }
        let idle = self.present.iter().any(|w| self.held[w].is_empty());
        let total: usize = self.waiting.iter().map(VecDeque::len).sum();
        prop_assert_eq!(self.ingress.waiting(), total);
        if self.promises.work_conserving {
            prop_assert!(!idle || total == 0, "{} is work-conserving", name);
        }
        Ok(())
    }

    fn follows_the_plan(&self, name: &str, w: usize, class: usize) -> Result<(), TestCaseError> {
        let Some(plan) = self.ingress.plan() else {
            return Ok(());
        };
        let id = ClassId(class as u16);
        let allowed = plan.reserved(id).union(plan.stealable(id));
        prop_assert!(
            allowed.contains(w),
            "{name} ran {id:?} outside reserved ∪ stealable"
        );
        if class == CLASSES {
            let spillway = self.present.iter().last();
            prop_assert_eq!(
                Some(w),
                spillway,
                "{} ran UNKNOWN beside the spillway",
                name
            );
        }
        if plan.order == Order::Rank {
            let shorter = plan.ranked().iter().take_while(|&&c| c != id);
            for &c in shorter.filter(|c| !self.waiting[c.index()].is_empty()) {
                let open = plan.reserved(c).union(plan.stealable(c));
                prop_assert!(!open.contains(w), "{name} passed over shorter class {c:?}");
            }
        }
        Ok(())
    }

    /// With all workers back and time enough everything admitted is done.
    fn drain(&mut self, name: &str) -> Result<(), TestCaseError> {
        for worker in 0..WORKERS as u16 {
            if !self.present.contains(usize::from(worker)) {
                self.toggle(worker);
            }
        }
        self.dispatch_all(name)?;
        while self.held.iter().any(|held| !held.is_empty()) {
            self.now_ns += 100;
            self.finish(0, 1_000)?;
            self.dispatch_all(name)?;
        }
        prop_assert_eq!(self.ingress.waiting(), 0, "{} lost requests", name);
        Ok(())
    }
}

/// The parts in combinations that no name stands for.
const COMPOSED: &[&str] = &[
    "compose",
    "compose,discipline=typed,placement=jbsq,k=3",
    "compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,control=darc,window=20,deviation=0.05",
    "compose,discipline=typed,placement=reserved,control=darc-stable,window=20,deviation=0.05",
    "compose,discipline=typed,placement=reserved,control=partition",
    "compose,discipline=typed,placement=jbsq,k=2,control=reserve,reserved=2",
    "compose,placement=shortest,preemption=quantum",
    "compose,placement=choices,choices=3",
    "compose,placement=random",
    "compose,discipline=sjf,placement=jbsq,k=2,preemption=srpt",
    "compose,discipline=edf,preemption=edf",
    "compose,discipline=drr,placement=jbsq,k=2,quantum=7us,preemption=quantum",
    "compose,discipline=wrr,weights=4/3/2/1",
    "compose,discipline=mlfq,preemption=levels,levels=3",
    "compose,discipline=mq,pick=bvt,preemption=quantum",
    "compose,discipline=cscq,placement=jbsq,k=2",
];

/// Every name, and the parts in combinations. Small windows, so that reservations are made and
/// revised within a case.
fn specs() -> Vec<String> {
    let named = NAMES
        .iter()
        .filter(|&&name| name != "compose")
        .map(|&name| match name {
            "darc" | "darc-stable" => format!("{name},window=20,deviation=0.05"),
            "jbsq" | "concord" => format!("{name},k=3"),
            name => name.to_owned(),
        });
    named
        .chain(COMPOSED.iter().map(|&spec| spec.to_owned()))
        .collect()
}

proptest! {
    #[test]
    fn every_dispatcher_keeps_its_promises(events in events(), policy in 0..specs().len()) {
        let spec: ServerSpec = specs()[policy].parse().unwrap();
        let facts = spec.facts();
        if let Some(promises) = facts.promises {
            let driver = Driver { events: &events, promises };
            systems::with(&spec, &shape(), driver).unwrap()?;
        }
    }
}
