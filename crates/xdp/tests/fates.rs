//! Fates that random packets do not meet: no server has a turn, no room is left, a slot has expired, the families differ.

mod common;

use common::settings::{settings, tables_over_places};
use common::*;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_policy::rack::ServerId;
use headway_xdp::{Mode, Neighbour, ServerRegisters, XdpSwitch, XdpSwitchConfig};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn switch(object: &[u8], mode: Mode, answer: Duration) -> XdpSwitch {
    let config = XdpSwitchConfig {
        answer,
        ..settings(mode)
    };
    XdpSwitch::load(object, &config).expect("the program loads")
}

/// Two IPv4 servers in turn, on the interface of test runs.
fn publish(switch: &mut XdpSwitch) {
    publish_behind(1, switch);
}

/// The same behind the interface of this number.
fn publish_behind(ifindex: u32, switch: &mut XdpSwitch) {
    publish_places(ifindex, switch, [true; 2]);
}

/// The same, where a place may have no server although it has turns.
fn publish_places(ifindex: u32, switch: &mut XdpSwitch, are_there: [bool; 2]) {
    let servers: Vec<_> = (0..2)
        .map(|number: u8| are_there[usize::from(number)].then_some(number))
        .map(|place| {
            place.map(|number| Neighbour {
                address: SocketAddr::from(([10, 0, 1, number], 8000)),
                mac: [2, 0, 0, 0, 1, number],
                ifindex,
                own_mac: OWN_MAC,
            })
        })
        .collect();
    let tables = tables_over_places(&[1; 2], &servers);
    switch.publish(&tables).expect("published");
}

fn request(is_ip4: bool, has_checksum: bool) -> Frame {
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index: 0x0102_0304,
        time_ns: 77,
    };
    let (from, to) = if is_ip4 {
        (
            SocketAddr::from(([10, 0, 0, 9], 9000)),
            SocketAddr::from(([10, 0, 0, 1], 7777)),
        )
    } else {
        (
            SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 9], 9000)),
            SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 1], 7777)),
        )
    };
    Frame {
        to_mac: OWN_MAC,
        from_mac: CLIENT_MAC,
        tags: 1,
        from,
        to,
        has_checksum,
        payload: [&header.encode()[..], b"a question that is not asked"].concat(),
    }
}

/// The packet that the client gets.
fn refusal(request: &Frame) -> Frame {
    let asked = Header::parse(&request.payload).expect("a header").0;
    let header = Header {
        flag: Flag::response(Status::Shed),
        time_ns: 0,
        ..asked
    };
    Frame {
        to_mac: request.from_mac,
        from_mac: request.to_mac,
        from: request.to,
        to: request.from,
        payload: header.encode().to_vec(),
        ..request.clone()
    }
}

#[test]
fn without_a_server_the_client_is_told_so() {
    let Some(objects) = objects("requests that are shed") else {
        return;
    };
    for mode in [Mode::Nat, Mode::Direct] {
        let mut switch = switch(&objects.rack, mode, Duration::from_secs(5));
        for (is_ip4, has_checksum) in [(true, true), (true, false), (false, true)] {
            let request = request(is_ip4, has_checksum);
            let ran = switch.run(&request.bytes(), 1).expect("the packet runs");
            assert_eq!((ran.action, ran.bytes), (TX, refusal(&request).bytes()));
        }
        let counts = switch.registers().expect("registers").counts;
        assert_eq!((counts.requests, counts.shed), (3, 3));
    }
}

#[test]
fn a_request_of_another_family_than_its_servers_is_dropped() {
    let Some(objects) = objects("families") else {
        return;
    };
    for mode in [Mode::Nat, Mode::Direct] {
        let mut switch = switch(&objects.rack, mode, Duration::from_secs(5));
        publish(&mut switch);
        let ran = switch
            .run(&request(false, true).bytes(), 1)
            .expect("the packet runs");
        assert_eq!(ran.action, DROP);
        assert_eq!(
            switch.registers().expect("registers").counts.other_family,
            1
        );
    }
}

#[test]
fn a_turn_of_a_removed_server_is_counted_as_that() {
    let Some(objects) = objects("turns of removed servers") else {
        return;
    };
    stay_on_cpu(0);
    for mode in [Mode::Nat, Mode::Direct] {
        let mut switch = switch(&objects.rack, mode, Duration::from_secs(5));
        publish_places(1, &mut switch, [true, false]);
        let actions = [(); 8].map(|()| {
            let ran = switch.run(&request(true, true).bytes(), 1);
            ran.expect("the packet runs").action
        });
        let counts = switch.registers().expect("registers").counts;
        assert_eq!((counts.no_server, counts.other_family), (4, 0), "{mode:?}");
        assert_eq!(actions.iter().filter(|&&action| action == DROP).count(), 4);
    }
}

