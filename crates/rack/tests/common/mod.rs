//! A rack of addresses for tests of the switch without sockets.
#![allow(dead_code, reason = "each test uses a part of it")]

use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::slot::Peer;
use headway_policy::ClassHint;
use headway_policy::rack::{RackShape, RackSystem, RackVisit};
use headway_policy::rack::{Switch, systems};
use headway_rack::{
    LocalAddress, PacketSink, RackSwitch, ReceivedPacket, ServerAddresses, SwitchLimits,
};
use std::net::SocketAddr;

/// The switch's packets, in order.
#[derive(Default)]
pub(crate) struct Sent(pub(crate) Vec<(SocketAddr, Vec<u8>)>);

impl PacketSink for Sent {
    fn send(&mut self, _from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        self.0
            .push((to.socket_addr(), [&header[..], body].concat()));
    }
}

/// Cores of each server.
pub(crate) const CORES: usize = 2;
/// Requests that a switch may hold.
pub(crate) const ROOM: usize = 8;

pub(crate) fn server(number: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 7000 + number))
}

pub(crate) fn client(number: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 9000 + number))
}

pub(crate) fn own() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 9], 7777))
}

/// The visitor's policy, boxed to erase its type.
pub(crate) fn policy(spec: &str, servers: usize) -> Box<dyn Switch + Send> {
    struct Boxed;
    impl RackVisit for Boxed {
        type Output = Box<dyn Switch + Send>;
        fn visit<S: Switch + Send + 'static>(self, mut system: RackSystem<S>) -> Self::Output {
            if let (Some(control), Some(shaper)) = (&mut system.control, system.switch.shaper()) {
                // As many groups as types.
                let candidates = control.candidates().len();
                let scores: Vec<f64> = (0..candidates).rev().map(|score| score as f64).collect();
                control.choose(&scores);
                control.install(shaper);
            }
            Box::new(system.switch)
        }
    }
    let shape = RackShape {
        cores: vec![CORES; servers],
        types: vec![ClassHint::new(10e3, 0.9), ClassHint::new(90e3, 0.1)],
        room: ROOM,
        seed: 1,
    };
    systems::with(&spec.parse().expect(spec), &shape, Boxed).expect(spec)
}

/// A boxed policy, as a policy.
pub(crate) struct Dynamic(pub(crate) Box<dyn Switch + Send>);

mod forwarding {
    use super::Dynamic;
    use headway_policy::rack::{Forward, LaidOutTables, Packet, Reply, ServerId, Shaper, Switch};

    impl Switch for Dynamic {
        fn request(&mut self, now_ns: u64, packet: Packet) -> Forward {
            self.0.request(now_ns, packet)
        }
        fn reply(&mut self, now_ns: u64, reply: &Reply) -> bool {
            self.0.reply(now_ns, reply)
        }
        fn release(&mut self) -> Option<(ServerId, Packet)> {
            self.0.release()
        }
        fn capacity(&mut self, server: ServerId, cores: usize) {
            self.0.capacity(server, cores);
        }
        fn may_send(&self, server: ServerId) -> bool {
            self.0.may_send(server)
        }
        fn grow(&mut self, held: usize) {
            self.0.grow(held);
        }
        fn held(&self) -> usize {
            self.0.held()
        }
        fn compares_queues(&self) -> bool {
            self.0.compares_queues()
        }
        fn shaper(&mut self) -> Option<&mut Shaper> {
            self.0.shaper()
        }
        fn install(&mut self, tables: &LaidOutTables<'_>) {
            self.0.install(tables);
        }
    }
}

/// A switch over a number of servers.
pub(crate) fn switch(spec: &str, servers: u16) -> RackSwitch<Dynamic> {
    let limits = SwitchLimits {
        held: ROOM,
        nat_bits: 6,
        ..SwitchLimits::new(2)
    };
    switch_within(spec, servers, limits)
}

pub(crate) fn switch_within(spec: &str, servers: u16, limits: SwitchLimits) -> RackSwitch<Dynamic> {
    let policy = Dynamic(policy(spec, usize::from(servers)));
    let addresses: Vec<SocketAddr> = (0..servers).map(server).collect();
    let addresses = ServerAddresses::new(&addresses).expect("servers");
    RackSwitch::new(policy, own().into(), addresses, limits)
}

pub(crate) fn request(class: u8, index: u32, body: &[u8]) -> Vec<u8> {
    let header = Header {
        class,
        flag: Flag::REQUEST,
        index,
        time_ns: 0xABCD,
    };
    [&header.encode()[..], body].concat()
}

/// A server's response to a request that it was sent.
pub(crate) fn response(request: &[u8], status: Status, execution_ns: u64, body: &[u8]) -> Vec<u8> {
    let (header, _) = Header::parse(request).expect("a request");
    let header = header.response(status, execution_ns);
    [&header.encode()[..], body].concat()
}

pub(crate) fn header(datagram: &[u8]) -> Header {
    Header::parse(datagram).expect("a header").0
}

/// Passes one datagram through the switch.
pub(crate) fn pass(
    switch: &mut RackSwitch<Dynamic>,
    now_ns: u64,
    from: SocketAddr,
    datagram: &[u8],
) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Sent::default();
    switch.step(now_ns, ReceivedPacket::of(from.into(), datagram), &mut sent);
    sent.0
}
