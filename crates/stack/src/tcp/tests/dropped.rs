//! Connections without an owner: how long they go on, and what of theirs is lost.

use super::wire::{Wire, settings};
use crate::tcp::connection::{TcpFailure, TcpSettings};
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};

/// A server with room for little, and a client that may be dropped with more than that to send.
fn narrow() -> [TcpSettings; 2] {
    let little = TcpSettings {
        buffer_bytes: 1024,
        ..settings()
    };
    [little, settings()]
}

#[test]
fn a_dropped_connection_goes_on_while_its_peer_reads_slowly() {
    let mut wire = Wire::new(20, narrow());
    let (server, client) = wire.connected(50_000);
    let sent = vec![7; 64 << 10];
    assert_eq!(wire.write(1, client, &sent), Some(Ok(sent.len())));
    wire.abandon(1, client);
    let (begun_ns, mut received) = (wire.now_ns, 0);
    loop {
        match wire.read_up_to(0, server, 512) {
            None => {}
            Some(Ok(bytes)) if bytes.is_empty() => break,
            Some(Ok(bytes)) => received += bytes.len(),
            Some(Err(failure)) => panic!("{failure:?} after {received} bytes"),
        }
        wire.run(600 * MILLISECOND_NS);
    }
    assert_eq!(received, sent.len());
    assert!(wire.now_ns > begun_ns + 70 * SECOND_NS, "that was slow");
}

/// The peer acknowledges nothing more: the user timeout ends the connection, not before and not long after.
#[test]
fn a_window_that_stays_shut_keeps_a_dropped_connection_for_the_user_timeout() {
    let mut wire = Wire::new(21, narrow());
    let (server, client) = wire.connected(50_000);
    let sent = vec![7; 10_000];
    assert_eq!(wire.write(1, client, &sent), Some(Ok(sent.len())));
    // An owner waits for as long as the peer answers.
    wire.run(300 * SECOND_NS);
    wire.abandon(1, client);
    wire.run(99 * SECOND_NS);
    assert!(wire.hosts[1].owes_anything(), "it may still read");
    wire.run(2 * SECOND_NS);
    assert_eq!(wire.hosts[1].counts(), (0, 0));
    assert_eq!(wire.hosts[1].silent_losses(), 1);
    assert_eq!(wire.hosts[0].silent_losses(), 0);
    wire.abandon(0, server);
}

/// The peer has everything and sends no FIN: the connection ends a minute after its last acknowledgement, and nothing is lost.
#[test]
fn a_peer_that_never_ends_keeps_a_dropped_connection_for_a_minute() {
    for is_shut_down_before in [false, true] {
        let mut wire = Wire::new(22, [settings(); 2]);
        let (server, client) = wire.connected(50_000);
        assert_eq!(wire.write(1, client, b"question"), Some(Ok(8)));
        if is_shut_down_before {
            wire.close(1, client);
            wire.run(300 * SECOND_NS);
        }
        wire.abandon(1, client);
        wire.run(SECOND_NS);
        assert!(!wire.hosts[1].owes_anything());
        wire.run(58 * SECOND_NS);
        assert_eq!(wire.hosts[1].counts(), (1, 0));
        wire.run(2 * SECOND_NS);
        assert_eq!(wire.hosts[1].counts(), (0, 0));
        assert_eq!(wire.hosts[1].silent_losses(), 0);
        assert_eq!(wire.read(0, server), Some(Ok(b"question".to_vec())));
    }
}

/// A reset of a peer that read all of it loses nothing, and one that the owner heard of is no silent loss.
#[test]
fn what_a_reset_ends_is_lost_once_and_only_where_nobody_heard_of_it() {
    let mut wire = Wire::new(23, [settings(); 2]);
    let mut losses = 0;
    for (port, (is_read, is_heard)) in [(false, false), (false, true), (true, false)]
        .into_iter()
        .enumerate()
    {
        let (server, client) = wire.connected(50_000 + port as u16);
        let sent = vec![7; 64 << 10];
        for _ in 0..2 {
            assert_eq!(wire.write(1, client, &sent), Some(Ok(sent.len())));
            wire.run(SECOND_NS);
            if is_read {
                assert_eq!(wire.read(0, server), Some(Ok(sent.clone())));
                wire.run(SECOND_NS);
            }
        }
        wire.abandon(0, server);
        wire.run(MILLISECOND_NS);
        if is_heard {
            assert_eq!(wire.write(1, client, b"x"), Some(Err(TcpFailure::Reset)));
        }
        wire.abandon(1, client);
        wire.run(SECOND_NS);
        losses += u64::from(!is_read && !is_heard);
        assert_eq!(wire.hosts[1].silent_losses(), losses, "case {port}");
        assert!(!wire.hosts[1].owes_anything());
    }
}

/// A connection that never opened had nothing to lose.
#[test]
fn an_attempt_that_nobody_answers_is_no_loss() {
    let mut wire = Wire::new(24, [settings(); 2]);
    wire.cut();
    let client = wire.connect(50_000).expect("the flow is free");
    wire.run(30 * SECOND_NS);
    wire.abandon(1, client);
    assert_eq!(wire.hosts[1].silent_losses(), 0);
}