#[test]
fn a_full_table_sheds_until_requests_expire() {
    let Some(objects) = objects("a full table") else {
        return;
    };
    stay_on_cpu(0);
    let request = request(true, true);
    let bytes = request.bytes();
    let mut answer = Duration::from_secs(2);
    let (mut switch, taken, full) = loop {
        let mut switch = switch(&objects.rack, Mode::Nat, answer);
        publish(&mut switch);
        let (begun, mut taken) = (Instant::now(), 0);
        let full = loop {
            let ran = switch.run(&bytes, 1).expect("the packet runs");
            if ran.bytes == refusal(&request).bytes() {
                break Some(ran);
            }
            if begun.elapsed() >= answer {
                break None;
            }
            taken += 1;
        };
        // On a busy machine the first requests may expire before the table is full, and give their slots to later ones.
        let expired = switch.registers().expect("registers").counts.expired;
        if let Some(full) = full.filter(|_| expired == 0) {
            break (switch, taken, full);
        }
        answer *= 2;
        assert!(answer < Duration::from_secs(60), "{taken} and no end");
    };
    assert_eq!(full.action, TX);
    // Every CPU has the same part of 65536 slots.
    assert!(taken >= 64 && 65_536 % taken == 0, "{taken} requests");
    std::thread::sleep(answer + Duration::from_millis(100));
    let ran = switch.run(&bytes, 1).expect("the packet runs");
    assert_eq!(ran.bytes.len(), bytes.len(), "forwarded again");
    let counts = switch.registers().expect("registers").counts;
    assert_eq!((counts.shed, counts.expired), (1, 1));
}

#[test]
fn in_direct_mode_a_request_keeps_its_client() {
    let Some(objects) = objects("direct mode") else {
        return;
    };
    stay_on_cpu(0);
    let mut switch = switch(&objects.rack, Mode::Direct, Duration::from_secs(5));
    publish(&mut switch);
    for number in 0..4 {
        for has_checksum in [true, false] {
            let mut request = request(true, has_checksum);
            // The switch ignores the client's clone bits.
            request.payload[1] = 3;
            let ran = switch.run(&request.bytes(), 1).expect("the packet runs");
            let server = u8::from(!has_checksum);
            let mut expected = Frame {
                to_mac: [2, 0, 0, 0, 1, server],
                from_mac: OWN_MAC,
                to: SocketAddr::from(([10, 0, 1, server], 8000)),
                ..request
            };
            expected.payload[1] = 0;
            assert_eq!((ran.action, ran.bytes), (TX, expected.bytes()), "{number}");
        }
    }
    // The switch drops a response, or a request handed back, that matches no request.
    for bits in [0b100, 0b100_0000] {
        let mut response = request(true, true);
        response.payload[1] = bits;
        let ran = switch.run(&response.bytes(), 1).expect("the packet runs");
        assert_eq!(ran.action, DROP);
    }
    let counts = switch.registers().expect("registers").counts;
    assert_eq!((counts.requests, counts.unexpected), (8, 2));
    const { assert!(HEADER_BYTES == 10, "the program's wire header") };
}

/// Sends requests; returns the answers of their servers.
fn begun(switch: &mut XdpSwitch, requests: usize) -> Vec<Frame> {
    let frame = request(true, false);
    let run = |_| {
        let ran = switch.run(&frame.bytes(), 1).expect("the packet runs");
        assert_eq!(ran.action, TX);
        let index_at = frame.udp_at() + 8 + 2;
        let index = ran.bytes[index_at..index_at + 4].try_into();
        let index = u32::from_be_bytes(index.expect("four bytes"));
        let header = Header {
            class: 0,
            flag: Flag::response(Status::Ok),
            index,
            time_ns: 5,
        };
        Frame {
            from: SocketAddr::from(([10, 0, 1, ran.bytes[frame.udp_at() - 1]], 8000)),
            payload: header.encode().to_vec(),
            ..frame.clone()
        }
    };
    (0..requests).map(run).collect()
}

