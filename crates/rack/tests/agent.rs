//! The channel between agents and the rack, without I/O: sessions, replays, wrong keys, orders; and every message's bytes.

use headway_policy::rack::{Bouncing, ServerId};
use headway_rack::ServerAddresses;
use headway_rack::SwitchTables;
use headway_rack::agent::{
    AGENT_PACKET_BYTES_MAX, AgentKey, AgentNews, AgentRegistry, AgentReport, AgentSession,
    AnnouncedServer, HubRack, MessageError, OrderedDuty, OrderedPart, RackAgents, RackAnswer,
    ServerStatus,
};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn key() -> AgentKey {
    AgentKey::new(b"a key of this rack").unwrap()
}

fn other_key() -> AgentKey {
    AgentKey::new(b"a key of another rack").unwrap()
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// An agent's host identifies it; its port does not.
fn from() -> SocketAddr {
    addr("10.0.0.1:5555")
}

/// Numbers that tests never guess; never the same twice.
fn draw() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(1);
    LAST.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
}

fn registry() -> AgentRegistry {
    let servers = ServerAddresses::new(&[addr("10.0.0.1:7001"), addr("10.0.0.1:7002")]);
    AgentRegistry::new(key(), servers.unwrap(), 7100, draw)
}

fn status() -> ServerStatus {
    ServerStatus {
        port: 7002,
        workers: 4,
        ..ServerStatus::default()
    }
}

fn order(number: u64) -> OrderedDuty {
    OrderedDuty {
        number,
        bouncing: Bouncing::Longer,
        parts: vec![OrderedPart {
            types: [0, 9].into_iter().collect(),
            workers: 4,
        }],
        ascending: vec![9, 0, 255],
    }
}

fn no_order(_: ServerId, _: u64) -> Option<OrderedDuty> {
    None
}

/// A report and its answer.
fn round(registry: &mut AgentRegistry, agent: &mut AgentSession) -> Option<AgentNews> {
    let (answer, news) = registry.handle(from(), &agent.report(&status()), no_order);
    agent.answer(&answer.expect("an answer")).unwrap().unwrap();
    news
}

/// An answer while the switch still sends would let the server stop with requests on their way to it.
#[test]
fn a_departure_is_confirmed_when_the_switch_sends_nothing_more() {
    let servers = ServerAddresses::new(&[addr("10.0.0.1:7001"), addr("10.0.0.1:7002")]).unwrap();
    let tables = Arc::new(SwitchTables::new(1).with_agents(servers.count()));
    let rack = HubRack {
        servers,
        switch_port: 7100,
        bouncing: Bouncing::Off,
        tables: Arc::clone(&tables),
        roster: None,
        admits: None,
    };
    let (rack, mut agent) = (
        RackAgents::new(key(), rack, draw),
        AgentSession::new(key(), 77, from().ip()),
    );
    let mut report = |draining| {
        let status = ServerStatus {
            draining,
            ..status()
        };
        let answer = rack.step(from(), &agent.report(&status));
        answer.map(|answer| agent.answer(&answer).unwrap().unwrap())
    };
    assert!(report(false).is_some() && report(false).is_some());
    for departure in 0..2 {
        assert_eq!(report(true), None, "departure {departure}");
        tables.note_left(|_| true);
        assert_eq!(report(true), None, "departure {departure}");
        tables.note_left(|server| server != ServerId(1));
        assert!(report(true).is_some(), "departure {departure}");
        // It comes back: the next departure needs a confirmation of its own.
        assert!(report(false).is_some());
    }
}

