//! One rack in three planes: the policy's step, the user-space switch, and the XDP program. The same packets go through all of them, and fates,
//! servers, bytes, counts and registers are compared.
//!
//! One difference is by design: each switch gives a request its own index, which its server's packets carry. What it must be is
//! [foretold](indices).

mod addresses;
mod agree;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod cpus;
mod frames;
mod indices;
mod odd;
mod windows;

use addresses::{CLIENTS_SIDE, Family, ifindex_of, server_mac};
use common::*;
use copies::{CopiesOut, role_of};
use cpus::CpuShapers;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::slot::Peer;
use headway_policy::rack::{
    Cloning, Demand, Forward, Grouping, Mark, Overflow, Packet, RackLayout, Reply, ServerId,
    Shaper, Turns,
};
use headway_policy::{ClassHint, ClassId};
use headway_rack::{
    LocalAddress, PacketSink, RackSwitch, ReceivedPacket, ServerAddresses, ServerInterfaces,
    SwitchLimits,
};
use headway_xdp::{
    Mode, Neighbour, Registers, RunPacket, TypeRegisters, XdpSwitch, XdpSwitchConfig, tables_of,
};
use indices::Indices;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const SERVERS: usize = 6;
const CORES: usize = 4;
const TYPES: usize = 5;
const TYPE_BYTES: [u8; TYPES] = [0, 1, 2, 3, 4];
const PORT: u16 = 7777;
const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The most requests under way, so that neither switch runs out of room.
const UNDER_WAY: usize = 500;

#[derive(Default)]
struct Sent(Vec<(SocketAddr, Vec<u8>)>);

impl PacketSink for Sent {
    fn send(&mut self, _from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        let datagram = [&header[..], body].concat();
        self.0.push((to.socket_addr(), datagram));
    }
}

/// A copy of a request at a server, with its index in each plane.
#[derive(Clone)]
struct UnderWay {
    frame: Frame,
    class: ClassId,
    server: usize,
    mark: Mark,
    copies: Rc<CopiesOut>,
    /// Its index in the policy's step, which takes an index.
    policy_index: u32,
    /// None before the user-space switch has given it one.
    user_index: Option<u32>,
    xdp_index: u32,
}

/// The expected counts of packets that fail below UDP's payload, which the user-space switch never sees.
#[derive(Default)]
struct Below {
    truncated: u64,
    fragment: u64,
    options: u64,
}

struct Planes {
    family: Family,
    /// Its turns and averages are the present CPU's.
    policy: Shaper,
    user: RackSwitch<Shaper>,
    xdp: XdpSwitch,
    cpus: CpuShapers,
    indices: Indices,
    rng: Pcg64Mcg,
    under_way: Vec<UnderWay>,
    done: Vec<UnderWay>,
    below: Below,
    now_ns: u64,
    requests: u32,
    overflow: Overflow,
}

/// A window of 115 days, which ends when the test [says so](Planes::pass_window).
const WINDOW_NS: u64 = 10_000_000_000_000_000;
/// Execution times of which a few hundred fill a window.
const NS_PER_UNIT: f64 = 1e13;

/// What becomes of requests in excess.
type Excess = (Cloning, Overflow);

fn shaper(cloning: Cloning, overflow: Overflow) -> Shaper {
    // No two requests of a test share a register.
    Shaper::new(TYPES, SERVERS * CORES, Turns::Even, cloning, 1 << 20)
        .overflowing(SERVERS, overflow)
}

/// Installs one of several layouts, chosen by `number`.
fn install(shaper: &mut Shaper, number: u32) {
    let hint = |mean: f64, share| ClassHint::new(mean * NS_PER_UNIT, share);
    let types: Vec<_> = (0..TYPES)
        .map(|class| hint(4.0 * f64::from(3 + number % 2).powi(class as i32), 0.2))
        .collect();
    let demand = Demand::declared(&types);
    let cores = SERVERS * CORES;
    let (groups, totals): (&[u16], Vec<usize>) = match number % 3 {
        0 => (&[0, 0, 1, 1, 2], vec![5, 7, cores - 12]),
        1 => (&[0, 0, 0, 0, 0], vec![cores]),
        _ => (&[0, 1, 2, 3, 3], vec![3, 1, 9, cores - 13]),
    };
    let from = vec![None; totals.len()];
    let layout = RackLayout::new(&[CORES; SERVERS], 1).updated(&totals, &from);
    shaper.install(&Grouping::new(groups, &demand), &layout, &demand);
}

