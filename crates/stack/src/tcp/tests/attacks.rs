//! Floods, many connections, peers that vanish.

use super::wire::{Badness, CLIENT, PORT, SERVER, Wire, made_up, settings, syn};
use crate::tcp::connection::{TcpFailure, TcpSettings};
use crate::tcp::flow::FlowKey;
use crate::tcp::segment::{SegmentHeader, TcpFlags, Timestamps};
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};
use std::net::{IpAddr, Ipv4Addr};
use std::task::Waker;

/// A flow of someone who never answers.
fn strangers_flow(number: u32) -> FlowKey {
    FlowKey {
        local_ip: IpAddr::V4(Ipv4Addr::from_bits(0x0B00_0000 + number)),
        remote_ip: SERVER,
        local_port: 1024,
        remote_port: PORT,
    }
}

#[test]
fn a_flood_of_syns_refuses_nobody_and_keeps_nothing() {
    let mut wire = Wire::new(1, [settings(); 2]);
    for round in 0..20u16 {
        for number in 0..5000 {
            let flow = strangers_flow(u32::from(round) * 5000 + number);
            wire.deliver(0, &made_up(flow, syn(number)));
        }
        let (server, client) = wire.connected(50_000 + round);
        let sent = vec![7; 30_000];
        assert_eq!(wire.write(1, client, &sent), Some(Ok(sent.len())));
        wire.run(20 * MILLISECOND_NS);
        let mut received = Vec::new();
        while let Some(Ok(read)) = wire.read(0, server) {
            received.extend(read);
        }
        assert!(received == sent, "round {round}: exact by a cookie, too");
    }
    assert_eq!(wire.hosts[0].counts().0, 20, "the clients only");
    assert!(wire.hosts[0].handshakes() <= 512);
    wire.run(10 * SECOND_NS);
    assert_eq!(wire.hosts[0].handshakes(), 0, "they are forgotten");
}

/// A cookie's client has the options of its SYN, and others cannot make one up.
#[test]
fn acknowledgements_that_nobody_asked_for_open_no_connection() {
    let mut wire = Wire::new(2, [settings(); 2]);
    for number in 0..2000 {
        wire.deliver(0, &made_up(strangers_flow(number), syn(number)));
    }
    for number in 0..50_000u32 {
        let header = SegmentHeader {
            sequence: 1,
            acknowledgement: number.wrapping_mul(85_899),
            flags: TcpFlags::ACK,
            ..SegmentHeader::default()
        };
        wire.deliver(0, &made_up(strangers_flow(number % 4000), header));
    }
    assert!(wire.accept().is_none());
    assert_eq!(wire.hosts[0].counts().0, 0);
}

#[test]
fn a_lost_answer_to_a_syn_is_sent_again() {
    let mut wire = Wire::new(3, [settings(); 2]);
    wire.log = Some(Vec::new());
    wire.badness.lost = 1000;
    wire.deliver(0, &made_up(Wire::flow(50_000), syn(9)));
    wire.run(SECOND_NS);
    let log = wire.log.take().expect("it is kept");
    let answers = log.iter().filter(|(from, ..)| *from == 0).count();
    assert_eq!(answers, 4, "at once, after 100, 300, 700 ms: {log:?}");
}

#[test]
fn a_full_backlog_makes_clients_wait_and_refuses_none() {
    use crate::tcp::listening::AcceptQueue;
    let mut wire = Wire::new(4, [settings(); 2]);
    wire.queue = std::sync::Arc::new(AcceptQueue::new(3));
    let queue = std::sync::Arc::clone(&wire.queue);
    wire.hosts[0].listen(PORT, queue);
    for port in 0..20 {
        wire.connect(50_000 + port).expect("the flow is free");
    }
    let mut accepted = 0;
    for _ in 0..200 {
        wire.run(20 * MILLISECOND_NS);
        accepted += usize::from(wire.accept().is_some());
    }
    assert_eq!(accepted, 20);
}

