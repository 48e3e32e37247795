//! Silent servers in virtual time: they leave, are probed, and come back. Also undeclared types.

use crate::common::{self, Dynamic, client, own, pass, policy, request, response, server};
use headway_net::header::{Header, Status};
use headway_policy::ClassHint;
use headway_policy::rack::{
    Cloning, ControlPlane, ControlRules, Delta, Liveness, LivenessRules, ServerId, Shaper, Switch,
    Turns,
};
use headway_rack::{
    LostPackets, RackControl, RackSwitch, ReceivedPacket, ScoringTask, ServerAddresses,
    SwitchLimits, SwitchTables, score_by_simulation,
};
use std::net::SocketAddr;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const SERVERS: u16 = 3;

fn watched(spec: &str) -> RackSwitch<Dynamic> {
    let mut switch = common::switch(spec, SERVERS);
    let cores = [common::CORES; SERVERS as usize];
    switch.watch(Liveness::new(&cores, LivenessRules::default()));
    switch
}

/// The switch's own packets of one millisecond.
fn tick(switch: &mut RackSwitch<Dynamic>, now_ns: u64) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = common::Sent::default();
    switch.tick(now_ns, 1, &mut sent);
    sent.0
}

/// Sends a request every millisecond, which all servers but `dead` answer at once. Returns each server's requests, and the probes to the dead one.
fn serve(
    switch: &mut RackSwitch<Dynamic>,
    ms: std::ops::Range<u64>,
    dead: Option<u16>,
) -> ([u32; SERVERS as usize], Vec<Vec<u8>>) {
    let mut got = [0; SERVERS as usize];
    let mut questions = Vec::new();
    for now in ms {
        questions.extend(tick(switch, now * MS).into_iter().map(|(_, asked)| asked));
        let mut asked = pass(
            switch,
            now * MS,
            client(0),
            &request(0, now as u32, b"body"),
        );
        while let Some((to, packet)) = asked.pop() {
            let number = to.port() - 7000;
            if number >= SERVERS || Some(number) == dead {
                got[usize::from(number.min(SERVERS - 1))] += u32::from(Some(number) == dead);
                continue;
            }
            got[usize::from(number)] += 1;
            let answer = response(&packet, Status::Ok, 10_000, b"");
            let out = pass(switch, now * MS, to, &answer);
            asked.extend(out.into_iter().filter(|(to, _)| *to != client(0)));
        }
    }
    (got, questions)
}

#[test]
fn a_silent_server_leaves_within_50_ms_under_every_policy_and_comes_back_when_it_answers() {
    for spec in headway_policy::rack::systems::NAMES {
        if spec.starts_with("pallas") {
            // Its tables are its control plane's: see below.
            continue;
        }
        let mut switch = watched(spec);
        let (before, _) = serve(&mut switch, 0..300, None);
        let may_send = |switch: &mut RackSwitch<Dynamic>| {
            [0, 1].map(|number| switch.policy().may_send(ServerId(number)))
        };
        assert_eq!(may_send(&mut switch), [true, true], "{spec}");
        assert!(before.iter().all(|&got| got > 30), "{spec}: {before:?}");
        // A server that gets its first request after 300 ms is silent after 350 ms at the earliest.
        serve(&mut switch, 300..500, Some(1));
        assert_eq!(switch.counts().left, 1, "{spec}");
        let (without, questions) = serve(&mut switch, 500..900, Some(1));
        assert_eq!(without[1], 0, "{spec}: it left the turns");
        assert_eq!(may_send(&mut switch), [true, false], "{spec}");
        assert!(!questions.is_empty(), "{spec}: it is asked");
        assert_eq!(switch.counts().returned, 0);
        let question = questions.last().unwrap();
        let (header, body) = Header::parse(question).unwrap();
        assert_eq!(
            (header.class, body),
            (255, &b""[..]),
            "{spec}: no client's request"
        );
        let answer = response(question, Status::BadRequest, 1, b"");
        assert_eq!(
            pass(&mut switch, 900 * MS, server(1), &answer),
            [],
            "{spec}"
        );
        let (after, _) = serve(&mut switch, 901..1200, None);
        assert!(after[1] > 30, "{spec}: {after:?}");
        assert_eq!(may_send(&mut switch), [true, true], "{spec}");
        assert_eq!(switch.counts().returned, 1, "{spec}");
        let counts = *switch.counts();
        assert_eq!(
            (counts.unexpected, counts.spoofed, counts.shed),
            (0, 0, 0),
            "{spec}"
        );
    }
}

