//! Rules that change while serving: what was learned stays, and the rules are the new ones.

use headway_contract::PlainQueues;
use headway_policy::server::change;
use headway_policy::server::role::{Backlog, Ingress, Local, Monitor, Next, Queues, Unplaced};
use headway_policy::server::systems::{self, ServerSpec, System, VisitInstance};
use headway_policy::spec::Spec;
use headway_policy::{ClassId, Job, JobId, Plan, Shape, WorkerId};
use proptest::prelude::*;

const WORKERS: usize = 3;

fn shape() -> Shape {
    let shape = Shape::new(WORKERS).class(1_000, 0.5).class(100_000, 0.5);
    Shape {
        queue_limit: 8,
        job_capacity: 256,
        ..shape
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(u16),
    Poll,
    Yield(usize, u64),
    Finish(usize),
    Expire(usize),
    /// The first of the two systems adopts.
    Adopt,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..3u16).prop_map(Event::Arrive),
        6 => Just(Event::Poll),
        2 => (0..WORKERS, 1..20_000u64).prop_map(|(worker, ns)| Event::Yield(worker, ns)),
        3 => (0..WORKERS).prop_map(Event::Finish),
        2 => (0..WORKERS).prop_map(Event::Expire),
        2 => Just(Event::Adopt),
    ];
    prop::collection::vec(event, 1..120)
}

/// The decisions of a system, in order.
#[derive(PartialEq, Debug)]
enum Said {
    Dispatched(Option<(usize, u32)>),
    Shed(bool),
    Due(Option<u64>),
    Verdict(headway_policy::server::role::PreemptionDecision),
    Interrupts(Option<usize>),
    Next(Option<(u32, Option<u64>)>),
    Renewed(Option<u64>),
    Congested(u64),
    Plan(Option<Plan>),
}

/// A system with a server without time.
struct Driven<I, L, M> {
    system: System<I, L, M>,
    queues: PlainQueues,
    running: [Option<Job>; WORKERS],
    epoch: u64,
    said: Vec<Said>,
}

impl<I: Ingress, L: Local, M: Monitor> Driven<I, L, M> {
    fn new(system: System<I, L, M>) -> Self {
        let shared = system.shared_queues.count;
        Self {
            system,
            queues: PlainQueues::with_shared(WORKERS, shared, 256),
            running: [None; WORKERS],
            epoch: 0,
            said: Vec::new(),
        }
    }

    fn adopt(&mut self, fresh: &System<I, L, M>) {
        self.system.ingress.adopt(&fresh.ingress);
        self.system.monitor.adopt(&fresh.monitor);
        for (own, fresh) in self.system.locals.iter_mut().zip(&fresh.locals) {
            own.adopt(fresh);
        }
    }

    fn start(&mut self, now_ns: u64, worker: usize, jobs: &[Job]) {
        if self.running[worker].is_some() {
            return;
        }
        self.queues.me = worker;
        let next = self.system.locals[worker].next(now_ns, &mut self.queues);
        let Next::Run { job, slice_ns } = next else {
            return self.said.push(Said::Next(None));
        };
        self.said.push(Said::Next(Some((job.0, slice_ns))));
        let known = self.system.ingress.dispatched(job);
        let job = *known.unwrap_or(&jobs[job.index()]);
        self.running[worker] = Some(job);
        self.epoch += 1;
        let id = WorkerId(worker as u16);
        let due = self
            .system
            .monitor
            .started(now_ns, id, &job, self.epoch, &self.queues);
        self.said.push(Said::Due(due));
    }