/// In TIME-WAIT at the server, which closed first.
fn in_time_wait(wire: &mut Wire, port: u16) {
    let (server, client) = wire.connected(port);
    wire.abandon(0, server);
    wire.run(MILLISECOND_NS);
    wire.abandon(1, client);
    wire.run(5 * MILLISECOND_NS);
    assert_eq!(wire.hosts[0].counts(), (0, 1));
}

#[test]
fn a_new_syn_in_time_wait_opens_a_connection_at_once() {
    let mut wire = Wire::new(5, [settings(); 2]);
    for _ in 0..5 {
        in_time_wait(&mut wire, 50_000);
        let begun_ns = wire.now_ns;
        let client = wire.connect(50_000).expect("the flow is free");
        while wire.accept().is_none() {
            assert!(wire.step(begun_ns + MILLISECOND_NS), "it is not answered");
        }
        wire.run(MILLISECOND_NS);
        wire.abandon(1, client);
        let (open, waiting) = wire.hosts[0].counts();
        assert_eq!((open, waiting), (1, 0));
        wire = Wire::new(wire.draw(), [settings(); 2]);
    }
}

#[test]
fn an_old_syn_in_time_wait_is_acknowledged_and_opens_nothing() {
    let mut wire = Wire::new(6, [settings(); 2]);
    wire.log = Some(Vec::new());
    in_time_wait(&mut wire, 50_000);
    let log = wire.log.take().expect("it is kept");
    let (_, first, _) = log[0];
    assert!(first.flags.has(TcpFlags::SYN));
    // The SYN of the old connection, late.
    wire.deliver(0, &made_up(Wire::flow(50_000), first));
    wire.run(MILLISECOND_NS);
    assert!(wire.accept().is_none());
    assert_eq!(wire.hosts[0].counts(), (0, 1));
    // With timestamps, a lower number is no hindrance (RFC 6191).
    let timestamps = first.timestamps.map(|old| Timestamps {
        value: old.value.wrapping_add(1000),
        echo: 0,
    });
    let later = SegmentHeader {
        sequence: first.sequence.wrapping_sub(1_000_000),
        timestamps,
        ..first
    };
    wire.deliver(0, &made_up(Wire::flow(50_000), later));
    assert_eq!(
        (wire.hosts[0].counts(), wire.hosts[0].handshakes()),
        ((0, 0), 1)
    );
}

#[test]
fn short_connections_leave_nothing_behind() {
    let mut wire = Wire::new(7, [settings(); 2]);
    for round in 0..4000u16 {
        let (server, client) = wire.connected(49_152 + round);
        assert_eq!(wire.write(1, client, b"question"), Some(Ok(8)));
        wire.run(100_000);
        assert_eq!(wire.read(0, server), Some(Ok(b"question".to_vec())));
        wire.abandon(0, server);
        wire.run(100_000);
        wire.abandon(1, client);
        wire.run(100_000);
        assert!(wire.hosts[0].counts().0 + wire.hosts[1].counts().0 <= 2);
    }
    wire.run(11 * SECOND_NS);
    assert_eq!(wire.hosts[0].counts(), (0, 0));
    assert_eq!(wire.hosts[1].counts(), (0, 0));
    assert!(wire.hosts[0].places() < 10, "places are used again");
}

#[test]
fn a_peer_that_vanishes_fails_the_sender_after_the_user_timeout() {
    let timeout_ns = 3 * SECOND_NS;
    let patient = TcpSettings {
        user_timeout_ns: timeout_ns,
        ..settings()
    };
    let mut wire = Wire::new(8, [patient; 2]);
    let (_, client) = wire.connected(50_000);
    wire.cut();
    let begun_ns = wire.now_ns;
    while wire
        .write(1, client, &[0; 10_000])
        .is_some_and(|written| written.is_ok())
    {}
    wire.run(timeout_ns - SECOND_NS);
    assert_eq!(wire.write(1, client, &[0]), None, "not yet");
    wire.run(SECOND_NS + 10 * MILLISECOND_NS);
    assert_eq!(wire.write(1, client, &[0]), Some(Err(TcpFailure::TimedOut)));
    assert_eq!(wire.read(1, client), Some(Err(TcpFailure::TimedOut)));
    assert!(wire.now_ns < begun_ns + timeout_ns + SECOND_NS);
}