#[test]
fn what_a_dead_server_held_is_all_that_is_lost() {
    let mut switch = watched("round-robin");
    serve(&mut switch, 0..10, None);
    let (got, questions) = serve(&mut switch, 10..7000, Some(2));
    // The dead server got every third request until it left.
    assert!((17..=18).contains(&got[2]), "{got:?}");
    // The switch forgets probes like unanswered requests, but counts them for no client.
    assert!(questions.len() > 5);
    let counts = *switch.counts();
    assert_eq!(counts.answered, counts.requests - u64::from(got[2]));
    // Each tick visits one slot, so the probes of the last five seconds are left.
    assert!(switch.under_way() < 10, "{}", switch.under_way());
}

/// A server was only slow: the policy has written its requests off, and their clients still get each response once.
#[test]
fn late_responses_of_a_server_that_left_reach_their_clients() {
    for spec in headway_policy::rack::systems::NAMES {
        let mut switch = watched(spec);
        let mut late = Vec::new();
        let mut answered = 0;
        for index in 0..30u32 {
            for (to, packet) in pass(
                &mut switch,
                0,
                client(0),
                &request((index % 2) as u8, index, b""),
            ) {
                if to == server(1) {
                    late.push(packet);
                } else {
                    let answer = response(&packet, Status::Ok, 10_000, b"");
                    answered += pass(&mut switch, 0, to, &answer).len();
                }
            }
        }
        assert!(!late.is_empty(), "{spec}");
        tick(&mut switch, 60 * MS);
        assert_eq!(switch.counts().left, 1, "{spec}");
        for packet in &late {
            let answer = response(packet, Status::Ok, 10_000, b"");
            let passed = pass(&mut switch, 70 * MS, server(1), &answer);
            assert!(passed.iter().all(|(to, _)| *to == client(0)), "{spec}");
            answered += passed.len();
            // The switch drops the same response when it comes again.
            assert_eq!(pass(&mut switch, 70 * MS, server(1), &answer), [], "{spec}");
        }
        assert_eq!((answered, switch.under_way()), (30, 0), "{spec}");
        tick(&mut switch, 71 * MS);
        let counts = *switch.counts();
        assert_eq!((counts.returned, counts.answered), (1, 30), "{spec}");
        let unanswered = (0..SERVERS).map(|number| switch.unanswered(ServerId(number)));
        assert!(
            unanswered.into_iter().all(|requests| requests == 0),
            "{spec}"
        );
    }
}

/// The control plane lays the rack out without the server, and the switch's next tables omit it.
#[test]
fn the_load_of_a_silent_server_is_provisioned_anew() {
    let cores = [2; 3];
    let types = [ClassHint::new(10e3, 0.5), ClassHint::new(100e3, 0.5)];
    let rules = ControlRules {
        delta: Delta::Cores(100.0),
        ..ControlRules::default()
    };
    let mut control = ControlPlane::new(&cores, &types, rules);
    control.choose(&[2.0, 1.0]);
    let tables = Arc::new(SwitchTables::new(2));
    let mut rack = RackControl::new(control, Arc::clone(&tables));
    let mut switch = RackSwitch::new(
        Shaper::new(2, 6, Turns::Even, Cloning::Off, 1 << 10),
        own().into(),
        ServerAddresses::new(&[server(0), server(1), server(2)]).unwrap(),
        SwitchLimits::new(2),
    );
    switch.watch(Liveness::new(&cores, LivenessRules::default()));
    let mut generation = tables.install(0, switch.policy());
    let mut sent = common::Sent::default();
    // Shorts have one core: the longs' other servers get no requests, and no server answers.
    switch.step(
        0,
        ReceivedPacket::of(client(0).into(), &request(0, 1, b"")),
        &mut sent,
    );
    let (first, _) = sent.0.pop().unwrap();
    switch.tick(60 * MS, 1, &mut sent);
    tables.publish_report(&switch, LostPackets::default());
    tables.publish_readings(switch.policy());
    assert_eq!(tables.report().cores.iter().sum::<usize>(), 4, "one left");
    assert!(rack.look(10 * MS).is_none(), "the groups stay");
    assert_eq!(rack.control().layout().total(), 4);
    assert_eq!(rack.control().grouping().groups(), 2);
    generation = tables.install(generation, switch.policy());
    assert_eq!(generation, 2);
    let may_send = [0, 1, 2].map(|number| switch.policy().may_send(ServerId(number)));
    assert_eq!(may_send, [0, 1, 2].map(|number| first != server(number)));
    for index in 0..12 {
        let datagram = request((index % 2) as u8, index, b"");
        switch.step(
            61 * MS,
            ReceivedPacket::of(client(0).into(), &datagram),
            &mut sent,
        );
    }
    assert!(
        sent.0.iter().all(|(to, _)| *to != first),
        "nothing goes there"
    );
}

