//! The event loop of a host: it owns the time and carries out the allocator's moves.
//!
//! The life of a core: the daemon wakes a kthread on it (the application pays for it from then on); the kthread
//! runs; it finds no work for a while and parks, or the daemon signals it and it leaves; the allocator gets the
//! free core back.

use super::application::Application;
use super::experiment::HostExperiment;
use super::outcome::{HostOutcome, HostTotals};
use crate::error::SimError;
use crate::server::{NEVER, SimRequest};
use headway_policy::BitSet;
use headway_policy::host::systems::{self, HostSystem, HostVisit};
use headway_policy::host::{
    Allocator, AppId, CoreId, Counters, HostView, Idleness, Kthread, KthreadId, Move, Patience,
    Tenant, Usage,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl HostExperiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// [`SimError`] when a policy, a workload or a figure is not valid.
    pub fn run(&self) -> Result<HostOutcome, SimError> {
        self.check()?;
        systems::with(&self.policy, &self.shape(), RunHost { experiment: self })?
    }
}

/// Runs an experiment under the allocator that its policy names.
struct RunHost<'a> {
    experiment: &'a HostExperiment,
}

impl HostVisit for RunHost<'_> {
    type Output = Result<HostOutcome, SimError>;

    fn visit<A: Allocator>(self, system: HostSystem<A>) -> Self::Output {
        let mut host = Host::new(self.experiment, system.allocator)?;
        host.run();
        Ok(HostOutcome::new(
            self.experiment,
            system.name,
            &system.params,
            host.apps,
            host.totals,
        ))
    }
}

/// A pending event. `tenancy` identifies the core's tenant: a signal may arrive after its kthread has left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The kthread has passed the kernel's wake-up and runs.
    Running { core: u16, tenancy: u64 },
    /// The kthread has looked for work in vain for the whole spin time.
    Impatient { core: u16, tenancy: u64 },
    /// The core is free.
    Gone { core: u16, tenancy: u64 },
    /// The daemon's signal reaches the kthread.
    Signalled { core: u16, tenancy: u64 },
    /// The daemon has moved the kthread to the shared core.
    Evicted { core: u16, tenancy: u64 },
    /// The daemon carries out the move of this number.
    Act { number: usize },
    /// The daemon has handled the packet of this number.
    Packet { number: usize },
}

/// The state of a kthread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CoreState {
    Waking,
    Running,
    Parking,
}

/// A core that a kthread has.
#[derive(Clone, Copy)]
struct Occupied {
    tenant: Tenant,
    state: CoreState,
    since_ns: u64,
    idleness: Idleness,
    looks_for_work: bool,
}

/// Events between two looks at whether the experiment is cut off.
const LOOK_AT_CUTOFF: u64 = 1024;

struct Host<'a, A> {
    experiment: &'a HostExperiment,
    allocator: A,
    patience: Patience,
    apps: Vec<Application>,
    cores: Vec<Option<Occupied>>,
    tenancies: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    moves: Slots<Move>,
    packets: Slots<(usize, SimRequest)>,
    daemon_free_ns: u64,
    now_ns: u64,
    /// When the measured time ends.
    until_ns: u64,
    totals: HostTotals,
}

impl<'a, A: Allocator> Host<'a, A> {
    fn new(experiment: &'a HostExperiment, allocator: A) -> Result<Self, SimError> {
        let apps = experiment.apps.iter().enumerate();
        let apps: Result<Vec<_>, _> = apps
            .map(|(index, app)| Application::new(experiment, app, index))
            .collect();
        let cores = experiment.topology.cores();
        Ok(Self {
            experiment,
            allocator,
            patience: Patience {
                spin_ns: experiment.costs.spin_ns,
            },
            apps: apps?,
            cores: vec![None; cores],
            tenancies: vec![0; cores],
            events: BinaryHeap::new(),
            scheduled: 0,
            moves: Slots::default(),
            packets: Slots::default(),
            daemon_free_ns: 0,
            now_ns: 0,
            until_ns: experiment.duration_ns,
            totals: HostTotals::default(),
        })
    }

