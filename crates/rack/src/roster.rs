//! The servers of a rack as they come and go: orders go in, planes carry them out and say when they have.
//!
//! A switch has a fixed number of places for servers, so that nothing of it grows while it runs. A place without a server is one of a server without
//! cores: policies treat both alike. A place that becomes free is taken again last of all, so that late packets of its server are not its
//! successor's.

use crate::{AddressError, ServerAddresses};
use headway_policy::rack::ServerId;
use headway_sync::Guarded;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a server of a rack is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Membership {
    /// It gets requests.
    Serves,
    /// It gets no new request. Once the requests that it has are answered, or expired, it leaves.
    Drains,
    /// It leaves at once, and what it has is lost.
    Leaves,
}

/// A server in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RackMember {
    /// Its address.
    pub address: SocketAddr,
    /// Its workers, unless its agent says otherwise.
    pub cores: usize,
    /// What it is to do.
    pub membership: Membership,
}

/// Why an order is refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// There is no such server.
    #[error("{0} is no server of this switch: `headway rack status` lists them")]
    Unknown(SocketAddr),
    /// It has a place already.
    #[error("{0} is a server of this switch already, with so many cores")]
    Twice(SocketAddr),
    /// All places are taken.
    #[error(
        "all {0} places of this switch are taken: remove a server, or start it with more by --most-servers N"
    )]
    Full(usize),
    /// It is the last one that gets requests.
    #[error("{0} is the last server that gets requests: add another one first")]
    Last(SocketAddr),
    /// No datagram reaches such an address.
    #[error(transparent)]
    Address(#[from] AddressError),
}

headway_words::debug_is_display!(RosterError);

struct RosterState {
    places: Vec<Option<RackMember>>,
    /// The longest free first.
    free: VecDeque<u16>,
    /// The revision that the plane has carried out.
    done: u64,
    /// What the last server that left each place lost.
    lost: Vec<Option<u64>>,
}

/// The places of a rack and the servers in them, shared by those who give orders and those who carry them out.
pub struct RackRoster {
    state: Guarded<RosterState>,
    /// Counts changes.
    revision: AtomicU64,
}

impl RackRoster {
    /// These servers in the first places, and `places` in all.
    #[must_use]
    pub fn new(servers: &[(SocketAddr, usize)], places: usize) -> Self {
        let members = servers.iter().map(|&(address, cores)| {
            Some(RackMember {
                address,
                cores,
                membership: Membership::Serves,
            })
        });
        let mut members: Vec<_> = members.collect();
        members.resize(places.max(servers.len()), None);
        Self::of_places(members)
    }

    /// Members in the places that they have.
    #[must_use]
    pub fn of_places(places: Vec<Option<RackMember>>) -> Self {
        let numbers = (0..places.len() as u16).filter(|&at| places[usize::from(at)].is_none());
        Self {
            state: Guarded::new(RosterState {
                free: numbers.collect(),
                lost: vec![None; places.len()],
                places,
                done: 0,
            }),
            revision: AtomicU64::new(0),
        }
    }

    /// Adds a server, or has one serve that drains or had another number of cores. Returns the revision in which it does.
    ///
    /// # Errors
    /// [`RosterError`]; nothing has changed then.
    pub fn add(&self, address: SocketAddr, cores: usize) -> Result<u64, RosterError> {
        ServerAddresses::new(&[address])?;
        let mut state = self.state.lock();
        let member = RackMember {
            address,
            cores,
            membership: Membership::Serves,
        };
        let at = match state.find(address) {
            Some(at) if state.places[at] == Some(member) => {
                return Err(RosterError::Twice(address));
            }
            Some(at) => at,
            None => {
                let full = RosterError::Full(state.places.len());
                usize::from(state.free.pop_front().ok_or(full)?)
            }
        };
        state.places[at] = Some(member);
        Ok(self.changed())
    }

    /// Orders a server to drain or to leave. Returns the revision in which it does.
    ///
    /// # Errors
    /// [`RosterError`]; nothing has changed then.
    pub fn order(&self, address: SocketAddr, membership: Membership) -> Result<u64, RosterError> {
        let mut state = self.state.lock();
        let at = state.find(address).ok_or(RosterError::Unknown(address))?;
        let others = state.places.iter().enumerate();
        let others = others.filter(|&(other, _)| other != at);
        let serves = |member: &RackMember| member.membership == Membership::Serves;
        if !others.flat_map(|(_, member)| member).any(serves) {
            return Err(RosterError::Last(address));
        }
        if let Some(member) = &mut state.places[at] {
            member.membership = membership;
        }
        Ok(self.changed())
    }