#[test]
fn a_reader_hears_of_a_vanished_peer_by_keep_alive_and_a_present_one_stays() {
    let asking = TcpSettings {
        keep_alive_ns: Some(2 * SECOND_NS),
        ..settings()
    };
    let mut wire = Wire::new(9, [asking; 2]);
    let (server, client) = wire.connected(50_000);
    wire.run(60 * SECOND_NS);
    assert_eq!((wire.read(0, server), wire.read(1, client)), (None, None));
    wire.cut();
    wire.run(10 * SECOND_NS);
    assert_eq!(wire.read(0, server), Some(Err(TcpFailure::TimedOut)));
}

/// A peer whose window is shut is alive for as long as it answers; a lost update of its window is asked for.
#[test]
fn a_shut_window_is_waited_for_and_probed() {
    let mut wire = Wire::new(10, [settings(); 2]);
    let (server, client) = wire.connected(50_000);
    let mut written = 0;
    while let Some(Ok(bytes)) = wire.write(1, client, &[7; 10_000]) {
        written += bytes;
        wire.run(SECOND_NS);
    }
    wire.run(300 * SECOND_NS);
    assert_eq!(
        wire.write(1, client, &[7]),
        None,
        "still open after five minutes"
    );
    // The update gets lost.
    wire.badness.lost = 1000;
    let mut read = 0;
    while let Some(Ok(bytes)) = wire.read(0, server) {
        read += bytes.len();
    }
    wire.run(MILLISECOND_NS);
    wire.badness = Badness::default();
    wire.run(130 * SECOND_NS);
    while let Some(Ok(bytes)) = wire.read(0, server) {
        read += bytes.len();
        wire.run(100 * MILLISECOND_NS);
    }
    assert_eq!(read, written);
}

/// Resets and SYNs of someone who does not know the numbers change nothing (RFC 5961).
#[test]
fn a_connection_survives_strangers() {
    let mut wire = Wire::new(11, [settings(); 2]);
    let (server, client) = wire.connected(50_000);
    for number in 0..2000u32 {
        let flags = [
            TcpFlags::RST,
            TcpFlags::SYN,
            TcpFlags::RST.with(TcpFlags::ACK),
        ];
        let header = SegmentHeader {
            sequence: number.wrapping_mul(2_147_483),
            acknowledgement: number.wrapping_mul(1_147_483),
            flags: flags[number as usize % 3],
            ..SegmentHeader::default()
        };
        wire.deliver(0, &made_up(Wire::flow(50_000), header));
    }
    assert_eq!(wire.write(1, client, b"still here"), Some(Ok(10)));
    wire.run(10 * MILLISECOND_NS);
    assert_eq!(wire.read(0, server), Some(Ok(b"still here".to_vec())));
    assert_eq!(Wire::flow(1).local_ip, CLIENT);
}