#[test]
fn an_answer_to_a_request_of_an_earlier_switch_is_dropped_and_counted() {
    let Some(objects) = objects("answers after a restart") else {
        return;
    };
    let start = || {
        let mut switch = switch(&objects.rack, Mode::Nat, Duration::from_secs(60));
        publish(&mut switch);
        switch
    };
    let late = begun(&mut start(), 16);
    let mut switch = start();
    let own = begun(&mut switch, 16);
    for answer in &late {
        let ran = switch.run(&answer.bytes(), 1).expect("the packet runs");
        assert_eq!(ran.action, DROP);
    }
    for answer in &own {
        let ran = switch.run(&answer.bytes(), 1).expect("the packet runs");
        assert_eq!(ran.action, TX);
    }
    let counts = switch.registers().expect("registers").counts;
    assert_eq!((counts.unexpected, counts.answered), (16, 16));
}

/// Also where the server comes back to its place, and where its slots are taken by other requests later.
#[test]
fn what_a_removed_server_had_is_lost_once_and_for_good() {
    let Some(objects) = objects("a removed server") else {
        return;
    };
    stay_on_cpu(0);
    let mut answer = Duration::from_secs(1);
    loop {
        let started = Instant::now();
        let mut switch = switch(&objects.rack, Mode::Nat, answer);
        publish(&mut switch);
        let asked = begun(&mut switch, 8);
        let of_removed = |answer: &&Frame| answer.from.ip() == IpAddr::from([10, 0, 1, 1]);
        publish_places(1, &mut switch, [true, false]);
        let without = switch.generation();
        let lost = switch.lose(ServerId(1), without).expect("it runs");
        let again = switch.lose(ServerId(1), without).expect("it runs");
        // On a busy machine they are too old by now, and expire.
        if started.elapsed() > answer / 2 {
            answer *= 2;
            assert!(answer < Duration::from_secs(60), "no end");
            continue;
        }
        assert_eq!((lost, again), (4, 0));
        publish(&mut switch);
        for answer in asked.iter().filter(of_removed) {
            let ran = switch.run(&answer.bytes(), 1).expect("the packet runs");
            assert_eq!(ran.action, DROP, "nobody awaits it");
        }
        let kept = asked.iter().find(|answer| !of_removed(answer));
        let kept = kept.expect("four of them");
        let ran = switch.run(&kept.bytes(), 1).expect("the packet runs");
        assert_eq!(ran.action, TX);
        std::thread::sleep(answer + Duration::from_millis(100));
        let registers = loop {
            let registers = switch.registers().expect("registers");
            if registers.counts.expired >= 3 {
                break registers;
            }
            begun(&mut switch, 1000);
            assert!(registers.counts.requests < 1_000_000);
        };
        let counts = registers.counts;
        assert_eq!((counts.lost, counts.unexpected, counts.answered), (4, 4, 1));
        let unanswered: u64 = registers
            .servers
            .iter()
            .map(ServerRegisters::unanswered)
            .sum();
        let settled = counts.answered + counts.lost + counts.expired + counts.shed;
        assert_eq!(counts.requests, settled + unanswered, "{counts:?}");
        break;
    }
}

#[test]
fn a_servers_answer_to_a_probe_is_known_by_an_index_that_nobody_guesses() {
    let Some(objects) = objects("answers to probes") else {
        return;
    };
    let start = |ifindex| {
        let mut switch = switch(&objects.rack, Mode::Nat, Duration::from_secs(60));
        publish_behind(ifindex, &mut switch);
        switch
    };
    let (mut switch, before) = (start(1), start(1));
    let answer = |index| {
        let header = Header {
            class: 255,
            flag: Flag::response(Status::Ok),
            index,
            time_ns: 0,
        };
        Frame {
            from: SocketAddr::from(([10, 0, 1, 1], 8000)),
            payload: header.encode().to_vec(),
            ..request(true, true)
        }
    };
    let own = answer(switch.question_index());
    let ran = switch.run(&own.bytes(), 1).expect("the packet runs");
    assert_eq!((ran.action, ran.bytes), (PASS, own.bytes()));
    // The index of an earlier switch, that of every switch before, and a client that knows the right one.
    let late = [before.question_index(), 0].map(answer);
    let client = Frame {
        from: SocketAddr::from(([10, 0, 0, 9], 9000)),
        ..own.clone()
    };
    for dropped in [&late[0], &late[1], &client] {
        let ran = switch.run(&dropped.bytes(), 1).expect("the packet runs");
        assert_eq!(ran.action, DROP);
    }
    // The interface of test runs is not the one that leads to the servers.
    let mut behind = start(2);
    let own = answer(behind.question_index());
    let ran = behind.run(&own.bytes(), 1).expect("the packet runs");
    assert_eq!(ran.action, DROP);
}
