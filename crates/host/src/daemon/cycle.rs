//! The pass thread: it runs the arbiter's passes.

use super::doors::{Doors, PACKET_RINGS_MAX, RINGS_MAX};
use super::inbox::{DaemonInbox, DaemonOrder};
use super::network::HostNetwork;
use super::say::say_aside;
use crate::arbiter::{Arbiter, CycleStep, Newcomer, PassCycle, UnusableCore};
use crate::peer::PeerProcess;
use crate::topology::{HostCores, mask};
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
    cores: HostCores,
    inbox: DaemonInbox,
    passes: PassCycle,
    network: Option<HostNetwork>,
    doors: Doors,
}

/// The result of a step of the thread.
enum PassStep {
    /// The next step is due at once.
    Again,
    /// The next step is due when a door opens, or after this time.
    Waits { patience_ns: u64 },
    /// Another allocator takes over.
    Policy(Spec),
    /// The daemon stops.
    Stopped,
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
        inbox: DaemonInbox,
        passes: PassCycle,
        network: Option<HostNetwork>,
    ) -> io::Result<Self> {
        let doors = Doors::new(inbox.wakes())?;
        for descriptor in network.iter().flat_map(HostNetwork::descriptors) {
            doors.watch(descriptor)?;
        }
        Ok(Self {
            cores,
            inbox,
            passes,
            network,
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
                let is_limited = is_real_time && !thread::may_spin_in_real_time();
                self.passes.poll_by(BusyPolling::new(is_limited));
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
        let shares = cycle.passes.shares();
        let arbiter = Arbiter::new(system.allocator, cycle.cores.clone(), shares);
        let mut thread = PassThread { cycle, arbiter };
        thread.admit(members);
        loop {
            match thread.step() {
                PassStep::Again => std::hint::spin_loop(),
                PassStep::Waits { patience_ns } => thread.wait(patience_ns),
                PassStep::Policy(policy) => {
                    let members = thread.arbiter.into_newcomers();
                    return CycleEnd::Policy { policy, members };
                }
                PassStep::Stopped => return CycleEnd::Stopped,
            }
        }
    }
}

/// The thread under one allocator.
struct PassThread<'a, A> {
    cycle: &'a mut Cycle,
    arbiter: Arbiter<A, PeerProcess>,
}

impl<A: Allocator> PassThread<'_, A> {
    /// Admits the applications of the last allocator.
    fn admit(&mut self, members: Vec<Newcomer<PeerProcess>>) {
        let Self { cycle, arbiter } = self;
        let clock = cycle.passes.clock();
        for member in members {
            let id = member.id;
            match (
                arbiter.admit(member, &|| clock.now_ns()),
                &mut cycle.network,
            ) {
                (Ok(app), Some(network)) => network.place(id, app),
                (Ok(_), None) => {}
                (Err(_), network) => {
                    cycle.doors.remove(id);
                    network.iter_mut().for_each(|network| network.detach(id));
                }
            }
        }
    }

    /// Carries out waiting orders, moves packets, and runs a pass.
    fn step(&mut self) -> PassStep {
        let Self { cycle, arbiter } = self;
        let clock = cycle.passes.clock();
        let now = || clock.now_ns();
        while let Some(order) = cycle.inbox.next() {
            match order {
                DaemonOrder::Policy(policy) => return PassStep::Policy(policy),
                DaemonOrder::Stop(done) => {
                    arbiter.retire_all(&now);
                    let _ = done.send(());
                    return PassStep::Stopped;
                }
                order => heed(order, arbiter, cycle, &now),
            }
        }
        let network = cycle.network.as_mut();
        let has_moved = network.is_some_and(|network| network.turn(arbiter));
        let next = cycle
            .passes
            .step(arbiter, has_moved, || sched_getcpu().ok());
        for core in arbiter.take_unusable() {
            say_aside(why_unusable(&core));
        }
        match next {
            CycleStep::Again => PassStep::Again,
            CycleStep::Waits { patience_ns } => PassStep::Waits { patience_ns },
        }
    }

    /// Sleeps until a door opens, or so long.
    fn wait(&mut self, patience_ns: u64) {
        let Self { cycle, arbiter } = self;
        let clock = cycle.passes.clock();
        let network = cycle.network.as_ref();
        let by_device = network.is_some_and(|network| network.wakes(arbiter));
        cycle.doors.wait(&|| clock.now_ns(), patience_ns, by_device);
        cycle.network.iter_mut().for_each(HostNetwork::woke);
    }
}

fn why_unusable(UnusableCore { app, core }: &UnusableCore) -> String {
    format!(
        "'{app}' is granted core {core} and may not use it: since it registered, its cpuset became smaller, or it confined its own threads, which then run on each other's cores; widen the cpuset, or start the daemon with the cores that its applications have in common (--cores)"
    )
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
            claim,
            answer,
        } => {
            // One that no longer waits was told that it is not registered.
            if !claim.take() {
                return;
            }
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