fn config(family: Family, cloning: Cloning, overflow: Overflow) -> XdpSwitchConfig {
    XdpSwitchConfig {
        own_ip4: match family.own().ip() {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        },
        own_ip6: match family.own().ip() {
            IpAddr::V4(_) => None,
            IpAddr::V6(ip) => Some(ip),
        },
        port: PORT,
        types: TYPES as u16,
        mode: Mode::Nat,
        cloning,
        overflows: overflow != Overflow::Off,
        unfinished_checksums: false,
        answer: Duration::from_secs(3600),
    }
}

impl Planes {
    fn new(object: &[u8], family: Family, excess: Excess, seed: u64) -> Self {
        Self::on_cpus(object, family, excess, (seed, &[0]))
    }

    /// Packets come to the first of these CPUs, until they come to others.
    fn on_cpus(
        object: &[u8],
        family: Family,
        excess: Excess,
        (seed, cpus): (u64, &[usize]),
    ) -> Self {
        stay_on_cpu(cpus[0]);
        let (cloning, overflow) = excess;
        let mut xdp =
            XdpSwitch::load(object, &config(family, cloning, overflow)).expect("the program loads");
        for ifindex in [CLIENTS_SIDE]
            .into_iter()
            .chain((0..SERVERS).map(ifindex_of))
        {
            xdp.set_address(ifindex, OWN_MAC).expect("there is room");
        }
        let indices = Indices::of(&mut xdp);
        let servers: Vec<_> = (0..SERVERS).map(|number| family.server(number)).collect();
        let addresses = ServerAddresses::new(&servers).expect("servers");
        let interfaces = ServerInterfaces::unknown(SERVERS);
        for number in 0..SERVERS {
            interfaces.set(ServerId(number as u16), ifindex_of(number));
        }
        let mut user = RackSwitch::new(
            shaper(cloning, overflow),
            family.own().into(),
            addresses,
            SwitchLimits {
                index_seed: indices.seed(),
                ..SwitchLimits::new(TYPES)
            },
        );
        user.hear_servers_by(Arc::new(interfaces));
        let mut planes = Self {
            family,
            policy: shaper(cloning, overflow),
            user,
            xdp,
            cpus: CpuShapers::of(cpus, excess),
            indices,
            rng: Pcg64Mcg::new(u128::from(seed) << 1 | 1),
            under_way: Vec::new(),
            done: Vec::new(),
            below: Below::default(),
            now_ns: 1,
            requests: 0,
            overflow,
        };
        planes.change_tables(0);
        planes
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.next_u32() % bound
    }

    fn change_tables(&mut self, number: u32) {
        // The program counts what servers have by the groups of the time of sending, so the groups stay where that matters.
        let number = if self.overflow == Overflow::Off {
            number
        } else {
            3 * number
        };
        self.on_each_cpu(|planes| {
            // A counter of turns wraps only in use, so every counter is used between two tables.
            if number > 0 {
                (0..=TYPES as u8).for_each(|class| planes.request(class));
            }
        });
        self.on_each_cpu(|planes| {
            install(&mut planes.policy, number);
            install(planes.user.policy(), number);
        });
        let neighbours: Vec<_> = (0..SERVERS)
            .map(|server| Neighbour {
                address: self.family.server(server),
                mac: server_mac(server),
                ifindex: ifindex_of(server),
                own_mac: OWN_MAC,
            })
            .collect();
        let tables = tables_of(&self.policy, TYPES, &TYPE_BYTES, &neighbours).expect("they fit");
        self.xdp.publish(&tables).expect("published");
    }

    /// A frame to the switch with random tags, macs and checksum.
    fn frame(&mut self, from: SocketAddr, from_mac: [u8; 6], payload: Vec<u8>) -> Frame {
        let has_checksum = self.family == Family::Ip6 || self.below(8) > 0;
        Frame {
            to_mac: OWN_MAC,
            from_mac,
            tags: self.below(6).saturating_sub(3) as usize,
            from,
            to: self.family.own(),
            has_checksum,
            payload,
        }
    }

