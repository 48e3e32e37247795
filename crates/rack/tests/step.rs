//! The switch's handling of each kind of packet, byte by byte, without sockets.

use crate::common::*;
use headway_net::header::{CloneRole, Flag, HEADER_BYTES, Header, Status, UNKNOWN};
use headway_net::slot::{PAYLOAD_BYTES, Peer};
use headway_policy::ClassId;
use headway_policy::rack::ServerId;
use headway_rack::slo::SloWatch;
use headway_rack::{
    LocalAddress, PacketCounts, PacketSink, RackSwitch, ReceivedPacket, SwitchLimits,
};
use std::net::SocketAddr;

/// Sends a request of one copy, and returns its destination and header.
fn one(switch: &mut RackSwitch<Dynamic>, class: u8, index: u32) -> (SocketAddr, Vec<u8>) {
    let mut sent = pass(switch, 0, client(0), &request(class, index, b"body"));
    assert_eq!(sent.len(), 1);
    sent.remove(0)
}

#[test]
fn a_request_goes_to_a_server_and_its_response_back_to_the_client() {
    let mut switch = switch("round-robin", 3);
    for number in 0..30u16 {
        let index = u32::from(number) << 20;
        let sent = pass(
            &mut switch,
            5,
            client(number),
            &request(1, index, b"question"),
        );
        let [(to, datagram)] = &sent[..] else {
            panic!("{sent:?}");
        };
        assert_eq!(*to, server(number % 3));
        let (asked, body) = Header::parse(datagram).unwrap();
        assert_eq!(
            (asked.class, asked.flag, asked.time_ns),
            (1, Flag::REQUEST, 0xABCD)
        );
        assert_eq!(body, b"question");
        let answer = response(datagram, Status::Ok, 1234, b"answer");
        let back = pass(&mut switch, 9, *to, &answer);
        let expected = Header {
            class: 1,
            flag: Flag::response(Status::Ok),
            index,
            time_ns: 1234,
        };
        assert_eq!(
            back,
            [(client(number), [&expected.encode()[..], b"answer"].concat())]
        );
    }
    assert_eq!(switch.under_way(), 0);
    let counts = PacketCounts {
        requests: 30,
        answered: 30,
        ..PacketCounts::default()
    };
    assert_eq!(*switch.counts(), counts);
}

#[test]
fn answered_requests_beyond_a_bound_are_counted_by_type() {
    let mut switch = switch("round-robin", 2);
    let types = switch.types();
    let slo = "class.*.latency.p99<=9ns,overall.slowdown.max<=2"
        .parse()
        .unwrap();
    switch.watch_slo(SloWatch::new(&slo, types).unwrap());
    // Sent at 0: the latency is the time of the response.
    for (class, status, at_ns, execution_ns) in [
        (0, Status::Ok, 9, 9),
        (0, Status::Ok, 10, 5),
        (1, Status::Ok, 11, 5),
        (1, Status::Shed, 99, 1),
    ] {
        let (to, datagram) = one(&mut switch, class, at_ns as u32);
        let answer = response(&datagram, status, execution_ns, b"");
        assert_eq!(pass(&mut switch, at_ns, to, &answer).len(), 1);
    }
    let counts = switch.slo_counts().unwrap();
    let of = |class| {
        let exceeded = [0, 1].map(|bound| counts.exceeded(ClassId(class), bound));
        (counts.answered(ClassId(class)), exceeded)
    };
    assert_eq!(of(0), (2, [1, 0]));
    assert_eq!(of(1), (1, [1, 1]), "a request that was shed is no answer");
}

#[test]
fn clients_with_equal_indices_are_told_apart() {
    let mut switch = switch("random", 2);
    let sent: Vec<_> = (0..20)
        .map(|number| pass(&mut switch, 0, client(number), &request(0, 7, b"")).remove(0))
        .collect();
    for (number, (to, datagram)) in sent.iter().enumerate().rev() {
        let back = pass(
            &mut switch,
            0,
            *to,
            &response(datagram, Status::Ok, 1, &[number as u8]),
        );
        assert_eq!(back[0].0, client(number as u16));
        assert_eq!(header(&back[0].1).index, 7);
        assert_eq!(back[0].1[HEADER_BYTES..], [number as u8]);
    }
}

