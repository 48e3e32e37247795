//! A server whose policy hears of part of what has arrived, as that of a pool does: the other requests wait before it.

use crate::experiment::Experiment;
use crate::server::{SimRequest, Simulated, Sink};
use headway_policy::server::BegunLimit;
use headway_policy::server::admission_control::{
    AdmissionControl, AdmissionLimits, ClassAdmission,
};
use headway_policy::{ClassId, Plan, WorkerId};
use std::collections::VecDeque;

/// What its driver does with a server.
pub(crate) trait Driven {
    fn next_ns(&self) -> u64;
    fn next_work_ns(&self) -> u64;
    fn step(&mut self, sink: &mut impl Sink);
    fn arrive(&mut self, now_ns: u64, request: SimRequest, sink: &mut impl Sink);
    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink);
}

impl<S: Simulated> Driven for S {
    #[inline]
    fn next_ns(&self) -> u64 {
        S::next_ns(self)
    }

    #[inline]
    fn next_work_ns(&self) -> u64 {
        S::next_work_ns(self)
    }

    #[inline]
    fn step(&mut self, sink: &mut impl Sink) {
        S::step(self, sink);
    }

    #[inline]
    fn arrive(&mut self, now_ns: u64, request: SimRequest, sink: &mut impl Sink) {
        S::arrive(self, now_ns, request, sink);
    }

    #[inline]
    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink) {
        S::set_worker(self, now_ns, worker, present, sink);
    }
}

/// See the [module](self).
pub(crate) struct Admitting<'a, S> {
    server: &'a mut S,
    control: AdmissionControl,
    /// Of each class what waits before the server, the oldest first.
    waiting: Vec<VecDeque<SimRequest>>,
    /// Classes of requests that have left since the server was last given others.
    left: Vec<ClassId>,
}

impl<'a, S: Simulated> Admitting<'a, S> {
    /// Before a server at which so many requests may have begun, or wait where the policy knows of them.
    pub(crate) fn new(server: &'a mut S, experiment: &Experiment, begun_at_most: usize) -> Self {
        let workers = experiment.workers;
        let limits = AdmissionLimits {
            workers,
            capacity: usize::MAX / 2,
            begun: BegunLimit::of(begun_at_most, workers),
        };
        // What the classifier does not recognise is a class of its own.
        let classes = experiment.workload.class_names().len() + 1;
        let open = std::iter::repeat_n(ClassAdmission::OPEN, classes);
        Self {
            server,
            control: AdmissionControl::new(limits, open),
            waiting: vec![VecDeque::new(); classes],
            left: Vec::new(),
        }
    }

    /// Requests that wait before the server.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// Gives the server what it may hear of in this class.
    fn offer(&mut self, now_ns: u64, class: ClassId, sink: &mut impl Sink) {
        while self.control.lets_hear(class) {
            let next = self.waiting[class.index()].pop_front();
            let request = next.expect("a request for each that waits");
            self.control.heard(class);
            // Whether it waits in the server or runs there, it is no longer here.
            self.control.began(class);
            self.control.unqueued(class);
            self.act(sink, |server, sink| server.arrive(now_ns, request, sink));
        }
    }

    /// Gives the server others for those that have left it.
    fn settle(&mut self, now_ns: u64, sink: &mut impl Sink) {
        while let Some(class) = self.left.pop() {
            let may_hear_of_any = self.control.ended(class);
            self.offer(now_ns, class, sink);
            if may_hear_of_any {
                (0..self.waiting.len() as u16)
                    .for_each(|class| self.offer(now_ns, ClassId(class), sink));
            }
        }
    }

    /// Lets the server act, and notes who leaves it.
    fn act<K: Sink>(&mut self, sink: &mut K, act: impl FnOnce(&mut S, &mut NotingSink<'_, K>)) {
        let mut leaving = NotingSink {
            sink,
            left: &mut self.left,
            classes: self.waiting.len(),
        };
        act(self.server, &mut leaving);
    }
}

impl<S: Simulated> Driven for Admitting<'_, S> {
    fn next_ns(&self) -> u64 {
        self.server.next_ns()
    }

    fn next_work_ns(&self) -> u64 {
        self.server.next_work_ns()
    }

    fn step(&mut self, sink: &mut impl Sink) {
        let now_ns = self.server.next_ns();
        self.act(sink, |server, sink| server.step(sink));
        self.settle(now_ns, sink);
    }

    fn arrive(&mut self, now_ns: u64, request: SimRequest, sink: &mut impl Sink) {
        let class = seen_class(&request, self.waiting.len());
        self.control.queued(class);
        self.waiting[class.index()].push_back(request);
        self.offer(now_ns, class, sink);
        self.settle(now_ns, sink);
    }

    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink) {
        self.act(sink, |server, sink| {
            server.set_worker(now_ns, worker, present, sink);
        });
        self.settle(now_ns, sink);
    }
}

/// The class that the policy takes the request for, of so many.
fn seen_class(request: &SimRequest, classes: usize) -> ClassId {
    ClassId(request.taken_for.min(classes as u16 - 1))
}

/// A sink that notes the classes of those who leave.
struct NotingSink<'a, K> {
    sink: &'a mut K,
    left: &'a mut Vec<ClassId>,
    classes: usize,
}

impl<K: Sink> Sink for NotingSink<'_, K> {
    fn finished(&mut self, now_ns: u64, request: &SimRequest) {
        self.left.push(seen_class(request, self.classes));
        self.sink.finished(now_ns, request);
    }

    fn shed(&mut self, now_ns: u64, request: &SimRequest) {
        self.left.push(seen_class(request, self.classes));
        self.sink.shed(now_ns, request);
    }

    fn replanned(&mut self, now_ns: u64, plan: Option<&Plan>) {
        self.sink.replanned(now_ns, plan);
    }
}