    fn step(&mut self, now_ns: u64, event: &Event, jobs: &[Job]) {
        match *event {
            Event::Arrive(_) => {
                let job = jobs[jobs.len() - 1];
                if I::OWNER == headway_policy::server::role::Owner::Nobody {
                    self.queues.me = 0;
                    let fits = self.queues.push_shared(0, job.id);
                    return self.said.push(Said::Shed(!fits));
                }
                let shed = self.system.ingress.arrived(now_ns, job).is_err();
                self.said.push(Said::Shed(shed));
            }
            Event::Poll => {
                let dispatch = self.system.ingress.poll(now_ns);
                if let Some(dispatch) = dispatch {
                    self.queues.deliver(dispatch.worker, dispatch.job);
                }
                let said = dispatch.map(|it| (it.worker.index(), it.job.0));
                self.said.push(Said::Dispatched(said));
                (0..WORKERS).for_each(|worker| self.start(now_ns, worker, jobs));
            }
            Event::Yield(worker, ran_ns) => {
                let Some(job) = self.running[worker].take() else {
                    return;
                };
                let id = WorkerId(worker as u16);
                let attained_ns = job.attained_ns + ran_ns;
                let job = Job { attained_ns, ..job };
                self.system.monitor.stopped(now_ns, id, self.epoch);
                self.queues.me = worker;
                if !self.system.locals[worker].yielded(now_ns, &job, &mut self.queues) {
                    if I::OWNER == headway_policy::server::role::Owner::Nobody {
                        self.queues.push_shared(0, job.id);
                    } else {
                        self.system.ingress.yielded(now_ns, id, job);
                    }
                }
            }
            Event::Finish(worker) => {
                let Some(job) = self.running[worker].take() else {
                    return;
                };
                let id = WorkerId(worker as u16);
                let cpu_ns = job.attained_ns + 900 + 70 * u64::from(job.id.0);
                self.system.monitor.stopped(now_ns, id, self.epoch);
                self.queues.me = worker;
                self.system.locals[worker].finished(now_ns, &job, cpu_ns, &mut self.queues);
                self.system.ingress.finished(now_ns, id, job.id, cpu_ns);
            }
            Event::Expire(worker) if self.running[worker].is_some() => {
                let id = WorkerId(worker as u16);
                let verdict =
                    self.system
                        .monitor
                        .expired(now_ns, id, &self.system.ingress, &self.queues);
                self.said.push(Said::Verdict(verdict));
                self.queues.me = worker;
                let renewed = self.system.locals[worker].renew(now_ns, &self.queues);
                self.said.push(Said::Renewed(renewed));
            }
            Event::Expire(_) | Event::Adopt => {}
        }
        self.look(now_ns);
    }

    fn look(&mut self, now_ns: u64) {
        let due = self.system.monitor.next_deadline_ns();
        if due.is_some_and(|due_ns| due_ns <= now_ns) {
            self.queues.congested = self.system.monitor.tick(now_ns, &self.queues);
            self.said.push(Said::Congested(self.queues.congested));
        }
        let preempt = self
            .system
            .monitor
            .poll(now_ns, &self.system.ingress, &self.queues);
        self.said
            .push(Said::Interrupts(preempt.map(|it| it.worker.index())));
        self.said
            .push(Said::Plan(self.system.ingress.plan().cloned()));
    }
}

/// The kind of comparison between two systems.
#[derive(Clone, Copy)]
enum Compare {
    /// The first adopts rules equal to its own, whenever an event says so.
    EqualRules,
    /// The first adopts the second's rules before anything happens.
    OtherRules,
}

/// The one instance of a spec that has these types.
fn rebuilt<I, L, M>(spec: &ServerSpec) -> System<I, L, M>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let mut instances = change::rebuild(spec, &shape()).expect("the same types");
    assert_eq!(instances.len(), 1, "{spec}");
    instances.remove(0)
}

/// Compares a system of this spec with another of the same types.
struct Both<'a> {
    other: &'a ServerSpec,
    compare: Compare,
    events: &'a [Event],
}