#[test]
fn types_keep_to_their_groups_and_turns() {
    let mut switch = switch("pallas,clone=off,overflow=off", 4);
    let mut shorts = [0; 4];
    for index in 0..40 {
        let (to, _) = one(&mut switch, 0, index);
        let server = (0..4).find(|&number| server(number) == to).unwrap();
        shorts[usize::from(server)] += 1;
    }
    // 0.9 × 10 and 0.1 × 90 of 8 cores: each type gets half of them, in whole servers.
    assert_eq!(
        shorts.iter().filter(|&&count| count == 20).count(),
        2,
        "{shorts:?}"
    );
    let (long, _) = one(&mut switch, 1, 99);
    assert!((0..4).any(|number| server(number) == long && shorts[usize::from(number)] == 0));
    // Requests of no known type go with the longest type.
    let (unknown, datagram) = one(&mut switch, UNKNOWN, 100);
    assert!((0..4).any(|number| server(number) == unknown && shorts[usize::from(number)] == 0));
    assert_eq!(header(&datagram).class, UNKNOWN);
    assert_eq!(switch.counts().unknown_type, 1);
}

#[test]
fn execution_times_and_counts_reach_the_registers() {
    let mut switch = switch("pallas,clone=off", 4);
    for index in 0..3 {
        let (to, datagram) = one(&mut switch, 1, index);
        pass(
            &mut switch,
            0,
            to,
            &response(&datagram, Status::Ok, 8_000 << index, b""),
        );
    }
    // A shed request has no execution time.
    let (to, datagram) = one(&mut switch, 1, 3);
    pass(
        &mut switch,
        0,
        to,
        &response(&datagram, Status::Shed, 77, b""),
    );
    let shaper = headway_policy::rack::Switch::shaper(switch.policy()).unwrap();
    let reading = shaper.monitor().readings()[1];
    let average = |before: u64, next: u64| before - before / 8 + next / 8;
    assert_eq!(reading.count, 4);
    assert_eq!(
        reading.execution_ns,
        average(average(8_000, 16_000), 32_000)
    );
}

#[test]
fn of_two_copies_the_first_answer_passes_whichever_it_is() {
    for clone_first in [false, true] {
        let mut switch = switch("netclone", 2);
        let sent = pass(&mut switch, 0, client(1), &request(0, 5, b"twice"));
        let [(first, original), (second, clone)] = &sent[..] else {
            panic!("{sent:?}");
        };
        assert_ne!(first, second);
        assert_eq!(header(original).index, header(clone).index);
        assert_eq!(header(original).flag.clone_role(), CloneRole::Original);
        assert_eq!(header(clone).flag.clone_role(), CloneRole::Clone);
        assert_eq!(original[HEADER_BYTES..], clone[HEADER_BYTES..]);
        let mut answers = [(*first, original), (*second, clone)];
        if clone_first {
            answers.reverse();
        }
        let [(early, fast), (late, slow)] = answers;
        let back = pass(
            &mut switch,
            1,
            early,
            &response(fast, Status::Ok, 3, b"fast"),
        );
        assert_eq!(back.len(), 1);
        assert_eq!((back[0].0, header(&back[0].1).index), (client(1), 5));
        assert_eq!(header(&back[0].1).flag.clone_role(), CloneRole::None);
        assert_eq!(
            pass(
                &mut switch,
                2,
                late,
                &response(slow, Status::Ok, 3, b"slow")
            ),
            []
        );
        let counts = switch.counts();
        assert_eq!((counts.cloned, counts.answered, counts.filtered), (1, 1, 1));
        assert_eq!(switch.under_way(), 0);
        // Once more, in case a server repeats itself.
        assert_eq!(
            pass(
                &mut switch,
                3,
                late,
                &response(slow, Status::Ok, 3, b"slow")
            ),
            []
        );
        assert_eq!(switch.counts().unexpected, 1);
    }
}

