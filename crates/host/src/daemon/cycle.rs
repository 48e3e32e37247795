//! The pass thread: it runs the arbiter's passes.

use super::doors::{Doors, PACKET_RINGS_MAX, RINGS_MAX};
use super::inbox::{DaemonInbox, DaemonOrder};
use super::network::HostNetwork;
use crate::arbiter::{Arbiter, Newcomer};
use crate::peer::PeerProcess;
use crate::topology::{HostCores, mask};
use headway_machine::Clock;
use headway_machine::thread::{self, Responsiveness};
use headway_policy::host::systems::{self, HostSystem, HostVisit};
use headway_policy::host::{Allocator, BusyPolling, HostShape};
use headway_policy::spec::Spec;
use nix::sched::{sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use std::io;

/// The most applications at once.
pub(super) const SLOTS: usize = 64;

/// The inputs of the thread.
pub(super) struct Cycle {
    pub(super) cores: HostCores,
    pub(super) tick_ns: u64,
    pub(super) inbox: DaemonInbox,
    pub(super) clock: Clock,
    /// The thread grants no core before this moment, since applications of the last daemon return with the cores that they have.
    pub(super) grace_ns: u64,
    network: Option<HostNetwork>,
    polling: BusyPolling,
    doors: Doors,
}

/// Why passes under one allocator ended.
enum CycleEnd {
    Stopped,
    Policy {
        policy: Spec,
        members: Vec<Newcomer<PeerProcess>>,
    },
}

impl Cycle {
    pub(super) fn new(
        cores: HostCores,
        tick_ns: u64,
        inbox: DaemonInbox,
        grace_ns: u64,
        network: Option<HostNetwork>,
    ) -> io::Result<Self> {
        let doors = Doors::new(inbox.wakes())?;
        for descriptor in network.iter().flat_map(HostNetwork::descriptors) {
            doors.watch(descriptor)?;
        }
        let clock = Clock::global();
        Ok(Self {
            cores,
            tick_ns,
            inbox,
            clock,
            grace_ns: clock.now_ns() + grace_ns,
            network,
            polling: BusyPolling::new(true),
            doors,
        })
    }

    /// Runs passes until the daemon stops.
    pub(super) fn run(mut self, mut policy: Spec) {
        thread::name_current("hw-arbiter");
        // Without the right to pin itself the thread runs on any core, which is slower but correct.
        match self.cores.own {
            Some(core) => drop(thread::pin_current(core)),
            None => {
                // On another core it would interrupt who has nothing to do with this host.
                let _ =
                    sched_setaffinity(Pid::from_raw(0), &mask(self.cores.dealt.iter().copied()));
                let responsiveness = thread::stay_responsive();
                let is_real_time = matches!(responsiveness, Responsiveness::RealTime { .. });
                self.polling = BusyPolling::new(is_real_time && !thread::may_spin_in_real_time());
            }
        }
        let mut members = Vec::new();
        loop {
            let shape = HostShape::vacant(self.cores.siblings.clone(), SLOTS, 1);
            let passes = Passes {
                cycle: &mut self,
                members,
            };
            match systems::with(&policy, &shape, passes) {
                Ok(CycleEnd::Policy {
                    policy: next,
                    members: kept,
                }) => {
                    policy = next;
                    members = kept;
                }
                // The caller has checked the specs.
                Ok(CycleEnd::Stopped) | Err(_) => return,
            }
        }
    }
}

struct Passes<'a> {
    cycle: &'a mut Cycle,
    members: Vec<Newcomer<PeerProcess>>,
}

impl HostVisit for Passes<'_> {
    type Output = CycleEnd;

    fn visit<A: Allocator + Send + 'static>(self, system: HostSystem<A>) -> CycleEnd {
        let Self { cycle, members } = self;
        let clock = cycle.clock;
        let now = || clock.now_ns();
        let shares = cycle.cores.own.is_none();
        let mut arbiter = Arbiter::new(system.allocator, cycle.cores.clone(), shares);
        for member in members {
            let id = member.id;
            match (arbiter.admit(member, &now), &mut cycle.network) {
                (Ok(app), Some(network)) => network.place(id, app),
                (Ok(_), None) => {}
                (Err(_), network) => {
                    cycle.doors.remove(id);
                    network.iter_mut().for_each(|network| network.detach(id));
                }
            }
        }
        loop {
            while let Some(order) = cycle.inbox.next() {
                match order {
                    DaemonOrder::Policy(policy) => {
                        let members = arbiter.into_newcomers();
                        return CycleEnd::Policy { policy, members };
                    }
                    DaemonOrder::Stop(done) => {
                        arbiter.retire_all(&now);
                        let _ = done.send(());
                        return CycleEnd::Stopped;
                    }
                    order => heed(order, &mut arbiter, cycle, &now),
                }
            }
            let network = cycle.network.as_mut();
            let has_moved = network.is_some_and(|network| network.turn(&mut arbiter));
            if now() >= cycle.grace_ns {
                arbiter.pass(&now);
            }
            if has_moved {
                cycle.polling.packets_moved(now());
                continue;
            }
            let has_idle_core = shares && sched_getcpu().is_ok_and(|core| arbiter.runs_on(core));
            if shares && !cycle.polling.goes_on(now(), has_idle_core) {
                let patience_ns = arbiter.patience_ns(cycle.tick_ns, now());
                let grace_ns = cycle.grace_ns.saturating_sub(now());
                let network = cycle.network.as_ref();
                let by_device = network.is_some_and(|network| network.wakes(&arbiter));
                let patience_ns = patience_ns.max(grace_ns);
                cycle.doors.wait(&now, patience_ns, by_device);
                cycle.network.iter_mut().for_each(HostNetwork::woke);
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

fn heed<A: Allocator>(
    order: DaemonOrder,
    arbiter: &mut Arbiter<A, PeerProcess>,
    cycle: &mut Cycle,
    now: &impl Fn() -> u64,
) {
    let Cycle { doors, network, .. } = cycle;
    match order {
        DaemonOrder::Admit {
            newcomer,
            doorbell,
            network: new,
            answer,
        } => {
            let id = newcomer.id;
            let rings = if new.is_some() {
                PACKET_RINGS_MAX
            } else {
                RINGS_MAX
            };
            let attached = match (new, &mut *network) {
                (Some(new), Some(network)) => network.attach(id, &new),
                _ => Ok(()),
            };
            let admitted = attached.and_then(|()| arbiter.admit(*newcomer, now));
            match (&admitted, network) {
                (Ok(app), Some(network)) => network.place(id, *app),
                (Err(_), Some(network)) => network.detach(id),
                (_, None) => {}
            }
            if admitted.is_ok() {
                doors.add(id, doorbell, rings);
            }
            let _ = answer.send(admitted.map(drop));
        }
        DaemonOrder::Retire(id) => {
            arbiter.retire(id, now);
            doors.remove(id);
            network.iter_mut().for_each(|network| network.detach(id));
        }
        DaemonOrder::Report {
            since_ns,
            most,
            answer,
        } => {
            let mut report = arbiter.report(now(), since_ns, most);
            report.network = network.as_ref().map(|network| network.report(arbiter));
            let _ = answer.send(report);
        }
        DaemonOrder::Policy(_) | DaemonOrder::Stop(_) => {}
    }
}