#[test]
fn an_agent_joins_with_its_second_report_and_gets_its_order() {
    let (mut rack, mut agent) = (registry(), AgentSession::new(key(), 77, from().ip()));
    assert_eq!(round(&mut rack, &mut agent), None);
    assert!(!agent.is_joined());
    let news = round(&mut rack, &mut agent).expect("a session began");
    assert!(agent.is_joined());
    assert_eq!((news.server, news.report.workers), (ServerId(1), 4));
    let give = |server, in_force| {
        assert_eq!((server, in_force), (ServerId(1), 0));
        Some(order(5))
    };
    let (answer, _) = rack.handle(from(), &agent.report(&status()), give);
    let accepted = agent.answer(&answer.unwrap()).unwrap().unwrap();
    assert_eq!(
        (accepted.switch_port, accepted.order),
        (7100, Some(order(5)))
    );
    let counts = rack.counts();
    assert_eq!((counts.greeted, counts.sessions, counts.reports), (1, 1, 2));
    assert_eq!(rack.state(ServerId(0)), None);
}

#[test]
fn a_server_is_announced_by_the_key_once_and_by_nothing_recorded() {
    let elsewhere = addr("10.0.0.9:5555");
    let other = || ServerAddresses::new(&[addr("10.0.0.1:7001")]).unwrap();
    let mut agent = AgentSession::new(key(), 77, elsewhere.ip());
    let mut recorded = Vec::new();
    let mut say = |registry: &mut AgentRegistry, status: &ServerStatus| {
        let report = agent.report(status);
        let (answer, news) = registry.handle(elsewhere, &report, no_order);
        assert_eq!(news, None);
        if let Some(answer) = answer {
            agent.answer(&answer).unwrap().unwrap();
        }
        recorded.push(report);
        registry.take_announced()
    };
    let mut closed = AgentRegistry::new(key(), other(), 7100, draw);
    assert_eq!(say(&mut closed, &status()), None);
    assert_eq!(closed.counts().strangers, 1);
    let mut open = AgentRegistry::new(key(), other(), 7100, draw).admitting();
    let leaving = ServerStatus {
        draining: true,
        ..status()
    };
    assert_eq!(say(&mut open, &leaving), None);
    assert_eq!(
        say(&mut open, &status()),
        None,
        "it is told the session first"
    );
    let announced = AnnouncedServer {
        address: addr("10.0.0.9:7002"),
        workers: 4,
    };
    assert_eq!(say(&mut open, &status()), Some(announced));
    for packet in &recorded {
        open.handle(elsewhere, packet, no_order);
        assert_eq!(open.take_announced(), None, "a recorded packet");
    }
    assert_eq!(open.counts().announced, 1);
}

/// An order is stronger than an agent that lives on; a server that starts anew is another matter.
#[test]
fn one_that_was_dismissed_is_announced_again_by_a_new_agent_only() {
    let mut registry =
        AgentRegistry::new(key(), ServerAddresses::vacant(2), 7100, draw).admitting();
    let at = addr("10.0.0.1:7002");
    registry.put(ServerId(0), Some(at));
    let mut agent = AgentSession::new(key(), 77, from().ip());
    for _ in 0..2 {
        round(&mut registry, &mut agent);
    }
    registry.put(ServerId(0), None);
    for _ in 0..3 {
        let handled = registry.handle(from(), &agent.report(&status()), no_order);
        assert_eq!(handled, (None, None));
    }
    assert_eq!(registry.take_announced(), None);
    let mut new = AgentSession::new(key(), 78, from().ip());
    let (answer, _) = registry.handle(from(), &new.report(&status()), no_order);
    new.answer(&answer.expect("the session")).unwrap().unwrap();
    registry.handle(from(), &new.report(&status()), no_order);
    assert_eq!(
        registry.take_announced().map(|server| server.address),
        Some(at)
    );
}

#[test]
fn another_key_is_refused_and_counted_at_both_ends() {
    let (mut rack, mut stranger) = (registry(), AgentSession::new(other_key(), 77, from().ip()));
    for _ in 0..3 {
        let handled = rack.handle(from(), &stranger.report(&status()), no_order);
        assert_eq!(handled, (None, None));
    }
    assert_eq!(rack.counts().wrong_key, 3);
    let mut agent = AgentSession::new(key(), 78, from().ip());
    let (answer, _) = rack.handle(from(), &agent.report(&status()), no_order);
    assert_eq!(
        stranger.answer(&answer.unwrap()),
        Err(MessageError::WrongKey)
    );
}