    /// Waits until the plane has carried out this revision. `false`: it has not within `patience`.
    #[must_use]
    pub fn await_done(&self, revision: u64, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.done < revision {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.state.wait_for(state, left);
        }
        true
    }

    /// The servers by place.
    #[must_use]
    pub fn members(&self) -> Vec<Option<RackMember>> {
        self.state.lock().places.clone()
    }

    /// The requests that the last server that left this place lost; none if none has left it.
    #[must_use]
    pub fn lost(&self, place: usize) -> Option<u64> {
        self.state.lock().lost.get(place).copied().flatten()
    }

    /// The servers' addresses by place.
    #[must_use]
    pub fn addresses(&self) -> ServerAddresses {
        let members = self.members();
        let mut addresses = ServerAddresses::vacant(members.len());
        for (place, member) in (0..).zip(members) {
            addresses.put(ServerId(place), member.map(|member| member.address));
        }
        addresses
    }

    /// Counts changes: a number that was seen before says that nothing has changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Counts a change; the caller holds the lock.
    fn changed(&self) -> u64 {
        self.revision.fetch_add(1, Ordering::AcqRel) + 1
    }
}

impl RosterState {
    fn find(&self, address: SocketAddr) -> Option<usize> {
        let is_it = |member: &RackMember| {
            let (ip, port) = (member.address.ip().to_canonical(), member.address.port());
            (ip, port) == (address.ip().to_canonical(), address.port())
        };
        self.places
            .iter()
            .position(|member| member.as_ref().is_some_and(is_it))
    }

    fn vacate(&mut self, at: usize) {
        self.places[at] = None;
        self.free.push_back(at as u16);
    }
}

/// A data plane that servers come to and leave.
pub trait RosterPlane {
    /// A server takes its place, or serves again, or with other cores. `false`: not yet, it is to be called again.
    fn join(&mut self, server: ServerId, member: &RackMember) -> bool;
    /// The server gets no new request from now on, or soon.
    fn drain(&mut self, server: ServerId);
    /// Whether a server that drains has nothing left and gets nothing more.
    fn is_drained(&self, server: ServerId) -> bool;
    /// The server's place is free. What it has is lost: the number of requests. `None`: not yet, it is to be called again.
    fn remove(&mut self, server: ServerId) -> Option<u64>;
}

/// What a plane has carried out of a roster.
pub struct RosterFollower {
    known: Vec<Option<RackMember>>,
    revision: u64,
    /// Whether something is left to be done without a new order.
    waits: bool,
}

impl RosterFollower {
    /// A plane that was built with these members.
    #[must_use]
    pub fn new(built_with: Vec<Option<RackMember>>) -> Self {
        Self {
            known: built_with,
            revision: 0,
            waits: true,
        }
    }

