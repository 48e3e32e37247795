//! Where a request goes when its group's server has more than it drains (ours; the paper's turns look at no queue).
//!
//! A layout is made for a mix. When the mix changes, a group may be sent more than its cores finish, and turns alone pile that up on
//! them until the next layout takes effect. So the switch counts the requests of each group at each server, by what it sends and hears.
//!
//! | the server whose turn it is | the request goes to |
//! |---|---|
//! | has an idle core among those of the group | it |
//! | has none | the least loaded server of the group if that has one, else the least loaded of the rack if that has an idle core |
//! | has `per_core` requests for each of these cores, and as many as all its cores: its backlog grew faster than it drains | the same, and to the least loaded of the rack even if that has no idle core, but less to do |
//!
//! The second row costs a steady mix little, since a group whose demand was met seldom has no idle core while others have. The third
//! leaves what a change piles up no longer than under `RackSched`. A smaller `per_core` gives that up: longs then spill over the shorts'
//! servers at a steady load of 90 %.

use super::{RackLayout, ServerId};
use alloc::vec;
use alloc::vec::Vec;

/// Where the requests go that a group's cores cannot begin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Overflow {
    /// To the server whose turn it is, whatever it has (the paper's).
    Off,
    /// To others; a server with so many requests of a group for each of the group's cores is full, if these are as many as all its cores (ours).
    /// At least 1.
    PerCore(f64),
}

/// Requests at each server by group, as sends and replies tell.
#[derive(Clone, Debug)]
pub struct ServerLoads {
    per_core: f64,
    /// Types, UNKNOWN included, and so groups at most.
    classes: usize,
    /// Requests by server and type.
    of_class: Vec<u32>,
    /// By server and group.
    of_group: Vec<GroupBacklog>,
    of_server: Vec<ServerLoad>,
}

/// A group's part of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupBacklog {
    /// Its requests there.
    pub requests: u32,
    /// Its cores there.
    pub cores: u32,
    /// Requests at which the server is full for the group: no fewer than it has cores, since a group of few may use those of longer ones too.
    pub full: u32,
}

/// All of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ServerLoad {
    requests: u32,
    /// 0: it takes no requests.
    cores: u32,
}

impl ServerLoads {
    /// Over so many servers and types, UNKNOWN included. A server is full for a group with `per_core` requests for each core that it has for it.
    #[must_use]
    pub fn new(servers: usize, classes: usize, per_core: f64) -> Self {
        Self {
            per_core,
            classes,
            of_class: vec![0; servers * classes],
            of_group: vec![GroupBacklog::default(); servers * classes],
            of_server: vec![ServerLoad::default(); servers],
        }
    }

    /// The tables changed: requests are counted for the groups that their types are in now.
    pub fn lay_out(&mut self, layout: &RackLayout, group_of: &[u16]) {
        for server in 0..self.of_server.len() {
            self.of_server[server].cores = layout.capacity(server) as u32;
            for group in 0..self.classes {
                let cores = layout.cores(server, group) as u32;
                self.of_group[server * self.classes + group] = GroupBacklog {
                    requests: 0,
                    cores,
                    full: rounded_up(f64::from(cores) * self.per_core)
                        .max(self.of_server[server].cores),
                };
            }
            for (class, &group) in group_of.iter().enumerate() {
                self.of_group[server * self.classes + usize::from(group)].requests +=
                    self.of_class[server * self.classes + class];
            }
        }
    }

    /// A server has so many cores now. Without any it takes no requests, and those that it had count no more.
    pub fn capacity(&mut self, server: ServerId, cores: usize) {
        let at = server.index();
        self.of_server[at].cores = cores as u32;
        if cores == 0 {
            let own = at * self.classes..(at + 1) * self.classes;
            self.of_class[own.clone()].fill(0);
            self.of_group[own]
                .iter_mut()
                .for_each(|load| load.requests = 0);
            self.of_server[at].requests = 0;
        }
    }

    /// A request of this type and group goes to the server.
    #[inline]
    pub fn sent(&mut self, server: ServerId, class: usize, group: usize) {
        let at = server.index();
        self.of_class[at * self.classes + class] += 1;
        self.of_group[at * self.classes + group].requests += 1;
        self.of_server[at].requests += 1;
    }

    /// The server has one request less of this type and group. A late reply of a server that was away changes nothing.
    #[inline]
    pub fn came_back(&mut self, server: ServerId, class: usize, group: usize) {
        let at = server.index();
        let of_class = &mut self.of_class[at * self.classes + class];
        if *of_class > 0 {
            *of_class -= 1;
            self.of_group[at * self.classes + group].requests -= 1;
            self.of_server[at].requests -= 1;
        }
    }

    /// A group's part of a server.
    #[inline]
    #[must_use]
    pub fn of(&self, server: usize, group: usize) -> GroupBacklog {
        self.of_group[server * self.classes + group]
    }

    /// A server's cores; 0: it takes no requests.
    #[must_use]
    pub fn cores(&self, server: usize) -> u32 {
        self.of_server[server].cores
    }

    /// Whether the server has an idle core among those of the group.
    #[inline]
    #[must_use]
    pub fn has_idle(&self, server: ServerId, group: usize) -> bool {
        let load = self.of(server.index(), group);
        load.requests < load.cores && self.cores(server.index()) > 0
    }