    /// Runs until the arrivals have ended and every request is done, or gives up after twice the
    /// duration plus a second: the remaining requests count as unfinished.
    fn run(&mut self) {
        for app in 0..self.apps.len() {
            if self.apps[app].is_batch() {
                self.allocator.arrived(0, AppId(app as u16));
            }
        }
        self.decide();
        let give_up_ns = 2 * self.until_ns + 1_000_000_000;
        for event in 0_u64.. {
            if event.is_multiple_of(LOOK_AT_CUTOFF) {
                self.heed_cutoff();
            }
            let now_ns = self.next_ns();
            let over = now_ns >= self.until_ns && self.packets.is_empty();
            if over && self.apps.iter().all(|app| app.in_flight() == 0) || now_ns > give_up_ns {
                break;
            }
            self.now_ns = now_ns;
            self.happen();
            self.decide();
        }
        self.close();
    }

    /// Ends the arrivals, once the experiment is cut off.
    fn heed_cutoff(&mut self) {
        if self.totals.cut_off || self.now_ns >= self.until_ns || !self.experiment.is_cut_off() {
            return;
        }
        self.totals.cut_off = true;
        self.until_ns = self.now_ns;
        for app in &mut self.apps {
            app.cut_off(self.now_ns);
        }
    }

    fn next_ns(&self) -> u64 {
        let own = self
            .apps
            .iter()
            .map(|app| app.next_ns().min(app.next_arrival_ns()));
        let event_ns = self
            .events
            .peek()
            .map_or(NEVER, |Reverse((at_ns, ..))| *at_ns);
        let look_ns = self.allocator.next_deadline_ns().unwrap_or(NEVER);
        own.fold(event_ns.min(look_ns), u64::min)
    }

    /// Carries out one event. On a tie, ends come before beginnings, and the allocator's looks come last.
    fn happen(&mut self) {
        let now_ns = self.now_ns;
        if let Some(app) = self.apps.iter().position(|app| app.next_ns() == now_ns) {
            self.apps[app].step();
            return self.watch(app);
        }
        if let Some(&Reverse((at_ns, _, event))) = self.events.peek()
            && at_ns == now_ns
        {
            self.events.pop();
            return self.event(event);
        }
        if let Some(app) = self
            .apps
            .iter()
            .position(|app| app.next_arrival_ns() == now_ns)
        {
            return self.arrival(app);
        }
        let seen = AppsView {
            apps: &self.apps,
            now_ns,
        };
        self.allocator.look(now_ns, &seen);
    }

    /// Queues the allocator's decisions at the daemon, one after the other.
    fn decide(&mut self) {
        while let Some(decision) = self.allocator.poll() {
            let at_ns = self.daemon_works(self.experiment.costs.daemon_ns);
            let number = self.moves.put(decision);
            self.at(at_ns, Event::Act { number });
        }
    }