/// A stranger who knows the server's next number, but not the client's acknowledgements.
#[test]
fn a_timestamp_without_a_right_acknowledgement_changes_nothing() {
    let mut wire = Wire::new(12, [settings(); 2]);
    wire.log = Some(Vec::new());
    let (server, client) = wire.connected(50_000);
    for (from, id) in [(1, client), (0, server)] {
        assert_eq!(wire.write(from, id, b"hello"), Some(Ok(5)));
        wire.run(10 * MILLISECOND_NS);
    }
    assert_eq!(wire.read(0, server), Some(Ok(b"hello".to_vec())));
    let log = wire.log.take().expect("it is kept");
    let (_, last, _) = log
        .iter()
        .rfind(|(from, ..)| *from == 1)
        .expect("an answer");
    let theirs = last.timestamps.expect("both have them");
    let header = SegmentHeader {
        sequence: last.sequence,
        acknowledgement: last.acknowledgement.wrapping_add(1 << 31),
        flags: TcpFlags::ACK,
        timestamps: Some(Timestamps {
            value: theirs.value.wrapping_add(1 << 30),
            ..theirs
        }),
        ..SegmentHeader::default()
    };
    wire.deliver(0, &made_up(Wire::flow(50_000), header));
    assert_eq!(wire.write(1, client, b"still here"), Some(Ok(10)));
    wire.run(10 * MILLISECOND_NS);
    assert_eq!(wire.read(0, server), Some(Ok(b"still here".to_vec())));
}

#[test]
fn a_fin_needs_no_room_in_a_window() {
    let unscaled = TcpSettings {
        buffer_bytes: 32 << 10,
        ..settings()
    };
    let mut wire = Wire::new(13, [unscaled; 2]);
    let (server, client) = wire.connected(50_000);
    let sent = vec![7; unscaled.buffer_bytes];
    assert_eq!(wire.write(1, client, &sent), Some(Ok(sent.len())));
    wire.run(SECOND_NS);
    wire.abandon(1, client);
    wire.run(SECOND_NS);
    assert!(!wire.hosts[1].owes_anything(), "the FIN is acknowledged");
    assert_eq!(wire.read(0, server), Some(Ok(sent)));
    assert_eq!(wire.read(0, server), Some(Ok(Vec::new())));
}

#[test]
fn lost_probes_of_a_shut_window_end_no_connection() {
    let mut wire = Wire::new(14, [settings(); 2]);
    let (_, client) = wire.connected(50_000);
    while wire.write(1, client, &[7; 10_000]).is_some() {
        wire.run(SECOND_NS);
    }
    wire.run(300 * SECOND_NS);
    wire.badness.lost = 1000;
    wire.run(61 * SECOND_NS);
    wire.badness = Badness::default();
    wire.run(200 * SECOND_NS);
    assert_eq!(wire.write(1, client, &[7]), None, "still open");
}

/// A handshake stays as it began, so that no flood of one flow gets around the bounds. A client that began anew resets it.
#[test]
fn a_syn_with_another_number_replaces_no_handshake() {
    let mut wire = Wire::new(15, [settings(); 2]);
    wire.badness.lost = 1000;
    wire.log = Some(Vec::new());
    for number in 0..2000 {
        wire.deliver(0, &made_up(Wire::flow(50_000), syn(number)));
    }
    let log = wire.log.take().expect("it is kept");
    assert!(log.iter().all(|(_, answer, _)| answer.acknowledgement == 1));
    assert_eq!(wire.hosts[0].handshakes(), 1);
    wire.badness = Badness::default();
    wire.connect(50_000).expect("the flow is free");
    wire.run(SECOND_NS);
    assert!(wire.accept().is_some(), "the client's own");
}

#[test]
fn two_that_connect_to_each_other_have_one_connection() {
    let mut wire = Wire::new(16, [settings(); 2]);
    let flow = Wire::flow(50_000);
    let back = FlowKey {
        local_ip: flow.remote_ip,
        remote_ip: flow.local_ip,
        local_port: flow.remote_port,
        remote_port: flow.local_port,
    };
    let client = wire.connect(50_000).expect("the flow is free");
    let server = wire.act(0, |table, now_ns, sink| {
        table.connect(back, 20 * SECOND_NS, now_ns, sink)
    });
    let server = server.expect("the flow is free");
    wire.run(MILLISECOND_NS);
    for (host, id) in [(0, server), (1, client)] {
        let opened = wire.act(host, |table, _, _| table.opened(id, Waker::noop()));
        assert_eq!(opened, Some(Ok(())), "host {host}");
    }
    for (from, sender, receiver) in [(0, server, client), (1, client, server)] {
        let sent = vec![from as u8; 50_000];
        assert_eq!(wire.write(from, sender, &sent), Some(Ok(sent.len())));
        wire.run(20 * MILLISECOND_NS);
        assert_eq!(wire.read(1 - from, receiver), Some(Ok(sent)));
    }
}