    fn body(&mut self) -> Vec<u8> {
        (0..self.below(80))
            .map(|_| self.rng.next_u32() as u8)
            .collect()
    }

    fn client_frame(&mut self, header: Header) -> Frame {
        let client = self.below(200);
        let body = self.body();
        let payload = [&header.encode()[..], &body].concat();
        let mac = [2, 0, 0, 0, 2, client as u8];
        self.frame(self.family.client(client), mac, payload)
    }

    fn user_step(&mut self, by: u32, frame: &Frame) -> Vec<(SocketAddr, Vec<u8>)> {
        self.now_ns += 700;
        let mut sent = Sent::default();
        let packet = ReceivedPacket {
            interface: by,
            ..ReceivedPacket::of(frame.from.into(), &frame.payload)
        };
        self.user.step(self.now_ns, packet, &mut sent);
        sent.0
    }

    fn xdp_run(&mut self, by: u32, bytes: &[u8]) -> RunPacket {
        self.xdp.run_from(by, bytes, 1).expect("the packet runs")
    }

    /// A client's request of this type byte, with random bits in its flag.
    fn request(&mut self, class: u8) {
        let flag = self.rng.next_u32() as u8 & 0b1011_1011;
        let header = Header {
            class,
            flag: Flag::from_bits(flag),
            index: self.rng.next_u32(),
            time_ns: self.rng.next_u32(),
        };
        let frame = self.client_frame(header);
        let class = ClassId(u16::from(class).min(TYPES as u16));
        self.requests += 1;
        let packet = Packet::new(class, self.requests);
        let first = UnderWay {
            frame,
            class,
            server: 0,
            mark: Mark::Plain,
            copies: Rc::new(CopiesOut::new(1)),
            policy_index: self.requests,
            user_index: None,
            xdp_index: self
                .indices
                .next_in_kernel(self.cpus.present(), &self.under_way),
        };
        match self.policy.request(self.now_ns, packet) {
            Forward::To(server) => {
                let frame = first.frame.clone();
                let server = server.index();
                self.reaches_server(UnderWay { server, ..first }, (CLIENTS_SIDE, &frame, &frame));
            }
            Forward::Both(original, clone) => {
                self.reaches_both(&first, [original.index(), clone.index()]);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Shows the packet to each plane, checks that it reaches the server that the policy chose, and records it as under way.
    /// `came` is the interface by which the packet comes, and the packet in user space and in the kernel.
    fn reaches_server(&mut self, mut at: UnderWay, came: (u32, &Frame, &Frame)) {
        let (by, user_in, xdp_in) = came;
        let sent = self.user_step(by, user_in);
        let ran = self.xdp_run(by, &xdp_in.bytes());
        let [(to, datagram)] = &sent[..] else {
            panic!("the user-space switch sent {sent:?}");
        };
        assert_eq!(*to, self.family.server(at.server), "policy and user space");
        self.has_index(&mut at, datagram);
        let expected = self.expected_at_server(&at, datagram, xdp_in);
        let action = leaves_by(by, ifindex_of(at.server));
        assert_eq!((ran.action, ran.order), (action, None));
        assert_eq!(ran.bytes, expected.bytes(), "user space and XDP");
        self.under_way.push(at);
    }

    /// Checks the index that the user-space switch gave a request; one that was handed back keeps it.
    fn has_index(&mut self, at: &mut UnderWay, datagram: &[u8]) {
        let index = Header::parse(datagram).expect("a header").0.index;
        match at.user_index {
            Some(before) => assert_eq!(index, before),
            None => self.indices.given_in_user(index, &self.under_way),
        }
        at.user_index = Some(index);
    }

    /// The frame that the server must get: the user-space switch's datagram with the program's index.
    fn expected_at_server(&self, at: &UnderWay, datagram: &[u8], xdp_in: &Frame) -> Frame {
        let mut payload = datagram.to_vec();
        payload[2..6].copy_from_slice(&at.xdp_index.to_be_bytes());
        Frame {
            to_mac: server_mac(at.server),
            from_mac: OWN_MAC,
            from: self.family.own(),
            to: self.family.server(at.server),
            payload,
            ..xdp_in.clone()
        }
    }

    /// Shows each plane a server's packet about the request.
    fn packet_of_server(&mut self, at: &UnderWay, from: SocketAddr, flag: Flag) -> (Frame, Frame) {
        let time_ns = match self.below(10) {
            0 => 0,
            1 => self.rng.next_u32(),
            _ => 1_000 + self.below(100_000),
        };
        let header = |index| Header {
            class: at.frame.payload[0],
            flag,
            index,
            time_ns,
        };
        let body = self.body();
        let payload = |index| [&header(index).encode()[..], &body].concat();
        let user = self.frame(
            from,
            server_mac(at.server),
            payload(at.user_index.expect("it has one")),
        );
        let xdp = Frame {
            payload: payload(at.xdp_index),
            ..user.clone()
        };
        (user, xdp)
    }

    fn response(&mut self, number: usize) {
        let at = self.under_way.swap_remove(number);
        let status = [
            Status::Ok,
            Status::Ok,
            Status::Shed,
            Status::Error,
            Status::Draining,
        ];
        let status = status[self.below(5) as usize];
        // Bit 7 is reserved, bit 6 without meaning in a response; a clone role of 3 reads as none.
        let noise = self.rng.next_u32() as u8 & 0b1100_0000;
        let is_plain = at.mark == Mark::Plain;
        let role = if is_plain && self.below(20) == 0 {
            3
        } else {
            role_of(at.mark) as u8
        };
        let flag = Flag::from_bits(Flag::response(status).bits() | noise | role);
        let (user_in, xdp_in) = self.packet_of_server(&at, self.family.server(at.server), flag);
        let by = ifindex_of(at.server);
        let sent = self.user_step(by, &user_in);
        let ran = self.xdp_run(by, &xdp_in.bytes());
        let was_served = status != Status::Shed && status != Status::Draining;
        at.copies.came_back();
        let is_refused = !was_served && !is_plain && at.copies.others_answer();
        let time_ns = Header::parse(&user_in.payload).expect("a header").0.time_ns;
        if was_served && time_ns > 0 {
            self.cpus.averaged(at.class);
        }
        let passes = self.policy.reply(&Reply {
            server: ServerId(at.server as u16),
            class: at.class,
            index: at.policy_index,
            mark: if is_refused { Mark::Plain } else { at.mark },
            execution_ns: if was_served { u64::from(time_ns) } else { 0 },
            queue: 0,
        });
        if is_refused || !passes {
            assert_eq!((sent, ran.action), (vec![], DROP));
        } else {
            at.copies.answer();
            let [(to, datagram)] = &sent[..] else {
                panic!("the user-space switch sent {sent:?}");
            };
            assert_eq!(*to, at.frame.from);
            let expected = Frame {
                to_mac: at.frame.from_mac,
                from_mac: OWN_MAC,
                from: self.family.own(),
                to: *to,
                payload: datagram.clone(),
                ..xdp_in
            };
            let action = leaves_by(by, CLIENTS_SIDE);
            assert_eq!((ran.action, ran.bytes), (action, expected.bytes()));
        }
        self.done.push(at);
        if self.done.len() > 64 {
            self.done.remove(0);
        }
    }

    /// A request's server hands it back.
    fn bounce(&mut self, number: usize) {
        let mut at = self.under_way.swap_remove(number);
        let flag = Flag::REQUEST
            .with_bounced(true)
            .with_clone_role(role_of(at.mark));
        let (user_in, xdp_in) = self.packet_of_server(&at, self.family.server(at.server), flag);
        let packet = Packet {
            bounced: true,
            mark: at.mark,
            ..Packet::new(at.class, at.policy_index)
        };
        self.policy.reply(&Reply {
            server: ServerId(at.server as u16),
            class: at.class,
            index: at.policy_index,
            mark: Mark::Plain,
            execution_ns: 0,
            queue: 0,
        });
        let Forward::To(server) = self.policy.request(self.now_ns, packet) else {
            panic!("one copy");
        };
        let by = ifindex_of(at.server);
        at.server = server.index();
        self.reaches_server(at, (by, &user_in, &xdp_in));
    }

    /// A datagram that both switches drop.
    fn dropped(&mut self, by: u32, user_in: &Frame, xdp_in: &Frame) {
        let sent = self.user_step(by, user_in);
        assert_eq!(sent, []);
        let bytes = xdp_in.bytes();
        let ran = self.xdp_run(by, &bytes);
        assert_eq!((ran.action, ran.bytes), (DROP, bytes));
    }

    fn dropped_alike(&mut self, frame: &Frame) {
        self.dropped(CLIENTS_SIDE, frame, frame);
    }

    fn step(&mut self) {
        match self.below(100) {
            0..=2 => self.odd_packet(),
            3..=5 => self.odd_datagram(),
            _ if self.under_way.len() >= UNDER_WAY => self.response(0),
            6..=9 if !self.under_way.is_empty() => {
                let number = self.below(self.under_way.len() as u32) as usize;
                self.bounce(number);
            }
            10..=49 if !self.under_way.is_empty() => {
                let number = self.below(self.under_way.len() as u32) as usize;
                self.response(number);
            }
            _ => {
                let class = match self.below(20) {
                    0 => 255,
                    1 => self.rng.next_u32() as u8,
                    _ => self.below(TYPES as u32) as u8,
                };
                self.request(class);
            }
        }
    }

    /// Checks that counts and registers agree.
    fn compare_registers(&mut self) {
        let registers = self.xdp.registers().expect("registers");
        let Registers { counts, types, .. } = registers;
        for (number, of_server) in registers.servers.iter().enumerate().take(SERVERS) {
            let of_user = self.user.unanswered(ServerId(number as u16));
            assert_eq!(
                of_server.unanswered(),
                u64::from(of_user),
                "server {number}"
            );
        }
        let user = *self.user.counts();
        let mut overflowed = 0;
        self.on_each_cpu(|planes| overflowed += planes.policy.monitor().overflows());
        let of_user = [
            ("requests", user.requests),
            ("answered", user.answered),
            ("cloned", user.cloned),
            ("filtered", user.filtered),
            ("copies_refused", user.copies_refused),
            ("bounced", user.bounced),
            ("shed", user.shed),
            ("expired", user.expired),
            ("truncated", user.truncated + self.below.truncated),
            ("too_long", user.too_long),
            ("unexpected", user.unexpected),
            ("spoofed", user.spoofed),
            ("wrong_side", user.wrong_side),
            ("unknown_type", user.unknown_type),
            ("fragment", self.below.fragment),
            ("options", self.below.options),
            ("other_family", 0),
            ("overflowed", overflowed),
            ("lost", user.lost),
            ("no_server", 0),
            ("hidden_tag", 0),
        ];
        assert_eq!(counts.named(), of_user);
        self.compare_types(&types);
    }

    /// Checks the requests and the execution times by type: the program's are the mean over the CPUs, by the responses that each has averaged.
    fn compare_types(&mut self, types: &[TypeRegisters]) {
        let mut count = vec![0; types.len()];
        let mut weighted = vec![(0, 0); types.len()];
        self.on_each_cpu(|planes| {
            let policy = planes.policy.monitor().readings().to_vec();
            assert_eq!(planes.user.policy().monitor().readings(), policy);
            for (class, reading) in policy.iter().enumerate() {
                let responses = planes.cpus.responses(class);
                count[class] += reading.count;
                weighted[class].0 += u128::from(reading.execution_ns) * u128::from(responses);
                weighted[class].1 += responses;
            }
        });
        for (class, of_type) in types.iter().enumerate() {
            let (sum, responses) = weighted[class];
            let execution_ns = (sum / u128::from(responses.max(1))) as u64;
            assert_eq!(
                (of_type.count, of_type.execution_ns),
                (count[class], execution_ns)
            );
        }
    }
}

/// The program's verdict on a packet that comes by one interface and leaves by another, or by the same.
fn leaves_by(came_by: u32, leaves_by: u32) -> u32 {
    if came_by == leaves_by { TX } else { REDIRECT }
}