    /// The time when the daemon has done one more piece of work.
    fn daemon_works(&mut self, for_ns: u64) -> u64 {
        let from_ns = self.daemon_free_ns.max(self.now_ns);
        self.daemon_free_ns = from_ns + for_ns;
        let measured = self.apps.first().map(|app| app.measured);
        self.totals.daemon_ns += measured.map_or(0, |m| m.part_ns(from_ns, self.daemon_free_ns));
        self.daemon_free_ns
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.events.push(Reverse((at_ns, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn arrival(&mut self, app: usize) {
        let Some(request) = self.apps[app].take_arrival() else {
            return;
        };
        match self.experiment.costs.packet_ns {
            0 => self.deliver(app, request),
            packet_ns => {
                let at_ns = self.daemon_works(packet_ns);
                let number = self.packets.put((app, request));
                self.at(at_ns, Event::Packet { number });
            }
        }
    }

    /// A request reaches its application.
    fn deliver(&mut self, app: usize, request: SimRequest) {
        self.apps[app].deliver(self.now_ns, request);
        self.allocator.arrived(self.now_ns, AppId(app as u16));
        self.watch(app);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Act { number } => {
                let decision = self.moves.take(number);
                self.act(decision);
            }
            Event::Packet { number } => {
                let (app, request) = self.packets.take(number);
                self.deliver(app, request);
            }
            Event::Running { core, tenancy } => self.if_still(core, tenancy, Self::runs),
            Event::Impatient { core, tenancy } => self.if_still(core, tenancy, Self::impatient),
            Event::Signalled { core, tenancy } => self.if_still(core, tenancy, Self::signalled),
            Event::Evicted { core, tenancy } => self.if_still(core, tenancy, Self::evicted),
            Event::Gone { core, tenancy } => self.if_still(core, tenancy, Self::gone),
        }
    }

    /// Ignores an event whose core has had another tenant since.
    fn if_still(&mut self, core: u16, tenancy: u64, then: fn(&mut Self, CoreId, Occupied)) {
        let core = CoreId(core);
        if self.tenancies[core.index()] != tenancy {
            return;
        }
        if let Some(occupied) = self.cores[core.index()] {
            then(self, core, occupied);
        }
    }

    /// The daemon carries a move out.
    fn act(&mut self, decision: Move) {
        let costs = self.experiment.costs;
        match decision {
            Move::Grant { core, to } => {
                self.tenancies[core.index()] += 1;
                self.cores[core.index()] = Some(Occupied {
                    tenant: to,
                    state: CoreState::Waking,
                    since_ns: self.now_ns,
                    idleness: Idleness::default(),
                    looks_for_work: false,
                });
                self.apps[to.app.index()].sums.grants += u64::from(self.is_measured());
                let event = Event::Running {
                    core: core.0,
                    tenancy: self.tenancies[core.index()],
                };
                self.at(self.now_ns + costs.wake_ns, event);
            }
            // A kthread that parked meanwhile needs no signal.
            Move::Revoke { core, from } if self.has(core, from) => {
                let event = Event::Signalled {
                    core: core.0,
                    tenancy: self.tenancies[core.index()],
                };
                self.at(self.now_ns + costs.leave_ns, event);
            }
            Move::Evict { core, from } if self.has(core, from) => {
                let event = Event::Evicted {
                    core: core.0,
                    tenancy: self.tenancies[core.index()],
                };
                self.at(self.now_ns + costs.leave_ns, event);
            }
            Move::Revoke { .. } | Move::Evict { .. } => {}
        }
    }

    fn has(&self, core: CoreId, tenant: Tenant) -> bool {
        self.cores[core.index()].is_some_and(|occupied: Occupied| occupied.tenant == tenant)
    }

    fn runs(&mut self, core: CoreId, _occupied: Occupied) {
        self.set_state(core, CoreState::Running);
        let Some(Occupied { tenant, .. }) = self.cores[core.index()] else {
            return;
        };
        self.pair(core, tenant);
        self.apps[tenant.app.index()].wake(self.now_ns, tenant.kthread);
        self.watch(tenant.app.index());
    }

    /// The kthread of the same application on the core's sibling.
    fn beside(&self, core: CoreId, app: AppId) -> Option<KthreadId> {
        let sibling = self.experiment.topology.sibling(core)?;
        let occupied = self.cores[sibling.index()]?;
        (occupied.tenant.app == app).then_some(occupied.tenant.kthread)
    }

    /// Kthreads of one application on one physical core steal from each other first.
    fn pair(&mut self, core: CoreId, tenant: Tenant) {
        let beside = self.beside(core, tenant.app);
        let app = &mut self.apps[tenant.app.index()];
        app.set_sibling(tenant.kthread, beside);
        if let Some(beside) = beside {
            app.set_sibling(beside, Some(tenant.kthread));
        }
    }

    /// The kthread puts its request back and leaves, unless its application ignores signals.
    fn signalled(&mut self, core: CoreId, occupied: Occupied) {
        if !self.apps[occupied.tenant.app.index()].refuses {
            self.leave(core, occupied);
        }
    }

    /// The daemon moves the kthread to the shared core. The model queues the kthread's request again, as after a signal: it grants no service
    /// on the shared core.
    fn evicted(&mut self, core: CoreId, occupied: Occupied) {
        let measured = u64::from(self.is_measured());
        self.apps[occupied.tenant.app.index()].sums.evicted += measured;
        self.leave(core, occupied);
    }

    fn leave(&mut self, core: CoreId, occupied: Occupied) {
        match occupied.state {
            CoreState::Parking => return,
            CoreState::Waking => {}
            CoreState::Running => self.stop(occupied.tenant),
        }
        let measured = u64::from(self.is_measured());
        self.apps[occupied.tenant.app.index()].sums.preempted += measured;
        self.gone(core, occupied);
    }

    fn impatient(&mut self, core: CoreId, mut occupied: Occupied) {
        let idle = occupied.state == CoreState::Running
            && self.apps[occupied.tenant.app.index()].is_idle(occupied.tenant.kthread);
        // A kthread that found work meanwhile has a new spin time, and an event of its own for it.
        if !idle
            || occupied
                .idleness
                .found_nothing(self.now_ns, self.patience)
                .is_some()
        {
            return;
        }
        self.stop(occupied.tenant);
        self.set_state(core, CoreState::Parking);
        let event = Event::Gone {
            core: core.0,
            tenancy: self.tenancies[core.index()],
        };
        self.at(self.now_ns + self.experiment.costs.park_ns, event);
    }

    fn stop(&mut self, tenant: Tenant) {
        self.apps[tenant.app.index()].stop(self.now_ns, tenant.kthread);
        self.watch(tenant.app.index());
    }

    /// Frees the core.
    fn gone(&mut self, core: CoreId, occupied: Occupied) {
        let app = occupied.tenant.app;
        self.cores[core.index()] = None;
        self.charge(occupied);
        if let Some(beside) = self.beside(core, app) {
            self.apps[app.index()].set_sibling(beside, None);
        }
        self.allocator.released(self.now_ns, core);
        // A request may have come between the last look for work and the leaving.
        if self.apps[app.index()].waits() {
            self.allocator.arrived(self.now_ns, app);
        }
    }

    fn charge(&mut self, occupied: Occupied) {
        let app = &mut self.apps[occupied.tenant.app.index()];
        app.sums.allocated_ns += app.measured.part_ns(occupied.since_ns, self.now_ns);
    }

    fn set_state(&mut self, core: CoreId, state: CoreState) {
        if let Some(occupied) = &mut self.cores[core.index()] {
            occupied.state = state;
        }
    }

    fn is_measured(&self) -> bool {
        (self.experiment.warm_up_ns()..self.until_ns).contains(&self.now_ns)
    }

    /// Starts the spin time of every kthread of an application that became idle by the last event.
    fn watch(&mut self, app: usize) {
        if !A::PARKS {
            return;
        }
        for core in self.allocator.cores().active(AppId(app as u16)).iter() {
            let Some(occupied) = &mut self.cores[core] else {
                continue;
            };
            if occupied.state != CoreState::Running || occupied.tenant.app.index() != app {
                continue;
            }
            let idle = self.apps[app].is_idle(occupied.tenant.kthread);
            if idle == occupied.looks_for_work {
                continue;
            }
            occupied.looks_for_work = idle;
            occupied.idleness.found_work();
            if !idle {
                continue;
            }
            let until_ns = occupied.idleness.found_nothing(self.now_ns, self.patience);
            let event = Event::Impatient {
                core: core as u16,
                tenancy: self.tenancies[core],
            };
            self.events.push(Reverse((
                until_ns.unwrap_or(self.now_ns),
                self.scheduled,
                event,
            )));
            self.scheduled += 1;
        }
    }

    /// Charges the applications for the cores that they still hold.
    fn close(&mut self) {
        self.now_ns = self.now_ns.max(self.until_ns);
        for core in 0..self.cores.len() {
            if let Some(occupied) = self.cores[core].take() {
                self.charge(occupied);
            }
        }
        for app in &mut self.apps {
            app.advance_to(self.now_ns);
        }
    }
}

/// The applications as the allocator sees them.
struct AppsView<'a> {
    apps: &'a [Application],
    now_ns: u64,
}

impl HostView for AppsView<'_> {
    fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread {
        self.apps[app.index()].look_at(kthread)
    }

    fn shared(&self, app: AppId) -> Counters {
        self.apps[app.index()].shared()
    }

    fn usage(&self, app: AppId) -> Usage {
        self.apps[app.index()].usage(self.now_ns)
    }

    /// Always empty: the remaining kthreads take over an interrupted kthread's request.
    fn interrupted(&self, _app: AppId) -> BitSet {
        BitSet::EMPTY
    }
}

/// Items that events refer to by number.
struct Slots<T> {
    items: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, item: T) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            self.items.len() - 1
        });
        self.items[number] = Some(item);
        number
    }

    fn take(&mut self, number: usize) -> T {
        self.free.push(number);
        self.items[number].take().expect("a number is used once")
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.items.len()
    }
}