#[test]
fn a_connection_goes_on_after_25_days_of_silence() {
    let mut wire = Wire::new(17, [settings(); 2]);
    let (server, client) = wire.connected(50_000);
    wire.run(25 * 24 * 60 * 60 * SECOND_NS);
    assert_eq!(wire.write(1, client, b"again"), Some(Ok(5)));
    wire.run(10 * MILLISECOND_NS);
    assert_eq!(wire.read(0, server), Some(Ok(b"again".to_vec())));
}

#[test]
fn a_keep_alive_without_end_asks_nobody() {
    let never = TcpSettings {
        keep_alive_ns: Some(u64::MAX),
        ..settings()
    };
    let mut wire = Wire::new(18, [never; 2]);
    let (server, client) = wire.connected(50_000);
    assert_eq!(wire.write(1, client, b"question"), Some(Ok(8)));
    wire.run(SECOND_NS);
    assert_eq!(wire.read(0, server), Some(Ok(b"question".to_vec())));
}

/// Its window is full, so its reset has the number of the edge.
#[test]
fn a_reset_at_the_edge_of_the_window_is_questioned_and_one_beyond_is_not() {
    let small = TcpSettings {
        buffer_bytes: 32 << 10,
        ..settings()
    };
    let mut wire = Wire::new(14, [small; 2]);
    wire.log = Some(Vec::new());
    let (_, client) = wire.connected(50_000);
    assert_eq!(wire.write(1, client, b"hello"), Some(Ok(5)));
    wire.run(10 * MILLISECOND_NS);
    let log = wire.log.take().expect("it is kept");
    let (_, last, _) = log.iter().rfind(|(from, ..)| *from == 0).expect("one");
    let edge = last.acknowledgement.wrapping_add(u32::from(last.window));
    let mut answers = |sequence| {
        let header = SegmentHeader {
            sequence,
            flags: TcpFlags::RST,
            ..SegmentHeader::default()
        };
        wire.log = Some(Vec::new());
        wire.deliver(0, &made_up(Wire::flow(50_000), header));
        wire.run(10 * MILLISECOND_NS);
        let log = wire.log.take().expect("it is kept");
        log.iter().filter(|(from, ..)| *from == 0).count()
    };
    let counts = [edge.wrapping_sub(1), edge, edge.wrapping_add(1)].map(&mut answers);
    assert_eq!(counts, [1, 1, 0]);
}

#[test]
fn a_client_by_cookie_gets_no_longer_segments_than_it_takes() {
    let mut wire = Wire::new(13, [settings(); 2]);
    for number in 0..2000 {
        wire.deliver(0, &made_up(strangers_flow(number), syn(number)));
    }
    let flow = Wire::flow(50_000);
    let asked = SegmentHeader {
        mss: Some(100),
        ..syn(9)
    };
    wire.log = Some(Vec::new());
    wire.deliver(0, &made_up(flow, asked));
    let log = wire.log.take().expect("it is kept");
    let (_, answer, _) = log.last().expect("an answer");
    let opening = SegmentHeader {
        sequence: 10,
        acknowledgement: answer.sequence.wrapping_add(1),
        flags: TcpFlags::ACK,
        window: 60_000,
        ..SegmentHeader::default()
    };
    wire.deliver(0, &made_up(flow, opening));
    let server = wire.accept().expect("by its cookie");
    wire.log = Some(Vec::new());
    assert_eq!(wire.write(0, server, &[7; 1000]), Some(Ok(1000)));
    let log = wire.log.take().expect("it is kept");
    let longest = log.iter().map(|(.., bytes)| *bytes).max();
    assert_eq!(longest, Some(88));
}