    /// The server for a request whose turn fell on one without an idle core of its group.
    #[must_use]
    pub fn instead_of(&self, busy: ServerId, group: usize) -> ServerId {
        let idle_own = |server: usize| {
            let load = self.of(server, group);
            let is_idle = self.cores(server) > 0 && load.requests < load.cores;
            is_idle.then_some((load.requests, load.cores))
        };
        if let Some(server) = self.least_after(busy, idle_own) {
            return server;
        }
        let present = |server: usize| {
            let ServerLoad { requests, cores } = self.of_server[server];
            (cores > 0).then_some((requests, cores))
        };
        let Some(least) = self.least_after(busy, present) else {
            return busy;
        };
        let (load, from) = (self.of(busy.index(), group), self.of_server[busy.index()]);
        let to = self.of_server[least.index()];
        let has_less = is_less((to.requests, to.cores), (from.requests, from.cores));
        if to.requests < to.cores || (load.requests >= load.full && has_less) || from.cores == 0 {
            least
        } else {
            busy
        }
    }

    /// The server with the fewest requests for each core; of equals the first after `from`.
    fn least_after(
        &self,
        from: ServerId,
        load: impl Fn(usize) -> Option<(u32, u32)>,
    ) -> Option<ServerId> {
        let servers = self.of_server.len();
        let mut best: Option<(usize, (u32, u32))> = None;
        for step in 1..=servers {
            let server = (from.index() + step) % servers;
            if let Some(has) = load(server)
                && best.is_none_or(|(_, least)| is_less(has, least))
            {
                best = Some((server, has));
            }
        }
        best.map(|(server, _)| ServerId(server as u16))
    }
}

/// Whether the first has fewer requests for each core than the second.
fn is_less(first: (u32, u32), second: (u32, u32)) -> bool {
    u64::from(first.0) * u64::from(second.1) < u64::from(second.0) * u64::from(first.1)
}

fn rounded_up(value: f64) -> u32 {
    let whole = value as u32;
    whole + u32::from(f64::from(whole) < value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three servers of two cores: the first two of group 0, the third of group 1.
    fn loads() -> ServerLoads {
        let layout = RackLayout::new(&[2; 3], 1).updated(&[4, 2], &[None, None]);
        let mut loads = ServerLoads::new(3, 2, 2.5);
        loads.lay_out(&layout, &[0, 1]);
        loads
    }

    fn send(loads: &mut ServerLoads, server: u16, class: usize, requests: usize) {
        (0..requests).for_each(|_| loads.sent(ServerId(server), class, class));
    }

    #[test]
    fn a_busy_server_gives_to_its_group_first_and_then_to_whoever_is_idle() {
        let mut loads = loads();
        send(&mut loads, 0, 0, 2);
        assert!(!loads.has_idle(ServerId(0), 0) && loads.has_idle(ServerId(1), 0));
        assert_eq!(loads.instead_of(ServerId(0), 0), ServerId(1));
        send(&mut loads, 1, 0, 2);
        assert_eq!(loads.instead_of(ServerId(0), 0), ServerId(2));
        send(&mut loads, 2, 1, 2);
        assert_eq!(loads.instead_of(ServerId(0), 0), ServerId(0), "nobody is");
    }

    #[test]
    fn a_full_server_gives_to_whoever_has_less() {
        let mut loads = loads();
        (0..3).for_each(|server| send(&mut loads, server, usize::from(server == 2), 4));
        send(&mut loads, 1, 0, 1);
        assert_eq!(
            loads.instead_of(ServerId(0), 0),
            ServerId(0),
            "not full yet"
        );
        assert_eq!(loads.of(1, 0).full, 5);
        assert_eq!(loads.instead_of(ServerId(1), 0), ServerId(2));
    }

    #[test]
    fn a_server_that_is_away_gets_nothing_and_begins_anew() {
        let mut loads = loads();
        send(&mut loads, 0, 0, 4);
        loads.capacity(ServerId(0), 0);
        assert_eq!(loads.instead_of(ServerId(0), 0), ServerId(1));
        // A late reply.
        loads.came_back(ServerId(0), 0, 0);
        loads.capacity(ServerId(0), 2);
        assert!(loads.has_idle(ServerId(0), 0));
        assert_eq!(loads.of(0, 0).requests, 0);
    }

    proptest! {
        /// Whatever is sent, answered and laid out anew, nothing is counted twice and the counts end at zero.
        #[test]
        fn counts_follow_the_groups(
            moves in prop::collection::vec((0u16..3, 0usize..3, any::<bool>(), 0u16..2), 1..200),
        ) {
            let layout = RackLayout::new(&[2; 3], 1).updated(&[4, 2], &[None, None]);
            let mut loads = ServerLoads::new(3, 3, 2.0);
            let mut group_of = [0, 0, 1];
            loads.lay_out(&layout, &group_of);
            let mut at = [[0u32; 3]; 3];
            for (server, class, sends, group) in moves {
                let id = ServerId(server);
                if sends {
                    loads.sent(id, class, usize::from(group_of[class]));
                    at[usize::from(server)][class] += 1;
                } else if at[usize::from(server)][class] > 0 {
                    loads.came_back(id, class, usize::from(group_of[class]));
                    at[usize::from(server)][class] -= 1;
                } else {
                    group_of[class] = group;
                    loads.lay_out(&layout, &group_of);
                }
                for (server, at) in at.iter().enumerate() {
                    for group in 0..2 {
                        let of_group = (0..3).filter(|&class| usize::from(group_of[class]) == group);
                        prop_assert_eq!(loads.of(server, group).requests, of_group.map(|class| at[class]).sum::<u32>());
                    }
                    prop_assert_eq!(loads.of_server[server].requests, at.iter().sum::<u32>());
                }
            }
        }
    }
}