impl VisitInstance for Both<'_> {
    type Output = Result<(), TestCaseError>;

    fn visit_instance<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let build = || rebuilt::<I, L, M>(self.other);
        let (mut first, mut second) = (Driven::new(system), Driven::new(build()));
        let fresh = build();
        if let Compare::OtherRules = self.compare {
            first.adopt(&fresh);
        }
        let mut jobs = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let now_ns = (at as u64 + 1) * 1_000;
            if let Event::Arrive(class) = *event {
                jobs.push(Job::new(JobId(jobs.len() as u32), ClassId(class), now_ns));
            }
            if let (Event::Adopt, Compare::EqualRules) = (event, self.compare) {
                first.adopt(&fresh);
            }
            first.step(now_ns, event, &jobs);
            second.step(now_ns, event, &jobs);
            let name = first.system.name;
            prop_assert_eq!(&first.said, &second.said, "{}", name);
            first.said.clear();
            second.said.clear();
        }
        Ok(())
    }
}

fn compared(
    spec: &str,
    other: &str,
    compare: Compare,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let other = other.parse::<ServerSpec>().expect("a spec");
    let both = Both {
        other: &other,
        compare,
        events,
    };
    systems::with(&spec.parse().expect("a spec"), &shape(), both).expect("it builds")
}

/// Two settings of each policy, which differ in what may change while serving only.
const SETTINGS: &[(&str, &str)] = &[
    (
        "synergy",
        "synergy,factor=7,congested_factor=3,q=900ns,steal_threshold=2,alpha=0.9,parts=none",
    ),
    ("synergy,parts=none", "synergy,parts=ws+wq"),
    ("synergy,parts=ws,q=3us", "synergy,parts=wq+cp,q=2us"),
    ("work-stealing", "work-stealing,steal=one"),
    ("shinjuku-sq", "shinjuku-sq,q=1us"),
    ("shinjuku-ci", "shinjuku-ci,q=1us"),
    ("shinjuku-mq", "shinjuku-mq,q=1us,slo=2,reentry=head"),
    ("concord", "concord,q=1us"),
    ("tiny-quanta", "tiny-quanta,q=9us"),
    ("mlfq", "mlfq,q=700ns"),
    ("gittins", "gittins,q=700ns"),
    (
        "darc,window=5",
        "darc,window=3,window_time=2ms,delta=1000,deviation=0,delay=0,spillway=2",
    ),
    (
        "darc-stable,window=5",
        "darc-stable,window=3,window_time=2ms,delta=1000,deviation=0,delay=0,spillway=2",
    ),
    (
        "darc-paper,window=5",
        "darc-paper,window=3,delta=1000,deviation=0,delay=0,spillway=2",
    ),
    ("darc-static", "darc-static,reserved=2"),
    ("edf,preemption=edf", "edf,preemption=edf,slo=2"),
    ("drr", "drr,quantum=300ns"),
    ("wrr", "wrr,weights=4/2"),
    ("cscq", "cscq,long=2"),
    ("on-blocked", "on-blocked,q=1us"),
    (
        "compose,placement=choices",
        "compose,placement=choices,choices=1",
    ),
    (
        "compose,discipline=typed,placement=reserved,preemption=quantum,control=darc",
        "compose,discipline=typed,placement=reserved,preemption=quantum,q=1us,control=darc,delta=9",
    ),
];

proptest! {
    /// Rules equal to its own change nothing, whatever a system has learned and holds.
    #[test]
    fn equal_rules_change_nothing(events in events()) {
        for name in systems::NAMES {
            compared(name, name, Compare::EqualRules, &events)?;
        }
        for (spec, other) in SETTINGS {
            compared(spec, spec, Compare::EqualRules, &events)?;
            compared(other, other, Compare::EqualRules, &events)?;
        }
        let looking = "synergy,thresh_wqd=2us,waits=2,congested_factor=1";
        compared(looking, looking, Compare::EqualRules, &events)?;
    }

    /// A system that adopts other rules goes by them as one does that was built with them.
    #[test]
    fn adopted_rules_are_the_rules(events in events()) {
        for (spec, other) in SETTINGS {
            compared(spec, other, Compare::OtherRules, &events)?;
            compared(other, spec, Compare::OtherRules, &events)?;
        }
    }
}