#[test]
fn a_clone_that_is_not_begun_leaves_the_original() {
    let mut switch = switch("netclone", 2);
    let sent = pass(&mut switch, 0, client(1), &request(0, 5, b""));
    let refusal = response(&sent[1].1, Status::Shed, 0, b"");
    assert_eq!(pass(&mut switch, 1, sent[1].0, &refusal), []);
    assert_eq!(switch.counts().copies_refused, 1);
    let answer = response(&sent[0].1, Status::Ok, 9, b"");
    assert_eq!(pass(&mut switch, 2, sent[0].0, &answer).len(), 1);
    assert_eq!(switch.under_way(), 0);
    // When neither copy begins, the client hears it once.
    let sent = pass(&mut switch, 3, client(1), &request(0, 6, b""));
    assert_eq!(sent.len(), 2);
    let told: Vec<_> = sent
        .iter()
        .flat_map(|(server, copy)| {
            pass(
                &mut switch,
                4,
                *server,
                &response(copy, Status::Shed, 0, b""),
            )
        })
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(header(&told[0].1).flag, Flag::response(Status::Shed));
    assert_eq!(switch.under_way(), 0);
}

/// A request that a server hands back.
fn handed_back(datagram: &[u8]) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    bytes[1] = header(datagram).flag.with_bounced(true).bits();
    bytes
}

#[test]
fn what_servers_hand_back_is_sent_again_until_it_must_be_kept() {
    let mut switch = switch("pallas,clone=off", 2);
    let (mut to, mut datagram) = one(&mut switch, 0, 1);
    for bounce in 1..=3 {
        let mut sent = pass(&mut switch, 0, to, &handed_back(&datagram));
        assert_eq!(sent.len(), 1);
        (to, datagram) = sent.remove(0);
        assert_eq!(
            header(&datagram).flag.is_bounced(),
            bounce == 3,
            "after {bounce}"
        );
        assert_eq!(datagram[HEADER_BYTES..], *b"body");
    }
    assert_eq!(
        pass(&mut switch, 0, to, &response(&datagram, Status::Ok, 1, b"")).len(),
        1
    );
    assert_eq!((switch.counts().bounced, switch.under_way()), (3, 0));
    let shaper = headway_policy::rack::Switch::shaper(switch.policy()).unwrap();
    assert_eq!(shaper.monitor().readings()[0].count, 1, "counted once");
}

/// A response of a server that says how many requests it has.
fn with_queue(request: &[u8], queue: u16, body: &[u8]) -> Vec<u8> {
    let mut datagram = response(request, Status::Ok, 1_000, body);
    datagram[1] = Flag::from_bits(datagram[1]).with_queue(true).bits();
    datagram.extend(queue.to_be_bytes());
    datagram
}

#[test]
fn servers_are_asked_for_their_queues_and_clients_see_nothing_of_it() {
    for policy in ["racksched", "racksched-plain", "racksched,choices=2"] {
        let mut switch = switch(policy, 2);
        let (to, asked) = one(&mut switch, 0, 7);
        assert!(header(&asked).flag.has_queue(), "{policy}");
        let said = with_queue(&asked, 500, b"answer");
        let sent = pass(&mut switch, 0, to, &said);
        let [(_, answer)] = &sent[..] else {
            panic!("{sent:?}");
        };
        assert_eq!(header(answer).flag, Flag::response(Status::Ok));
        assert_eq!(answer[HEADER_BYTES..], *b"answer");
        // By its own count it has 500: of 40 draws of two, some are of it alone.
        let to_other = (0..40).filter(|&index| one(&mut switch, 0, index).0 != to);
        let to_other = to_other.count();
        assert!(
            to_other == 40 || (policy.contains("choices") && to_other >= 20),
            "{policy}: {to_other}"
        );
    }
}

#[test]
fn without_a_servers_word_what_it_owes_is_its_queue() {
    let mut switch = switch("racksched", 2);
    let sent: Vec<_> = (0..6).map(|index| one(&mut switch, 0, index)).collect();
    let of = |server: SocketAddr| sent.iter().filter(move |(to, _)| *to == server);
    let (first, second) = (server(0), server(1));
    assert_eq!((of(first).count(), of(second).count()), (3, 3));
    // One byte is too short for the count, and a server that ignores the bit sends none.
    let mut short = response(&of(first).next().unwrap().1, Status::Ok, 1, b"x");
    short[1] = Flag::from_bits(short[1]).with_queue(true).bits();
    let answer = pass(&mut switch, 0, first, &short);
    assert_eq!(answer[0].1[HEADER_BYTES..], *b"x");
    assert!(!header(&answer[0].1).flag.has_queue());
    assert_eq!(
        one(&mut switch, 0, 9).0,
        first,
        "two there, three at the other"
    );
}

