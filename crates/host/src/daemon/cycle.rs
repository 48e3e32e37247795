//! The thread that goes through passes.

use super::doors::Doors;
use super::inbox::{DaemonInbox, DaemonOrder};
use crate::arbiter::{Arbiter, Newcomer};
use crate::peer::PeerProcess;
use crate::topology::HostCores;
use headway_machine::{Clock, thread};
use headway_policy::host::systems::{self, HostSystem, HostVisit};
use headway_policy::host::{Allocator, HostShape};
use headway_policy::spec::Spec;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::time::Duration;

/// Applications at once.
pub(super) const SLOTS: usize = 64;

/// What the thread needs.
pub(super) struct Cycle {
    pub(super) cores: HostCores,
    pub(super) tick_ns: u64,
    pub(super) inbox: DaemonInbox,
    pub(super) clock: Clock,
    /// Until then nobody is granted a core: applications of the last daemon come with those that they have.
    pub(super) grace_ns: u64,
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
    ) -> io::Result<Self> {
        let doors = Doors::new(inbox.wakes())?;
        let clock = Clock::global();
        Ok(Self {
            cores,
            tick_ns,
            inbox,
            clock,
            grace_ns: clock.now_ns() + grace_ns,
            doors,
        })
    }

    /// Passes until the daemon is stopped.
    pub(super) fn run(mut self, mut policy: Spec) {
        thread::name_current("hw-arbiter");
        match self.cores.own {
            // It runs elsewhere where it may not be pinned: slower, not wrong.
            Some(core) => drop(thread::pin_current(core)),
            None => drop(thread::stay_responsive()),
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
                // Specs are checked before they come here.
                Ok(CycleEnd::Stopped) | Err(_) => return,
            }
        }
    }

    /// Waits for so long, or until somebody rings.
    fn wait(&mut self, patience_ns: u64) {
        let now_ns = self.clock.now_ns();
        let again_ns = self.doors.listen_again(now_ns);
        let patience_ns = again_ns.map_or(patience_ns, |again_ns| {
            patience_ns.min(again_ns.saturating_sub(now_ns))
        });
        let timeout = TimeSpec::from_duration(Duration::from_nanos(patience_ns));
        let mut fds = [PollFd::new(self.doors.as_fd(), PollFlags::POLLIN)];
        if ppoll(&mut fds, Some(timeout), None).is_ok_and(|ready| ready > 0) {
            self.doors.rang(self.clock.now_ns());
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
            if arbiter.admit(member, &now).is_err() {
                cycle.doors.remove(id);
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
                    order => heed(order, &mut arbiter, &mut cycle.doors, &now),
                }
            }
            if now() >= cycle.grace_ns {
                arbiter.pass(&now);
            }
            if shares {
                let patience_ns = arbiter.patience_ns(cycle.tick_ns, now());
                let grace_ns = cycle.grace_ns.saturating_sub(now());
                cycle.wait(patience_ns.max(grace_ns));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

fn heed<A: Allocator>(
    order: DaemonOrder,
    arbiter: &mut Arbiter<A, PeerProcess>,
    doors: &mut Doors,
    now: &impl Fn() -> u64,
) {
    match order {
        DaemonOrder::Admit {
            newcomer,
            doorbell,
            answer,
        } => {
            let id = newcomer.id;
            let admitted = arbiter.admit(*newcomer, now);
            if admitted.is_ok() {
                doors.add(id, doorbell);
            }
            let _ = answer.send(admitted.map(drop));
        }
        DaemonOrder::Retire(id) => {
            arbiter.retire(id, now);
            doors.remove(id);
        }
        DaemonOrder::Report {
            since_ns,
            most,
            answer,
        } => {
            let _ = answer.send(arbiter.report(now(), since_ns, most));
        }
        DaemonOrder::Policy(_) | DaemonOrder::Stop(_) => {}
    }
}