/// Each parameter that may change while serving is changed above, but for the threshold, which begins a window of its own.
#[test]
fn every_changeable_parameter_is_tried() {
    for policy in systems::ALL {
        let about = &policy.about;
        let tried = |key: &str| {
            SETTINGS.iter().any(|(_, other)| {
                let other: Spec = other.parse().expect("a spec");
                about.is_called(&other.name) && other.params.iter().any(|(given, _)| given == key)
            })
        };
        // What others put together is tried there.
        for key in about
            .changeable()
            .into_iter()
            .filter(|_| about.name != "compose")
        {
            assert!(key == "thresh_wqd" || tried(key), "{}: {key}", about.name);
        }
    }
}

/// A threshold that is taken away leaves no queue congested, and one that is set looks at its own time.
#[test]
fn another_threshold_begins_another_window() {
    struct Look;
    impl VisitInstance for Look {
        type Output = ();
        fn visit_instance<I, L, M>(self, mut system: System<I, L, M>)
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            let build = |spec: &str| rebuilt::<I, L, M>(&spec.parse().unwrap());
            let (never, short) = (build("synergy"), build("synergy,thresh_wqd=1us"));
            let mut queues = PlainQueues::new(WORKERS, 8);
            queues.push_shared(0, JobId(0));
            let monitor = &mut system.monitor;
            assert_eq!(monitor.next_deadline_ns(), Some(5_000));
            assert_eq!(monitor.tick(5_000, &queues), 0);
            assert_eq!(monitor.tick(10_000, &queues), 1, "nothing was taken");
            monitor.adopt(&short.monitor);
            assert_eq!(monitor.next_deadline_ns(), Some(0), "due at once");
            assert_eq!(monitor.tick(10_100, &queues), 0, "it begins anew");
            assert_eq!(monitor.next_deadline_ns(), Some(11_100));
            assert_eq!(monitor.tick(11_100, &queues), 1);
            monitor.adopt(&never.monitor);
            assert_eq!(monitor.tick(11_200, &queues), 0);
            assert_eq!(monitor.next_deadline_ns(), None);
            assert_eq!(Unplaced.waiting() + queues.len(WorkerId(0)), 0);
        }
    }
    let spec = "synergy,thresh_wqd=5us".parse().unwrap();
    systems::with(&spec, &shape(), Look).unwrap();
}

/// DARC keeps its profile and reserves by the new rules at once.
#[test]
fn darc_reserves_anew_from_what_it_has_learned() {
    struct Learn;
    impl VisitInstance for Learn {
        type Output = ();
        fn visit_instance<I, L, M>(self, mut system: System<I, L, M>)
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            let ingress = &mut system.ingress;
            for id in 0..20_u32 {
                let (class, cpu_ns) = [(0, 1_000), (1, 100_000)][id as usize % 2];
                let now_ns = u64::from(id) * 100_000;
                ingress
                    .arrived(now_ns, Job::new(JobId(id), ClassId(class), now_ns))
                    .unwrap();
                let dispatch = ingress.poll(now_ns).unwrap();
                ingress.finished(now_ns + cpu_ns, dispatch.worker, dispatch.job, cpu_ns);
            }
            let groups = |ingress: &I| ingress.plan().unwrap().groups.len();
            assert_eq!(groups(ingress), 2);
            let wide: ServerSpec = "darc,window=5,delta=1000".parse().unwrap();
            ingress.adopt(&rebuilt::<I, L, M>(&wide).ingress);
            assert_eq!(groups(ingress), 1, "all classes are alike now");
            let narrow: ServerSpec = "darc,window=5".parse().unwrap();
            ingress.adopt(&rebuilt::<I, L, M>(&narrow).ingress);
            assert_eq!(groups(ingress), 2, "the means are still known");
        }
    }
    let spec = "darc,window=5".parse().unwrap();
    systems::with(&spec, &shape(), Learn).unwrap();
}
