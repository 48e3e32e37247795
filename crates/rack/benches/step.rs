//! The switch's time per packet, without a socket: a request in and out, and its response in and out.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::slot::Peer;
use headway_policy::ClassHint;
use headway_policy::rack::{
    Cloning, ControlPlane, ControlRules, Reported, RoundRobinSwitch, Shaper, ShortestSwitch,
    Switch, Turns,
};
use headway_rack::{
    LocalAddress, PacketSink, RackSwitch, ReceivedPacket, ServerAddresses, SwitchLimits,
};
use std::net::SocketAddr;

/// Copies the packets of one batch, as the socket's sink does.
struct Batch {
    packets: Vec<(Peer, [u8; 64])>,
    filled: usize,
}

impl PacketSink for Batch {
    #[inline]
    fn send(&mut self, _from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        let (at, bytes) = &mut self.packets[self.filled];
        *at = to;
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        bytes[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
        self.filled += 1;
    }
}

const BATCH: usize = 64;
const BODY: &[u8] = b"sixteen bytes...";
const BYTES: usize = HEADER_BYTES + 16;

fn per_packet<S: Switch>(criterion: &mut Criterion, name: &str, policy: S) {
    let servers: Vec<SocketAddr> = (0..8)
        .map(|n| SocketAddr::from(([10, 0, 0, n + 1], 7000)))
        .collect();
    let addresses = ServerAddresses::new(&servers).expect("eight servers");
    let own = Peer::from(SocketAddr::from(([10, 0, 0, 100], 7000)));
    let mut switch = RackSwitch::new(policy, own, addresses, SwitchLimits::new(2));
    let clients: Vec<Peer> = (0..BATCH as u16)
        .map(|n| Peer::from(SocketAddr::from(([10, 0, 1, 1], 1024 + n))))
        .collect();
    let requests: Vec<[u8; BYTES]> = (0..BATCH as u32)
        .map(|index| {
            let header = Header {
                class: u8::from(index % 10 == 0),
                flag: Flag::REQUEST,
                index,
                time_ns: 0,
            };
            let mut bytes = [0; BYTES];
            bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
            bytes[HEADER_BYTES..].copy_from_slice(BODY);
            bytes
        })
        .collect();
    let batch = || Batch {
        packets: vec![(Peer::NOBODY, [0; 64]); 2 * BATCH],
        filled: 0,
    };
    let (mut sent, mut answered) = (batch(), batch());
    let mut now_ns = 0;
    let mut group = criterion.benchmark_group("step");
    group.throughput(Throughput::Elements(2 * BATCH as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            now_ns += 100_000;
            (sent.filled, answered.filled) = (0, 0);
            for (client, request) in clients.iter().zip(&requests) {
                switch.step(now_ns, ReceivedPacket::of(*client, request), &mut sent);
            }
            // The servers' part: turns the request into its response.
            for (server, bytes) in &mut sent.packets[..sent.filled] {
                bytes[1] = Flag::response(Status::Ok).bits();
                let response = ReceivedPacket::of(*server, &bytes[..BYTES]);
                switch.step(now_ns, response, &mut answered);
            }
        });
    });
    assert_eq!(answered.filled, BATCH, "every request is answered");
}

fn steps(criterion: &mut Criterion) {
    let types = [ClassHint::new(10e3, 0.9), ClassHint::new(100e3, 0.1)];
    let mut control = ControlPlane::new(&[10; 8], &types, ControlRules::default());
    control.choose(&[2.0, 1.0]);
    let mut shaper = Shaper::new(2, 80, Turns::Even, Cloning::Longer(20_000), 1 << 17);
    control.install(&mut shaper);
    per_packet(criterion, "pallas, 8 servers", shaper);
    per_packet(
        criterion,
        "round-robin, 8 servers",
        RoundRobinSwitch::new(8),
    );
    let racksched = ShortestSwitch::new(8, Reported::AndSent, 0, 1);
    per_packet(criterion, "racksched, 8 servers", racksched);
}

criterion_group!(benches, steps);
criterion_main!(benches);