#[test]
fn a_switch_that_compares_no_queues_asks_for_none() {
    for policy in ["pallas,clone=off", "round-robin", "r2p2", "horus"] {
        let mut switch = switch(policy, 2);
        let (to, asked) = one(&mut switch, 0, 7);
        assert!(!header(&asked).flag.has_queue(), "{policy}");
        // The switch forwards a count that it did not ask for as part of the body.
        let said = with_queue(&asked, 5, b"");
        let sent = pass(&mut switch, 0, to, &said);
        assert_eq!(sent[0].1[HEADER_BYTES..], [0, 5], "{policy}");
    }
}

#[test]
fn requests_beyond_the_bound_wait_in_the_switch_with_their_bodies() {
    let mut switch = switch("r2p2,n=1", 2);
    let first: Vec<_> = (0..2).map(|index| one(&mut switch, 0, index)).collect();
    for index in 2..2 + ROOM as u32 {
        let body = [index as u8; 3];
        assert_eq!(
            pass(&mut switch, 0, client(0), &request(0, index, &body)),
            []
        );
    }
    // The switch has no room: the client hears it at once.
    let told = pass(&mut switch, 0, client(4), &request(1, 77, b""));
    assert_eq!(told.len(), 1);
    let shed = header(&told[0].1);
    assert_eq!((told[0].0, shed.index, shed.class), (client(4), 77, 1));
    assert_eq!(shed.flag, Flag::response(Status::Shed));
    // Each answer lets the next go to the server that is free, in order.
    let (mut at, mut datagram) = first[0].clone();
    for index in 2..2 + ROOM as u32 {
        let sent = pass(&mut switch, 1, at, &response(&datagram, Status::Ok, 1, b""));
        assert_eq!(sent.len(), 2, "the answer, and the next request");
        assert_eq!(sent[0].0, client(0));
        assert_eq!(
            (sent[1].0, &sent[1].1[HEADER_BYTES..]),
            (at, &[index as u8; 3][..])
        );
        (at, datagram) = sent[1].clone();
    }
    pass(&mut switch, 2, at, &response(&datagram, Status::Ok, 1, b""));
    let (at, datagram) = &first[1];
    pass(&mut switch, 2, *at, &response(datagram, Status::Ok, 1, b""));
    assert_eq!(switch.under_way(), 0);
    assert_eq!(
        (switch.counts().answered, switch.counts().shed),
        (2 + ROOM as u64, 1)
    );
}

/// The source address of each packet sent, and the receiver.
#[derive(Default)]
struct Sources(Vec<(LocalAddress, SocketAddr)>);

impl PacketSink for Sources {
    fn send(&mut self, from: LocalAddress, to: Peer, _header: [u8; HEADER_BYTES], _body: &[u8]) {
        self.0.push((from, to.socket_addr()));
    }
}

#[test]
fn answers_and_refusals_leave_from_the_address_that_the_client_asked() {
    let asked = LocalAddress::UNNUMBERED;
    let mut switch = switch("r2p2,n=1", 1);
    let (to, datagram) = one(&mut switch, 0, 0);
    let mut sent = Sources::default();
    // One more than the switch has room for.
    for index in 0..=ROOM as u32 {
        let bytes = request(1, index, b"");
        let packet = ReceivedPacket {
            to: asked,
            ..ReceivedPacket::of(client(4).into(), &bytes)
        };
        switch.step(0, packet, &mut sent);
    }
    assert_eq!(sent.0, [(asked, client(4))], "refused at once");
    // The first was asked at no address in particular; what it makes room for was.
    let answer = response(&datagram, Status::Ok, 1, b"");
    let (next_to, next) = pass(&mut switch, 1, to, &answer).remove(1);
    let answer = response(&next, Status::Ok, 1, b"");
    sent.0.clear();
    switch.step(2, ReceivedPacket::of(next_to.into(), &answer), &mut sent);
    assert_eq!(sent.0, [(asked, client(4)), (LocalAddress::ANY, to)]);
}

