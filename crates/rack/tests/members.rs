//! Servers that come, drain and go, in virtual time, under every policy.

use crate::common::{
    self, CORES, Dynamic, ROOM, client, own, pass, policy, request, response, server,
};
use headway_net::header::Status;
use headway_policy::rack::{ControlPlane, Liveness, LivenessRules, ServerId, systems};
use headway_policy::{ClassHint, rack::ControlRules};
use headway_rack::{Membership, RackRoster, RackSwitch, RosterFollower, SwitchLimits};
use std::net::SocketAddr;
use std::time::Duration;

const MS: u64 = 1_000_000;
const PLACES: usize = 4;

/// A switch over two servers in four places, and what stands beside it.
struct Rack {
    switch: RackSwitch<Dynamic>,
    roster: RackRoster,
    follower: RosterFollower,
    control: Option<ControlPlane>,
    now_ns: u64,
    next_index: u32,
    /// What servers have: the server, and the request as it came there.
    at_servers: Vec<(SocketAddr, Vec<u8>)>,
    answered: u32,
    shed: u32,
}

impl Rack {
    fn new(spec: &str) -> Self {
        let named: Vec<_> = (0..2).map(|number| (server(number), CORES)).collect();
        let roster = RackRoster::new(&named, PLACES);
        let limits = SwitchLimits {
            held: ROOM,
            nat_bits: 6,
            ..SwitchLimits::new(2)
        };
        let policy = Dynamic(policy(spec, PLACES));
        let mut switch = RackSwitch::new(policy, own().into(), roster.addresses(), limits);
        switch.watch(Liveness::new(
            &[CORES, CORES, 0, 0],
            LivenessRules::default(),
        ));
        let mut rack = Self {
            follower: RosterFollower::new(roster.members()),
            control: spec.starts_with("pallas").then(|| {
                let types = [ClassHint::new(10e3, 0.9), ClassHint::new(90e3, 0.1)];
                ControlPlane::new(&[CORES, CORES, 0, 0], &types, ControlRules::default())
            }),
            switch,
            roster,
            now_ns: 0,
            next_index: 0,
            at_servers: Vec::new(),
            answered: 0,
            shed: 0,
        };
        if let Some(control) = &mut rack.control {
            let scores: Vec<f64> = (0..control.candidates().len())
                .rev()
                .map(|at| at as f64)
                .collect();
            control.choose(&scores);
        }
        rack.look();
        rack
    }

    /// What engine and control plane do within some milliseconds.
    fn look(&mut self) {
        for _ in 0..3 {
            self.now_ns += MS;
            self.switch
                .follow(self.now_ns, &self.roster, &mut self.follower);
            if let Some(control) = &mut self.control {
                for place in 0..PLACES as u16 {
                    let cores = self.switch.cores(ServerId(place)).expect("it watches");
                    if control.layout().capacity(usize::from(place)) != cores {
                        control.capacity(ServerId(place), cores);
                    }
                }
                control.install(self.switch.policy());
            }
            let mut sent = common::Sent::default();
            self.switch.tick(self.now_ns, 1, &mut sent);
            self.sort(sent.0);
        }
    }

    fn sort(&mut self, sent: Vec<(SocketAddr, Vec<u8>)>) {
        for (to, packet) in sent {
            if to != client(0) {
                self.at_servers.push((to, packet));
            } else if common::header(&packet).flag.status() == Status::Shed {
                self.shed += 1;
            } else {
                self.answered += 1;
            }
        }
    }

    fn send(&mut self, requests: u32) {
        for _ in 0..requests {
            let class = (self.next_index % 2) as u8;
            let bytes = request(class, self.next_index, b"body");
            self.next_index += 1;
            let sent = pass(&mut self.switch, self.now_ns, client(0), &bytes);
            self.sort(sent);
        }
    }

    /// Servers answer what they have, and what comes for it; those that `is_one` is false for keep theirs.
    fn answer(&mut self, is_one: impl Fn(SocketAddr) -> bool) {
        let mut kept = Vec::new();
        while let Some((at, packet)) = self.at_servers.pop() {
            if !is_one(at) {
                kept.push((at, packet));
                continue;
            }
            let answer = response(&packet, Status::Ok, 10_000, b"");
            let sent = pass(&mut self.switch, self.now_ns, at, &answer);
            self.sort(sent);
        }
        self.at_servers = kept;
    }

    fn has(&self, number: u16) -> usize {
        let at = |(at, _): &&(SocketAddr, Vec<u8>)| *at == server(number);
        self.at_servers.iter().filter(at).count()
    }
}

/// Every policy; without clones, which would be a second copy of a request at another server.
fn specs() -> impl Iterator<Item = String> {
    let of = |name: &str| match name {
        "pallas" | "pallas-paper" => format!("{name},clone=off"),
        name => name.to_owned(),
    };
    systems::NAMES
        .iter()
        .filter(|name| **name != "netclone")
        .map(move |name| of(name))
}