#[test]
fn a_report_counts_once_whenever_it_comes_again() {
    let (mut rack, mut agent) = (registry(), AgentSession::new(key(), 77, from().ip()));
    round(&mut rack, &mut agent);
    let recorded: Vec<_> = (0..4).map(|_| agent.report(&status())).collect();
    // Packets may overtake each other: the older one is late, and does not count.
    for (at, counts) in [(1, true), (0, false), (1, false), (3, true), (2, false)] {
        let (answer, news) = rack.handle(from(), &recorded[at], no_order);
        assert_eq!((answer.is_some(), news.is_some()), (counts, counts));
    }
    assert_eq!(rack.counts().replayed, 3);
    // A second agent begins and ends the first agent's session; a replay never revives it.
    let mut second = AgentSession::new(key(), 78, from().ip());
    round(&mut rack, &mut second);
    round(&mut rack, &mut second).expect("a session began");
    for packet in &recorded {
        assert_eq!(rack.handle(from(), packet, no_order).1, None);
    }
    assert!(
        round(&mut rack, &mut second).is_some(),
        "the session stands"
    );
    // The first agent, which still runs, may take the session back, since both know the key.
    round(&mut rack, &mut agent);
    assert!(round(&mut rack, &mut agent).is_some());
}

#[test]
fn an_answer_counts_once_and_for_its_agent_alone() {
    let (mut rack, mut agent) = (registry(), AgentSession::new(key(), 77, from().ip()));
    let (first, _) = rack.handle(from(), &agent.report(&status()), no_order);
    let first = first.unwrap();
    let mut other = AgentSession::new(key(), 78, from().ip());
    other.report(&status());
    assert_eq!(other.answer(&first), Ok(None));
    assert!(agent.answer(&first).unwrap().is_some());
    assert_eq!(agent.answer(&first), Ok(None));
    let late = RackAnswer {
        agent: 77,
        session: 1,
        answers: 9,
        switch_port: 1,
        order: None,
    };
    assert_eq!(agent.answer(&late.seal(&key())), Ok(None), "it never asked");
}

#[test]
fn a_rack_that_comes_back_takes_its_agents_up_again() {
    let (mut rack, mut agent) = (registry(), AgentSession::new(key(), 77, from().ip()));
    round(&mut rack, &mut agent);
    round(&mut rack, &mut agent).unwrap();
    let recorded = agent.report(&status());
    let mut rack = registry();
    assert_eq!(rack.handle(from(), &recorded, no_order).1, None);
    assert_eq!(round(&mut rack, &mut agent), None);
    assert!(round(&mut rack, &mut agent).is_some());
    assert_eq!(rack.handle(from(), &recorded, no_order).1, None);
}

#[test]
fn servers_of_other_racks_and_other_packets_are_counted_by_reason() {
    let (mut rack, mut agent) = (registry(), AgentSession::new(key(), 77, from().ip()));
    let elsewhere = addr("10.0.0.9:1");
    let report = agent.report(&status());
    assert_eq!(rack.handle(elsewhere, &report, no_order), (None, None));
    let mut abroad = AgentSession::new(key(), 79, elsewhere.ip());
    let foreign = abroad.report(&status());
    assert_eq!(rack.handle(elsewhere, &foreign, no_order), (None, None));
    for packet in [&b""[..], b"HWRA", &report[..40], &[0; 100]] {
        assert_eq!(rack.handle(from(), packet, no_order), (None, None));
    }
    let answer = RackAnswer {
        agent: 77,
        session: 1,
        answers: 1,
        switch_port: 1,
        order: None,
    };
    assert_eq!(
        rack.handle(from(), &answer.seal(&key()), no_order),
        (None, None)
    );
    let counts = rack.counts();
    assert_eq!((counts.strangers, counts.malformed), (1, 4));
    assert_eq!(counts.misaddressed, 1);
    assert_eq!(counts.wrong_key, 1, "cut off behind its head");
}

