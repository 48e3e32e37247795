//! A server of several dispatchers, each with workers of its own: engines side by side.

use crate::Costs;
use crate::engine::Engine;
use crate::engine::agenda::Agenda;
use crate::server::{
    Directed, NEVER, Recorded, SimRequest, Simulated, Sink, Standing, Work, WorkerView,
};
use crate::standings::Standings;
use headway_policy::host::Counters;
use headway_policy::server::role::GroupShares;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::{Division, Replicas};
use headway_policy::{ClassId, Plan, Shape, WorkerId};
use headway_report::schedule::{Runner, Slice};
use std::ops::Range;

/// Several engines that look like one server to their driver.
pub(crate) struct Replicated<I, L, M> {
    engines: Vec<Engine<I, L, M>>,
    division: Division,
    steps: Agenda,
    /// Idle workers and waiting requests of all instances. A single engine cannot see that another's worker idles while its own requests wait.
    standings: Standings,
    now_ns: u64,
}

impl<I: Ingress, L: Local, M: Monitor> Replicated<I, L, M> {
    pub(crate) fn new(replicas: Replicas<I, L, M>, shape: &Shape, costs: Costs) -> Self {
        let division = replicas.division;
        let systems = replicas.instances.into_iter().enumerate();
        let engines: Vec<_> = systems
            .map(|(at, system)| {
                let shape = Shape {
                    workers: division.workers_of(at),
                    ..shape.clone()
                };
                Engine::new(system, &shape, costs)
            })
            .collect();
        Self {
            steps: Agenda::new(engines.len()),
            standings: Standings::new(engines.iter().map(Standing::idle)),
            engines,
            division,
            now_ns: 0,
        }
    }

    /// Lets an instance act, and updates its next event and its counts.
    #[inline]
    fn act(&mut self, at: usize, now_ns: u64, act: impl FnOnce(&mut Engine<I, L, M>)) {
        self.standings.elapsed(now_ns - self.now_ns, 0);
        self.now_ns = now_ns;
        let engine = &mut self.engines[at];
        act(engine);
        self.steps.set(at, engine.next_ns());
        self.standings.note(at, engine);
    }

    fn sum(&self, of: impl Fn(&Engine<I, L, M>) -> u64) -> u64 {
        self.engines.iter().map(of).sum()
    }

    fn engine_of(&self, worker: WorkerId) -> (&Engine<I, L, M>, WorkerId) {
        let (at, worker) = self.division.place_of(worker);
        (&self.engines[at], worker)
    }
}

impl<I: Ingress, L: Local, M: Monitor> Standing for Replicated<I, L, M> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.steps.first_ns()
    }

    fn next_work_ns(&self) -> u64 {
        let each = self.engines.iter().map(Standing::next_work_ns);
        each.min().unwrap_or(NEVER)
    }

    fn idle(&self) -> usize {
        self.standings.idle()
    }

    fn waiting(&self) -> usize {
        self.standings.waiting()
    }

    fn in_flight(&self) -> usize {
        self.engines.iter().map(Standing::in_flight).sum()
    }

    fn work(&self) -> Work {
        Work {
            busy_ns: self.sum(|engine| engine.work().busy_ns),
            wasted_ns: self.standings.wasted_ns(),
            preemptions: self.sum(|engine| engine.work().preemptions),
            dispatcher_ns: self.sum(|engine| engine.work().dispatcher_ns),
        }
    }

    /// Each instance has a plan of its own; none covers all workers.
    fn plan(&self) -> Option<&Plan> {
        None
    }
}

impl<I: Ingress, L: Local, M: Monitor> WorkerView for Replicated<I, L, M> {
    fn is_idle(&self, worker: WorkerId) -> bool {
        let (engine, worker) = self.engine_of(worker);
        engine.is_idle(worker)
    }

    fn counters_at(&self, worker: WorkerId) -> Counters {
        let (engine, worker) = self.engine_of(worker);
        engine.counters_at(worker)
    }

    fn central_counters(&self) -> Counters {
        Counters {
            head: self.sum(|engine| engine.central_counters().head),
            tail: self.sum(|engine| engine.central_counters().tail),
        }
    }
}

impl<I: Ingress, L: Local, M: Monitor> Directed for Replicated<I, L, M> {
    fn withdraw(&mut self, class: ClassId, withdrawn: &mut Vec<SimRequest>) {
        for at in 0..self.engines.len() {
            self.act(at, self.now_ns, |engine| engine.withdraw(class, withdrawn));
        }
    }

    /// The request's flow determines its instance.
    fn would_start(&self, request: &SimRequest) -> bool {
        self.engines[self.division.steer(request.flow)].would_start(request)
    }
}

impl<I: Ingress, L: Local, M: Monitor> Simulated for Replicated<I, L, M> {
    #[inline]
    fn step(&mut self, sink: &mut impl Sink) {
        let (at, now_ns) = (self.steps.first(), self.steps.first_ns());
        self.act(at, now_ns, |engine| engine.step(sink));
    }

    #[inline]
    fn arrive(&mut self, now_ns: u64, request: SimRequest, sink: &mut impl Sink) {
        let at = self.division.steer(request.flow);
        self.act(at, now_ns, |engine| engine.arrive(now_ns, request, sink));
    }

    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink) {
        let (at, worker) = self.division.place_of(worker);
        self.act(at, now_ns, |engine| {
            engine.set_worker(now_ns, worker, present, sink);
        });
    }

    fn revoke(&mut self, now_ns: u64, worker: WorkerId, sink: &mut impl Sink) {
        let (at, worker) = self.division.place_of(worker);
        self.act(at, now_ns, |engine| engine.revoke(now_ns, worker, sink));
    }

    /// Siblings count within one instance only: a worker sees no queue of another instance.
    fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>) {
        let (at, worker) = self.division.place_of(worker);
        let sibling = sibling
            .map(|sibling| self.division.place_of(sibling))
            .and_then(|(other, sibling)| (other == at).then_some(sibling));
        self.engines[at].set_sibling(worker, sibling);
    }

    fn assign(&mut self, now_ns: u64, shares: &GroupShares, sink: &mut impl Sink) {
        for at in 0..self.engines.len() {
            self.act(at, now_ns, |engine| engine.assign(now_ns, shares, sink));
        }
    }
}

impl<I: Ingress, L: Local, M: Monitor> Recorded for Replicated<I, L, M> {
    fn record(&mut self, window: Option<Range<u64>>) {
        for engine in &mut self.engines {
            engine.record(window.clone());
        }
    }

    fn take_slices(&mut self) -> Vec<Slice> {
        let mut slices = Vec::new();
        for (at, engine) in self.engines.iter_mut().enumerate() {
            let first = self.division.first_of(at);
            slices.extend(engine.take_slices().into_iter().map(|slice| Slice {
                runner: match slice.runner {
                    Runner::Worker(worker) => Runner::Worker(first + worker),
                    Runner::Dispatcher(_) => Runner::Dispatcher(at),
                },
                ..slice
            }));
        }
        slices.sort_by_key(|slice| slice.to_ns);
        slices
    }
}