#[test]
fn a_server_that_comes_gets_work() {
    for spec in specs() {
        let mut rack = Rack::new(&spec);
        let revision = rack.roster.add(server(2), CORES).unwrap();
        rack.look();
        assert!(rack.roster.await_done(revision, Duration::ZERO), "{spec}");
        let mut got = 0;
        for _ in 0..40 {
            rack.send(1);
            got += rack.has(2);
            rack.answer(|_| true);
        }
        assert!(got > 0, "{spec}");
        assert_eq!((rack.answered, rack.shed), (40, 0), "{spec}");
    }
}

#[test]
fn one_that_drains_answers_what_it_has_gets_nothing_new_and_leaves() {
    for spec in specs() {
        let mut rack = Rack::new(&spec);
        rack.send(4);
        let had = rack.has(0);
        assert!(had > 0, "{spec}");
        rack.roster.order(server(0), Membership::Drains).unwrap();
        rack.look();
        for _ in 0..20 {
            rack.send(1);
            assert!(rack.has(0) <= had, "{spec}: nothing new");
            rack.answer(|at| at != server(0));
            rack.look();
        }
        assert!(
            rack.roster.members()[0].is_some(),
            "{spec}: it has requests"
        );
        rack.answer(|_| true);
        rack.look();
        assert_eq!(rack.roster.members()[0], None, "{spec}: it left");
        rack.send(10);
        rack.answer(|_| true);
        let counts = *rack.switch.counts();
        assert_eq!((rack.answered, rack.shed), (34, 0), "{spec}");
        assert_eq!(
            (counts.lost, counts.unexpected, counts.left),
            (0, 0, 0),
            "{spec}"
        );
    }
}

/// Silence has the policy expect nothing more of it, but its clients still wait.
#[test]
fn one_that_drains_while_it_is_silent_answers_what_it_has_before_it_leaves() {
    for spec in specs() {
        let mut rack = Rack::new(&spec);
        rack.send(4);
        let had = rack.has(0) as u32;
        assert!(had > 0, "{spec}");
        for _ in 0..40 {
            rack.answer(|at| at != server(0));
            rack.look();
        }
        assert_eq!(rack.switch.counts().left, 1, "{spec}: it is silent");
        rack.roster.order(server(0), Membership::Drains).unwrap();
        rack.look();
        assert!(
            rack.roster.members()[0].is_some(),
            "{spec}: it has requests"
        );
        assert_eq!(rack.switch.awaited(ServerId(0)), had, "{spec}");
        rack.answer(|_| true);
        rack.look();
        assert_eq!(rack.roster.members()[0], None, "{spec}: it left");
        assert_eq!(rack.switch.awaited(ServerId(0)), 0, "{spec}");
        let counts = *rack.switch.counts();
        assert_eq!((rack.answered, counts.lost), (4, 0), "{spec}");
    }
}

#[test]
fn one_that_is_removed_goes_at_once_and_what_it_had_is_counted() {
    for spec in specs() {
        let mut rack = Rack::new(&spec);
        rack.send(4);
        let had = rack.has(0) as u64;
        assert!(had > 0, "{spec}");
        let revision = rack.roster.order(server(0), Membership::Leaves).unwrap();
        rack.look();
        assert!(rack.roster.await_done(revision, Duration::ZERO), "{spec}");
        assert_eq!(rack.roster.lost(0), Some(had), "{spec}");
        assert_eq!(rack.switch.counts().lost, had, "{spec}");
        // Its answers come too late, and are nobody's.
        rack.answer(|_| true);
        assert_eq!(u64::from(rack.answered), 4 - had, "{spec}");
        assert_eq!(rack.switch.counts().unexpected, had, "{spec}");
        assert_eq!(rack.switch.under_way(), 0, "{spec}");
        // Another one takes a place, and in the end the same.
        for number in [2, 3, 4] {
            rack.roster.add(server(number), CORES).unwrap();
        }
        rack.look();
        assert_eq!(
            rack.roster.members()[0].map(|member| member.address),
            Some(server(4))
        );
        let mut got = 0;
        for _ in 0..80 {
            rack.send(1);
            got += rack.has(4);
            rack.answer(|_| true);
        }
        assert!(got > 0, "{spec}");
        assert_eq!(
            (u64::from(rack.answered), rack.shed),
            (84 - had, 0),
            "{spec}"
        );
    }
}

#[test]
fn a_copy_of_a_clone_is_lost_without_its_request() {
    let mut rack = Rack::new("netclone");
    rack.send(1);
    assert_eq!((rack.has(0), rack.has(1)), (1, 1), "it is cloned");
    rack.roster.order(server(0), Membership::Leaves).unwrap();
    rack.look();
    rack.answer(|_| true);
    let counts = rack.switch.counts();
    assert_eq!((rack.answered, counts.lost, counts.unexpected), (1, 1, 1));
    assert_eq!(rack.switch.under_way(), 0);
}
