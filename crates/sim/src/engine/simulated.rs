//! The engine's interface to its driver.

use super::requests::InFlight;
use super::{Delayed, Engine};
use crate::server::{Directed, Recorded, SimRequest, Simulated, Sink, Standing, Work, WorkerView};
use crate::tape::Tape;
use headway_policy::host::Counters;
use headway_policy::server::role::GroupShares;
use headway_policy::server::role::{Ingress, Local, Monitor, Owner};
use headway_policy::{ClassId, Plan, WorkerId};
use headway_report::schedule::Slice;
use std::ops::Range;

impl<I: Ingress, L: Local, M: Monitor> Standing for Engine<I, L, M> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.next_work_ns().min(self.deadline_ns())
    }

    #[inline]
    fn next_work_ns(&self) -> u64 {
        self.stops.first_ns().min(self.delayed_ns())
    }

    #[inline]
    fn idle(&self) -> usize {
        self.idle
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.ingress.waiting() + self.queues.waiting()
    }

    fn in_flight(&self) -> usize {
        self.requests.len()
    }

    fn work(&self) -> Work {
        self.work
    }

    fn plan(&self) -> Option<&Plan> {
        self.ingress.plan()
    }
}

impl<I: Ingress, L: Local, M: Monitor> WorkerView for Engine<I, L, M> {
    fn is_idle(&self, worker: WorkerId) -> bool {
        self.workers[worker.index()].is_idle()
    }

    fn counters_at(&self, worker: WorkerId) -> Counters {
        let head = self.queues.taken(worker);
        let tail = head + self.queues.len(worker) as u64;
        Counters { head, tail }
    }

    fn central_counters(&self) -> Counters {
        let head = self.dispatched + self.queues.shared_taken();
        let waiting = self.ingress.waiting() + self.queues.shared_len();
        let tail = head + waiting as u64;
        Counters { head, tail }
    }
}

impl<I: Ingress, L: Local, M: Monitor> Directed for Engine<I, L, M> {
    fn withdraw(&mut self, class: ClassId, withdrawn: &mut Vec<SimRequest>) {
        while let Some(job) = self.ingress.withdraw(class) {
            withdrawn.push(self.requests.get(job).request);
            self.requests.remove(job);
        }
    }

    fn would_start(&self, request: &SimRequest) -> bool {
        match I::OWNER {
            Owner::Dispatcher => self.ingress.would_start(ClassId(request.taken_for)),
            // Idle workers steal waiting requests from every queue.
            Owner::Steering | Owner::Nobody => L::STEALS && self.idle > 0,
        }
    }
}

impl<I: Ingress, L: Local, M: Monitor> Simulated for Engine<I, L, M> {
    /// On a tie what ends comes before what begins.
    #[inline]
    fn step(&mut self, sink: &mut impl Sink) {
        let (stop_ns, delayed_ns) = (self.stops.first_ns(), self.delayed_ns());
        let deadline_ns = self.deadline_ns();
        if deadline_ns < stop_ns && deadline_ns <= delayed_ns {
            return self.deadline(deadline_ns, sink);
        }
        self.advance_to(stop_ns.min(delayed_ns));
        if stop_ns <= delayed_ns {
            let worker = self.stops.first();
            let freed = self.worker_looks_up(worker, sink);
            // A worker that goes on with its request changes no input of the dispatcher's decisions.
            if freed || M::POLLS || I::WORKS {
                self.decide(sink);
                self.settle(worker);
            }
        } else {
            self.delayed_event(sink);
            self.decide(sink);
        }
    }

    /// The dispatcher sees the request after its earlier work.
    #[inline]
    fn arrive(&mut self, now_ns: u64, request: SimRequest, sink: &mut impl Sink) {
        self.advance_to(now_ns);
        let needs_ns = self.preemption.slowed_ns(request.service_ns);
        let needs_ns = needs_ns + self.looks_during_ns(needs_ns);
        let in_flight = InFlight::new(request, needs_ns);
        let (id, grown) = self.requests.insert(in_flight);
        if grown {
            self.ingress.grow(self.requests.capacity());
        }
        let seen_ns = match I::OWNER {
            Owner::Dispatcher => {
                self.seen_from_ns(now_ns).max(self.dispatcher_free_ns) + self.costs.dispatch_ns
            }
            Owner::Steering | Owner::Nobody => now_ns,
        };
        if seen_ns > now_ns {
            self.dispatcher_free_ns = seen_ns;
            return self.delay(seen_ns, Delayed::Arrival { job: id });
        }
        // Built from local values: reading the slot back would wait for the stores.
        self.admit(in_flight.job(id), sink);
        self.decide(sink);
    }

    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink) {
        self.advance_to(now_ns);
        if present {
            self.idle += usize::from(self.workers[worker.index()].come_back());
            self.ingress.worker_added(now_ns, worker);
            self.look_for_work(worker.index(), 0);
            self.place_accepted();
        } else {
            self.ingress.worker_removed(now_ns, worker);
            self.idle -= usize::from(self.workers[worker.index()].remove());
            if L::STEALS {
                self.hand_over(worker);
            }
        }
        self.note_plan(sink);
        self.decide(sink);
    }

    fn revoke(&mut self, now_ns: u64, worker: WorkerId, sink: &mut impl Sink) {
        self.advance_to(now_ns);
        self.ingress.worker_removed(now_ns, worker);
        let index = worker.index();
        self.idle -= usize::from(self.workers[index].revoke());
        if self.workers[index].is_serving() {
            self.preempt(index);
            self.settle(index);
        }
        self.note_plan(sink);
        self.decide(sink);
    }

    fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>) {
        self.queues.set_sibling(worker, sibling);
    }

    fn assign(&mut self, now_ns: u64, shares: &GroupShares, sink: &mut impl Sink) {
        self.advance_to(now_ns);
        self.ingress.assign(now_ns, shares);
        self.note_plan(sink);
        self.decide(sink);
    }
}

impl<I: Ingress, L: Local, M: Monitor> Recorded for Engine<I, L, M> {
    fn record(&mut self, window: Option<Range<u64>>) {
        self.tape = window.map(Tape::new);
    }

    fn take_slices(&mut self) -> Vec<Slice> {
        let tape = self.tape.take();
        tape.map(Tape::into_slices).unwrap_or_default()
    }
}
