//! Properties of the switch that hold for any packets. `cargo test` checks them on random packets and on the corpora, and the fuzz
//! targets include this file with the module beside it.

use super::common::{client, own, pass, request, server, switch};
use headway_net::header::HEADER_BYTES;
use headway_net::slot::PAYLOAD_BYTES;
use headway_rack::ServerAddresses;
use headway_rack::agent::{
    AgentKey, AgentRegistry, AgentReport, AgentSession, OrderedDuty, RackAnswer, ServerStatus,
};

const SERVERS: u16 = 3;
const POLICIES: [&str; 5] = [
    "pallas,clone=any",
    "racksched",
    "r2p2,n=1",
    "netclone",
    "draconis",
];

/// A script: each three bytes and what follows them are one packet. The low bits of the first byte choose the sender. The high ones
/// choose the packet: bytes of the script, a request, or the switch's last packet with its flag changed. Nothing panics; packets go
/// only to a server or to the client of the request; every client gets at most one response to each of its requests.
pub(crate) fn rack_switch(script: &[u8]) {
    let Some((&choice, mut script)) = script.split_first() else {
        return;
    };
    let mut switch = switch(POLICIES[usize::from(choice) % POLICIES.len()], SERVERS);
    let mut last: Vec<(std::net::SocketAddr, Vec<u8>)> = Vec::new();
    let (mut asked, mut told, mut now_ns) = (0u64, 0u64, 0u64);
    while let [what, a, b, rest @ ..] = script {
        let len = rest.len().min(usize::from(*b) % 40);
        let (bytes, following) = rest.split_at(len);
        script = following;
        now_ns += u64::from(*a) << 8;
        let (from, datagram) = match (what >> 2) % 4 {
            0 => (
                client(u16::from(*what & 3)),
                request(*a, u32::from(*b), bytes),
            ),
            1 if !last.is_empty() => {
                let (to, mut echo) = last[usize::from(*a) % last.len()].clone();
                echo[1] = *b;
                (to, echo)
            }
            // Some come from the address beside the servers', which is a client like any other.
            2 => (server(u16::from(*what & 3)), bytes.to_vec()),
            _ => ([client(0), own()][usize::from(*what & 1)], bytes.to_vec()),
        };
        let before = *switch.counts();
        let sent = pass(&mut switch, now_ns, from, &datagram);
        asked += switch.counts().requests - before.requests;
        for (to, datagram) in &sent {
            assert!((HEADER_BYTES..=PAYLOAD_BYTES).contains(&datagram.len()));
            let is_server = (0..SERVERS).any(|number| server(number) == *to);
            let is_client = (0..4).any(|number| client(number) == *to) || *to == server(SERVERS);
            assert!(is_server || is_client, "{to}");
            told += u64::from(!is_server);
        }
        assert!(told <= asked, "{told} answers to {asked} requests");
        last.extend(sent);
    }
    let counts = switch.counts();
    assert_eq!(told, counts.answered + counts.shed);
    assert!(
        told + switch.under_way() as u64 >= asked,
        "a request is answered or under way"
    );
}

/// Any bytes are a packet of agents or racks that reads back as written, or an error: as they are, and with the right code behind them.
pub(crate) fn agent_message(data: &[u8]) {
    let key = AgentKey::new(&[7; 32]).expect("long enough");
    for packet in [data.to_vec(), key.seal(data.to_vec())] {
        if let Ok(report) = AgentReport::open(&key, &packet) {
            assert_eq!(report.seal(&key), packet);
        }
        if let Ok(answer) = RackAnswer::open(&key, &packet) {
            assert_eq!(answer.seal(&key), packet);
            if let Some(order) = &answer.order {
                check_duty(order, usize::from(data[data.len() - 1]) % 9);
            }
        }
        let mut agent = AgentSession::new(key.clone(), 0x0102_0304_0506_0708, server(0).ip());
        agent.report(&ServerStatus::default());
        let _ = agent.answer(&packet);
        let servers = [server(0), server(1)];
        let servers = ServerAddresses::new(&servers).expect("two servers");
        let mut registry = AgentRegistry::new(key.clone(), servers, 7100, || 5);
        for _ in 0..2 {
            let from = server(0);
            let (answer, news) = registry.handle(from, &packet, |_, _| None);
            assert!(news.is_none() || answer.is_some());
        }
        let counts = registry.counts();
        assert!(counts.reports <= 1, "{counts:?}");
    }
}

/// A server that declares any number of classes gets a duty that names each class at most once and ranks all of them or none.
fn check_duty(order: &OrderedDuty, declared: usize) {
    let duty = order.for_classes(declared);
    let classes = duty.parts.iter().flat_map(|part| part.classes.iter());
    assert!(classes.max().is_none_or(|class| class <= declared));
    assert!(duty.ascending.is_empty() || duty.ascending.len() == declared + 1);
}