#[test]
fn types_that_nobody_declared_get_groups_of_their_own() {
    // Types as the command declares them: room for them, and none seen yet.
    let types = [ClassHint::new(1e9, 0.0); 8];
    let rules = ControlRules {
        delta: Delta::Cores(2.0),
        plan_ns: 10 * MS,
        ..ControlRules::default()
    };
    let cores = [2; 4];
    let mut control = ControlPlane::new(&cores, &types, rules);
    assert_eq!(control.candidates().len(), 1);
    control.choose(&[0.0]);
    let tables = Arc::new(SwitchTables::new(8));
    let mut rack = RackControl::new(control, Arc::clone(&tables));
    let limits = SwitchLimits {
        undeclared: 8,
        ..SwitchLimits::new(0)
    };
    let mut switch = RackSwitch::new(
        Shaper::new(8, 8, Turns::Even, Cloning::Off, 1 << 10),
        own().into(),
        ServerAddresses::new(&[server(0), server(1), server(2), server(3)]).unwrap(),
        limits,
    );
    let generation = tables.install(0, switch.policy());
    let task: Option<ScoringTask> = (0..3).find_map(|_| {
        for index in 0..220u32 {
            let is_long = index % 11 == 10;
            let (class, execution_ns) = if is_long {
                (130, 100_000)
            } else {
                (77, 10_000)
            };
            let mut sent = common::Sent::default();
            let datagram = request(class, index, b"");
            switch.step(
                0,
                ReceivedPacket::of(client(0).into(), &datagram),
                &mut sent,
            );
            let (to, asked) = sent.0.pop().unwrap();
            let answer = response(&asked, Status::Ok, execution_ns, b"");
            switch.step(0, ReceivedPacket::of(to.into(), &answer), &mut sent);
        }
        tables.publish_readings(switch.policy());
        rack.look(10 * MS)
    });
    assert_eq!(switch.type_bytes(), [77, 130]);
    assert_eq!(switch.counts().unknown_type, 0);
    let task = task.expect("they became known");
    assert_eq!(task.control.candidates().len(), 2);
    let scores = score_by_simulation(&cores, Turns::Even, None, &task);
    assert!(scores.iter().any(|score| score.is_finite()), "{scores:?}");
    rack.scored(&scores);
    assert_eq!(rack.control().grouping().groups(), 2, "{scores:?}");
    assert!(tables.install(generation, switch.policy()) > generation);
    let groups = [0, 1].map(|class| switch.policy().group_of(headway_policy::ClassId(class)));
    assert_eq!(groups, [0, 1]);
}

#[test]
fn the_same_switch_without_a_watch_sends_nothing_of_its_own() {
    let mut switch = RackSwitch::new(
        Dynamic(policy("round-robin", 1)),
        own().into(),
        ServerAddresses::new(&[server(0)]).unwrap(),
        SwitchLimits::new(2),
    );
    pass(&mut switch, 0, client(0), &request(0, 1, b""));
    assert_eq!(tick(&mut switch, 4000 * MS), []);
    assert_eq!(switch.counts().left, 0);
}