/// Two servers with the same port. Whoever is between an agent and the rack, and sends on its reports in the name of the other server, and the answers
/// back, moves nothing.
#[test]
fn a_report_counts_only_for_the_server_that_it_was_made_for() {
    let other = addr("10.0.0.2:5555");
    let servers = ServerAddresses::new(&[addr("10.0.0.1:7002"), addr("10.0.0.2:7002")]);
    let mut rack = AgentRegistry::new(key(), servers.unwrap(), 7100, draw);
    let mut agent = AgentSession::new(key(), 77, from().ip());
    for _ in 0..3 {
        let (answer, news) = rack.handle(other, &agent.report(&status()), no_order);
        assert_eq!(news, None);
        if let Some(answer) = answer {
            agent.answer(&answer).expect("the rack's answer");
        }
    }
    assert_eq!(rack.state(ServerId(1)), None);
    assert_eq!(rack.counts().misaddressed, 3);
    round(&mut rack, &mut agent);
    let news = round(&mut rack, &mut agent).expect("a session began");
    assert_eq!(news.server, ServerId(0));
}

fn any_order() -> impl Strategy<Value = OrderedDuty> {
    let part = (prop::collection::vec(any::<u8>(), 0..9), any::<u16>());
    let part = part.prop_map(|(types, workers)| OrderedPart {
        types: types.into_iter().collect(),
        workers,
    });
    let bouncing = prop_oneof![
        Just(Bouncing::Off),
        Just(Bouncing::Longer),
        Just(Bouncing::All)
    ];
    let parts = prop::collection::vec(part, 0..=256);
    let ascending = prop::collection::vec(any::<u8>(), 0..=256);
    (any::<u64>(), bouncing, parts, ascending).prop_map(|(number, bouncing, parts, ascending)| {
        OrderedDuty {
            number,
            bouncing,
            parts,
            ascending,
        }
    })
}

proptest! {
    #[test]
    fn reports_read_back(words in any::<[u64; 6]>(), ip: [u8; 16], port: u16, workers: u16, draining: bool) {
        let [agent, session, counter, in_force, clones_dropped, handed_back] = words;
        let report = AgentReport {
            agent, session, counter, ip, port, workers, draining, in_force, clones_dropped, handed_back,
        };
        let packet = report.seal(&key());
        prop_assert!(packet.len() <= AGENT_PACKET_BYTES_MAX);
        prop_assert_eq!(AgentReport::open(&key(), &packet), Ok(report));
        prop_assert_eq!(AgentReport::open(&other_key(), &packet), Err(MessageError::WrongKey));
        prop_assert_eq!(RackAnswer::open(&key(), &packet), Err(MessageError::Malformed));
    }

    #[test]
    fn answers_read_back(words in any::<[u64; 3]>(), switch_port: u16, order in prop::option::of(any_order())) {
        let [agent, session, answers] = words;
        let answer = RackAnswer { agent, session, answers, switch_port, order };
        let packet = answer.seal(&key());
        prop_assert!(packet.len() <= AGENT_PACKET_BYTES_MAX);
        prop_assert_eq!(RackAnswer::open(&key(), &packet), Ok(answer));
    }

    /// The rack refuses a packet with any one bit changed.
    #[test]
    fn no_bit_may_differ(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut packet = AgentSession::new(key(), 7, from().ip()).report(&status());
        let at = at.index(packet.len());
        packet[at] ^= 1 << bit;
        prop_assert!(AgentReport::open(&key(), &packet).is_err());
    }
}