#[test]
fn packets_in_the_name_of_others_are_dropped_and_counted() {
    let mut switch = switch("random", 2);
    let (to, datagram) = one(&mut switch, 0, 1);
    let answer = response(&datagram, Status::Ok, 1, b"forged");
    let other = server(u16::from(to == server(0)));
    for liar in [client(3), other, own()] {
        assert_eq!(pass(&mut switch, 0, liar, &answer), [], "{liar}");
        assert_eq!(
            pass(&mut switch, 0, liar, &handed_back(&datagram)),
            [],
            "{liar}"
        );
    }
    assert_eq!(switch.counts().spoofed, 6);
    for liar in [server(0), server(1), own()] {
        assert_eq!(
            pass(&mut switch, 0, liar, &request(0, 2, b"")),
            [],
            "{liar}"
        );
    }
    assert_eq!(switch.counts().spoofed, 9);
    // The server that has the request still answers.
    assert_eq!(pass(&mut switch, 0, to, &answer).len(), 1);
    // An answer for a clone that was never sent, and an answer to no request.
    let (to, datagram) = one(&mut switch, 0, 2);
    let mut clone = response(&datagram, Status::Ok, 1, b"");
    clone[1] |= CloneRole::Clone as u8;
    assert_eq!(pass(&mut switch, 0, to, &clone), []);
    let mut other = response(&datagram, Status::Ok, 1, b"");
    other[2] ^= 1;
    assert_eq!(pass(&mut switch, 0, to, &other), []);
    assert_eq!(switch.counts().unexpected, 2);
    assert_eq!((switch.counts().dropped(), switch.under_way()), (11, 1));
}

#[test]
fn a_clients_clone_bits_are_not_believed() {
    let mut switch = switch("random", 1);
    for role in [CloneRole::Original, CloneRole::Clone] {
        let mut datagram = request(0, 1, b"");
        datagram[1] = role as u8;
        let sent = pass(&mut switch, 0, client(0), &datagram);
        assert_eq!(header(&sent[0].1).flag, Flag::REQUEST);
        let back = pass(
            &mut switch,
            0,
            sent[0].0,
            &response(&sent[0].1, Status::Ok, 1, b""),
        );
        assert_eq!(back.len(), 1);
    }
}

#[test]
fn datagrams_that_are_too_short_or_too_long_go_nowhere() {
    let mut switch = switch("random", 1);
    let long = request(0, 1, &[1; PAYLOAD_BYTES]);
    for len in 0..HEADER_BYTES {
        assert_eq!(pass(&mut switch, 0, client(0), &long[..len]), []);
    }
    assert_eq!(pass(&mut switch, 0, client(0), &long), []);
    let mut sent = Sent::default();
    let cut = ReceivedPacket {
        is_cut: true,
        ..ReceivedPacket::of(client(0).into(), &long[..PAYLOAD_BYTES])
    };
    switch.step(0, cut, &mut sent);
    assert_eq!(sent.0, []);
    let counts = switch.counts();
    assert_eq!(
        (counts.truncated, counts.too_long, counts.requests),
        (10, 2, 0)
    );
    assert_eq!(
        pass(&mut switch, 0, client(0), &long[..PAYLOAD_BYTES]).len(),
        1
    );
}

#[test]
fn a_request_without_an_answer_is_forgotten_and_its_place_is_free_again() {
    let limits = SwitchLimits {
        nat_bits: 2,
        held: ROOM,
        answer_ns: 1_000,
        ..SwitchLimits::new(2)
    };
    let mut switch = switch_within("r2p2,n=2", 1, limits);
    let sent: Vec<_> = (0..2).map(|index| one(&mut switch, 0, index)).collect();
    assert_eq!(pass(&mut switch, 1, client(0), &request(0, 2, b"held")), []);
    assert_eq!(pass(&mut switch, 1, client(0), &request(0, 3, b"held")), []);
    // The table is full: the client hears it.
    let told = pass(&mut switch, 1, client(0), &request(0, 4, b""));
    assert_eq!(header(&told[0].1).flag, Flag::response(Status::Shed));
    let mut out = Sent::default();
    switch.tick(1_000, 4, &mut out);
    assert_eq!(out.0, [], "not yet");
    switch.tick(1_001, 4, &mut out);
    // The switch forgets the requests at the server, and the waiting ones take their places.
    assert_eq!(out.0.len(), 2);
    assert!(
        out.0
            .iter()
            .all(|(to, datagram)| *to == server(0) && datagram.ends_with(b"held"))
    );
    assert_eq!(switch.counts().expired, 2);
    assert_eq!(
        pass(
            &mut switch,
            1_001,
            server(0),
            &response(&sent[0].1, Status::Ok, 1, b"")
        ),
        []
    );
    assert_eq!(switch.counts().unexpected, 1, "too late");
    assert_eq!(switch.unanswered(ServerId(0)), 2);
}
