//! Streams are exact on any wire.

use super::wire::{Badness, Wire, settings};
use crate::tcp::connection::TcpSettings;
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed as u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// One direction of a connection.
struct Direction {
    from: usize,
    sender: u32,
    receiver: u32,
    bytes: Vec<u8>,
    written: usize,
    is_closed: bool,
    received: Vec<u8>,
    has_ended: bool,
}

impl Direction {
    /// Writes and reads what is possible.
    fn go_on(&mut self, wire: &mut Wire) {
        while self.written < self.bytes.len() {
            let part = 1 + wire.draw() as usize % 20_000;
            let end = self.bytes.len().min(self.written + part);
            let rest = &self.bytes[self.written..end];
            match wire.write(self.from, self.sender, rest) {
                Some(written) => self.written += written.expect("it is open"),
                None => break,
            }
        }
        if self.written == self.bytes.len() && !self.is_closed {
            self.is_closed = true;
            wire.close(self.from, self.sender);
        }
        // A reader that is sometimes slow, so that windows shut.
        if self.has_ended || wire.draw().is_multiple_of(3) {
            return;
        }
        if let Some(read) = wire.read(1 - self.from, self.receiver) {
            let read = read.expect("it is open");
            self.has_ended = read.is_empty();
            self.received.extend(read);
        }
    }
}

/// Sends bytes both ways, and returns the time that took.
fn exchange(seed: u64, badness: Badness, settings: [TcpSettings; 2], lengths: [usize; 2]) -> u64 {
    let mut wire = Wire::new(seed, settings);
    wire.badness = badness;
    wire.room = 8 + wire.draw() as usize % 250;
    let begun_ns = wire.now_ns;
    let client = wire.connect(49152).expect("the flow is free");
    let server = loop {
        if let Some(server) = wire.accept() {
            break server;
        }
        assert!(
            wire.now_ns < begun_ns + 20 * SECOND_NS,
            "seed {seed}: no handshake"
        );
        wire.run(MILLISECOND_NS / 4);
    };
    let direction = |from: usize, ids: [u32; 2]| Direction {
        from,
        sender: ids[from],
        receiver: ids[1 - from],
        bytes: pattern(lengths[from], seed + from as u64),
        written: 0,
        is_closed: false,
        received: Vec::new(),
        has_ended: false,
    };
    let ids = [server, client];
    let mut directions = [direction(0, ids), direction(1, ids)];
    while directions.iter().any(|direction| !direction.has_ended) {
        assert!(
            wire.now_ns < begun_ns + 600 * SECOND_NS,
            "seed {seed}: it stands still at {:?}",
            directions
                .each_ref()
                .map(|direction| (direction.written, direction.received.len()))
        );
        for direction in &mut directions {
            direction.go_on(&mut wire);
        }
        let step_ns = 1000 + wire.draw() % 100_000;
        wire.run(step_ns);
    }
    for direction in &directions {
        assert!(
            direction.received == direction.bytes,
            "seed {seed}: other bytes"
        );
    }
    let took_ns = wire.now_ns - begun_ns;
    wire.abandon(0, server);
    wire.abandon(1, client);
    wire.badness = Badness::default();
    wire.run(30 * SECOND_NS);
    let counts = [0, 1].map(|host| wire.hosts[host].counts());
    assert_eq!(counts, [(0, 0); 2], "seed {seed}: a connection stays");
    took_ns
}

#[test]
fn both_directions_are_exact_on_a_good_wire() {
    for seed in 0..20 {
        let took_ns = exchange(
            seed,
            Badness::default(),
            [settings(); 2],
            [300_000, 200_000],
        );
        assert!(took_ns < SECOND_NS, "seed {seed}: {took_ns} ns");
    }
}

#[test]
fn both_directions_are_exact_whatever_is_lost_doubled_late_or_corrupt() {
    for seed in 0..150 {
        let bad = |most: u64, part: u64| (seed * 7 + part * 13) % most;
        let badness = Badness {
            lost: bad(150, 1),
            twice: bad(100, 2),
            late: bad(300, 3),
            corrupt: bad(50, 4),
        };
        let other = TcpSettings {
            buffer_bytes: 2000 << (seed % 9),
            mtu: 300 + 200 * (seed as usize % 7),
            ..settings()
        };
        let sides = if seed % 2 == 0 {
            [settings(), other]
        } else {
            [other, settings()]
        };
        exchange(seed, badness, sides, [60_000, 90_000]);
    }
}

/// A loss in a long stream costs a recovery, not a timeout each.
#[test]
fn single_losses_are_recovered_without_timeouts() {
    let time = |lost: u64| {
        let badness = Badness {
            lost,
            ..Badness::default()
        };
        let times = (0..10).map(|seed| exchange(seed, badness, [settings(); 2], [0, 2_000_000]));
        times.sum::<u64>() / 10
    };
    let (good, bad) = (time(0), time(5));
    // Some 1400 segments and 7 losses: seven timeouts of 5 ms alone would be 35 ms.
    assert!(
        bad < good + 40 * MILLISECOND_NS,
        "{good} ns, with losses {bad} ns"
    );
}