    /// Carries out what changed. Without a change it is a comparison, and it never waits for the lock.
    pub fn follow(&mut self, roster: &RackRoster, plane: &mut impl RosterPlane) {
        if roster.revision() == self.revision && !self.waits {
            return;
        }
        let Some(mut state) = roster.state.try_lock() else {
            return;
        };
        let newest = roster.revision();
        self.waits = false;
        let (mut all_done, mut vacated) = (true, false);
        for at in 0..state.places.len() {
            let Some(wanted) = state.places[at] else {
                continue;
            };
            let (server, known) = (ServerId(at as u16), &mut self.known[at]);
            if wanted.membership == Membership::Serves {
                if *known != Some(wanted) {
                    let joined = plane.join(server, &wanted);
                    *known = joined.then_some(wanted);
                    all_done &= joined;
                }
                continue;
            }
            if wanted.membership == Membership::Drains && *known != Some(wanted) {
                plane.drain(server);
                *known = Some(wanted);
            }
            let leaves = wanted.membership == Membership::Leaves;
            let goes = leaves || plane.is_drained(server);
            if let Some(lost) = goes.then(|| plane.remove(server)).flatten() {
                state.lost[at] = Some(lost);
                *known = None;
                state.vacate(at);
                vacated = true;
            } else {
                self.waits = true;
                all_done &= !leaves;
            }
        }
        self.waits |= !all_done;
        self.revision = if vacated { roster.changed() } else { newest };
        if all_done {
            state.done = newest;
            roster.state.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 7))
    }

    /// Writes down what it is told.
    #[derive(Default)]
    struct Plane {
        told: Vec<(&'static str, u16)>,
        has: u32,
        refuses: bool,
        /// How many times it is asked in vain to remove a server.
        keeps: u32,
    }

    impl RosterPlane for Plane {
        fn join(&mut self, server: ServerId, _member: &RackMember) -> bool {
            self.told.push(("join", server.0));
            !self.refuses
        }
        fn drain(&mut self, server: ServerId) {
            self.told.push(("drain", server.0));
        }
        fn is_drained(&self, _server: ServerId) -> bool {
            self.has == 0
        }
        fn remove(&mut self, server: ServerId) -> Option<u64> {
            if self.keeps > 0 {
                self.keeps -= 1;
                return None;
            }
            self.told.push(("remove", server.0));
            Some(u64::from(self.has))
        }
    }

    fn two() -> (RackRoster, RosterFollower, Plane) {
        let roster = RackRoster::new(&[(at(1), 1), (at(2), 1)], 3);
        let follower = RosterFollower::new(roster.members());
        (roster, follower, Plane::default())
    }

    #[test]
    fn each_order_is_carried_out_once_and_confirmed() {
        let (roster, mut follower, mut plane) = two();
        let now = Duration::ZERO;
        let added = roster.add(at(3), 4).unwrap();
        assert!(!roster.await_done(added, now));
        (0..3).for_each(|_| follower.follow(&roster, &mut plane));
        assert!(roster.await_done(added, now));
        assert_eq!(plane.told, [("join", 2)]);
        plane.has = 5;
        let drains = roster.order(at(1), Membership::Drains).unwrap();
        (0..3).for_each(|_| follower.follow(&roster, &mut plane));
        assert!(
            roster.await_done(drains, now),
            "it drains, and has not left"
        );
        assert_eq!(plane.told[1..], [("drain", 0)]);
        plane.has = 0;
        (0..3).for_each(|_| follower.follow(&roster, &mut plane));
        assert_eq!(plane.told[2..], [("remove", 0)]);
        assert_eq!((roster.members()[0], roster.lost(0)), (None, Some(0)));
        plane.has = 7;
        plane.keeps = 2;
        let left = roster.order(at(2), Membership::Leaves).unwrap();
        for _ in 0..2 {
            follower.follow(&roster, &mut plane);
            assert!(!roster.await_done(left, now));
        }
        follower.follow(&roster, &mut plane);
        assert!(roster.await_done(left, now));
        assert_eq!(plane.told[3..], [("remove", 1)]);
        assert_eq!(roster.lost(1), Some(7));
    }

    #[test]
    fn one_that_drains_may_serve_again_and_one_that_cannot_join_yet_is_tried_again() {
        let (roster, mut follower, mut plane) = two();
        plane.has = 1;
        roster.order(at(1), Membership::Drains).unwrap();
        follower.follow(&roster, &mut plane);
        plane.refuses = true;
        let again = roster.add(at(1), 1).unwrap();
        (0..2).for_each(|_| follower.follow(&roster, &mut plane));
        assert!(!roster.await_done(again, Duration::ZERO));
        plane.refuses = false;
        (0..2).for_each(|_| follower.follow(&roster, &mut plane));
        assert!(roster.await_done(again, Duration::ZERO));
        let join = ("join", 0);
        assert_eq!(plane.told, [("drain", 0), join, join, join]);
    }

    #[test]
    fn a_place_is_taken_again_last_of_all() {
        let roster = RackRoster::new(&[(at(1), 1), (at(2), 1)], 4);
        let mut follower = RosterFollower::new(roster.members());
        let mut plane = Plane::default();
        roster.order(at(1), Membership::Leaves).unwrap();
        follower.follow(&roster, &mut plane);
        for host in [3, 4, 5] {
            roster.add(at(host), 1).unwrap();
        }
        let members = roster.members();
        let hosts = members.iter().map(|member| member.unwrap().address);
        assert_eq!(hosts.collect::<Vec<_>>(), [5, 2, 3, 4].map(at));
        assert_eq!(roster.add(at(6), 1), Err(RosterError::Full(4)));
    }

    #[test]
    fn orders_that_make_no_sense_are_refused_and_change_nothing() {
        let (roster, ..) = two();
        assert_eq!(roster.add(at(1), 1), Err(RosterError::Twice(at(1))));
        let gone = Membership::Leaves;
        let unknown = roster.order(at(9), gone);
        assert_eq!(unknown, Err(RosterError::Unknown(at(9))));
        assert!(roster.add(([10, 0, 0, 1], 0).into(), 1).is_err());
        assert_eq!(roster.revision(), 0);
        roster.order(at(1), Membership::Drains).unwrap();
        assert_eq!(roster.order(at(2), gone), Err(RosterError::Last(at(2))));
    }
}
