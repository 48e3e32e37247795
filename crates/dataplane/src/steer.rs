//! The application of a frame, by the frame's addresses, and the frame's flow. The policy's [`FlowSteering`] chooses the kthread by the flow.

use std::collections::HashMap;

use headway_policy::host::{FlowPlace, FlowSteering};
use headway_xsk::{HostAddress, MacAddress};

use crate::toeplitz;

/// An application in the data plane. Its index is its number.
#[derive(Debug, Clone, Copy)]
struct AttachedHost {
    address: HostAddress,
    flows: FlowSteering,
}

/// The destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LanePlace {
    /// The application's number.
    pub application: usize,
    /// The kthread.
    pub kthread: usize,
    /// Whether that kthread has a core. If not, no kthread has one, and the daemon must wake the application.
    pub is_active: bool,
}

/// Applications by their addresses, and their kthreads with a core.
#[derive(Debug, Default)]
pub struct FrameSteering {
    applications: Vec<Option<AttachedHost>>,
    by_mac: HashMap<[u8; 6], usize>,
    by_ip: HashMap<[u8; 4], usize>,
}

/// The parts of a frame that the steering reads.
pub(crate) const ETHERNET_BYTES: usize = 14;
const TYPE_IP4: [u8; 2] = [0x08, 0x00];
const TYPE_ARP: [u8; 2] = [0x08, 0x06];
/// The head of an ARP packet for IPv4 on Ethernet: its two kinds of address, and their lengths.
const ARP_FOR_IP4: [u8; 6] = [0, 1, 8, 0, 6, 4];

impl FrameSteering {
    /// A steering without applications.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an application whose kthreads have no core yet, and returns its number, the first free one. `None` when another application has the address, or
    /// `kthreads` is 0 or above [`MOST_KTHREADS`](headway_policy::host::MOST_KTHREADS).
    pub fn attach(&mut self, address: HostAddress, kthreads: usize) -> Option<usize> {
        let (mac, ip) = (address.mac.0, address.ip.octets());
        let is_taken = self.by_mac.contains_key(&mac) || self.by_ip.contains_key(&ip);
        if is_taken || address.mac.is_group() {
            return None;
        }
        let flows = FlowSteering::new(kthreads)?;
        let free = self.applications.iter().position(Option::is_none);
        let number = free.unwrap_or(self.applications.len());
        if number == self.applications.len() {
            self.applications.push(None);
        }
        self.applications[number] = Some(AttachedHost { address, flows });
        self.by_mac.insert(mac, number);
        self.by_ip.insert(ip, number);
        Some(number)
    }

    /// Removes an application; returns its address.
    pub fn detach(&mut self, number: usize) -> Option<HostAddress> {
        let address = self.applications.get_mut(number)?.take()?.address;
        self.by_mac.remove(&address.mac.0);
        self.by_ip.remove(&address.ip.octets());
        Some(address)
    }

    /// Sets which kthreads of an application have a core, one bit each. Bits beyond its kthreads are ignored.
    pub fn set_active(&mut self, number: usize, active: u64) {
        if let Some(Some(application)) = self.applications.get_mut(number) {
            application.flows.set_active(active);
        }
    }

    /// Kthreads of an application that have a core, one bit each.
    #[must_use]
    pub fn active(&self, number: usize) -> u64 {
        let application = self.applications.get(number).copied().flatten();
        application.map_or(0, |application| application.flows.active())
    }

    /// Whether this application may send the frame: it is IPv4 or ARP, and says nothing of its sender but the application's own addresses. An application has no IPv6
    /// address, so it sends neither IPv6 nor neighbour discovery; and frames of other types, VLAN tags among them, could hold either.
    #[inline]
    #[must_use]
    pub fn may_send(&self, number: usize, frame: &[u8]) -> bool {
        let application = self.applications.get(number).and_then(Option::as_ref);
        application.is_some_and(|application| is_from(application.address, frame))
    }

    /// The application that a frame is for: by its Ethernet address, or, for a broadcast ARP request, by the requested IPv4 address.
    #[inline]
    #[must_use]
    pub fn application_of(&self, frame: &[u8]) -> Option<usize> {
        let to = frame.first_chunk::<6>()?;
        if !MacAddress(*to).is_group() {
            return self.by_mac.get(to).copied();
        }
        let is_arp = frame.get(12..14)? == TYPE_ARP;
        let asked = frame.get(38..42)?.first_chunk::<4>()?;
        self.by_ip.get(asked).copied().filter(|_| is_arp)
    }

    /// The destination of a frame; `None` when it is for no application here.
    #[inline]
    #[must_use]
    pub fn steer(&self, frame: &[u8]) -> Option<LanePlace> {
        let number = self.application_of(frame)?;
        let application = self.applications[number].as_ref()?;
        let FlowPlace { kthread, is_active } = application.flows.steer(flow_hash(frame));
        Some(LanePlace {
            application: number,
            kthread: kthread.index(),
            is_active,
        })
    }
}

/// Whether every address that a frame gives for its sender is this one.
#[inline]
fn is_from(address: HostAddress, frame: &[u8]) -> bool {
    let (mac, ip) = (address.mac.0, address.ip.octets());
    if frame.get(6..12) != Some(&mac) {
        return false;
    }
    let packet = frame.get(ETHERNET_BYTES..).unwrap_or_default();
    match frame.get(12..ETHERNET_BYTES) {
        Some(kind) if kind == TYPE_IP4 => {
            packet.first().is_some_and(|first| first >> 4 == 4) && packet.get(12..16) == Some(&ip)
        }
        // A probe for an address that nobody should have names no sender (RFC 5227).
        Some(kind) if kind == TYPE_ARP => {
            packet.get(..6) == Some(&ARP_FOR_IP4)
                && packet.get(8..14) == Some(&mac)
                && packet
                    .get(14..18)
                    .is_some_and(|from| from == ip || from == [0; 4])
        }
        _ => false,
    }
}

/// The hash of an IPv4 packet's flow: with ports for whole TCP and UDP packets, else of the addresses, so that fragments stay together; 0 for other frames.
#[inline]
#[must_use]
pub fn flow_hash(frame: &[u8]) -> u32 {
    const IP4_BYTES: usize = 20;
    let Some(packet) = frame.get(ETHERNET_BYTES..) else {
        return 0;
    };
    if frame[12..14] != TYPE_IP4 || packet.len() < IP4_BYTES || packet[0] >> 4 != 4 {
        return 0;
    }
    let is_whole = packet[6] & 0x3f == 0 && packet[7] == 0;
    let header = usize::from(packet[0] & 0x0f) * 4;
    let ports = packet.get(header..header + 4);
    let mut flow = [0; 12];
    flow[..8].copy_from_slice(&packet[12..20]);
    match ports.filter(|_| is_whole && matches!(packet[9], 6 | 17) && header >= IP4_BYTES) {
        Some(ports) => {
            flow[8..].copy_from_slice(ports);
            toeplitz::hash(&flow)
        }
        None => toeplitz::hash(&flow[..8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::host::MOST_KTHREADS;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn host(last: u8) -> HostAddress {
        HostAddress {
            mac: MacAddress([2, 0, 0, 0, 9, last]),
            ip: Ipv4Addr::new(10, 0, 0, last),
        }
    }

    /// A UDP packet to a host, from a port.
    fn datagram(to: u8, port: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 9, to, 2, 0, 0, 0, 1, 1, 8, 0, 0x45];
        frame.resize(14 + 28, 0);
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..34].copy_from_slice(&[10, 0, 0, to]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[36..38].copy_from_slice(&[0, 80]);
        frame
    }

    /// A UDP packet from a host to host 1.
    fn datagram_from(from: u8) -> Vec<u8> {
        let mut frame = datagram(1, 1);
        frame[6..12].copy_from_slice(&host(from).mac.0);
        frame[26..30].copy_from_slice(&host(from).ip.octets());
        frame
    }

    /// An ARP packet in which host 2 says that an address is at an Ethernet address.
    fn arp(mac: [u8; 6], ip: [u8; 4]) -> Vec<u8> {
        let head = [
            &[0xff; 6][..],
            &host(2).mac.0,
            &TYPE_ARP,
            &ARP_FOR_IP4,
            &[0, 2],
        ]
        .concat();
        [&head[..], &mac, &ip, &[0; 10]].concat()
    }

    #[test]
    fn no_frame_names_another_as_its_sender() {
        let mut steering = FrameSteering::new();
        let number = steering.attach(host(2), 1).unwrap();
        let may_send = |frame: &[u8]| steering.may_send(number, frame);
        let changed = |at: usize, byte: u8| {
            let mut frame = datagram_from(2);
            frame[at] = byte;
            frame
        };
        assert!(may_send(&datagram_from(2)));
        assert!(!may_send(&changed(29, 3)), "a neighbour's IPv4 address");
        assert!(!may_send(&changed(11, 3)), "a neighbour's Ethernet address");
        assert!(!may_send(&changed(12, 0x86)), "another type");
        assert!(!may_send(&changed(14, 0x65)), "another version of IP");
        let (own, other) = (host(2), host(3));
        assert!(may_send(&arp(own.mac.0, own.ip.octets())));
        assert!(may_send(&arp(own.mac.0, [0; 4])), "a probe");
        assert!(!may_send(&arp(own.mac.0, other.ip.octets())), "poison");
        assert!(!may_send(&arp(other.mac.0, own.ip.octets())));
        assert!(!may_send(&arp(other.mac.0, other.ip.octets())));
        let mut odd = arp(own.mac.0, own.ip.octets());
        odd[19] = 16;
        assert!(!may_send(&odd), "addresses of other lengths lie elsewhere");
        // Neighbour discovery, and either packet behind a VLAN tag.
        let ip6 = [&datagram_from(2)[..12], &[0x86, 0xdd, 0x60], &[0; 60]].concat();
        assert!(!may_send(&ip6));
        for kind in [[0x81, 0], [0x88, 0xa8]] {
            let frame = arp(own.mac.0, own.ip.octets());
            let tagged = [&frame[..12], &kind, &[0, 1], &frame[12..]].concat();
            assert!(!may_send(&tagged));
        }
        for length in 0..34 {
            assert!(!may_send(&datagram_from(2)[..length.min(29)]), "{length}");
        }
    }

    proptest! {
        #[test]
        fn a_frame_goes_where_the_policy_sends_its_flow(
            active in any::<u64>(), kthreads in 1..=MOST_KTHREADS, port in any::<u16>(),
        ) {
            let mut steering = FrameSteering::new();
            let number = steering.attach(host(9), kthreads).unwrap();
            let mut flows = FlowSteering::new(kthreads).unwrap();
            for active in [0, active] {
                steering.set_active(number, active);
                flows.set_active(active);
                prop_assert_eq!(steering.active(number), flows.active());
                let frame = datagram(9, port);
                let place = steering.steer(&frame).unwrap();
                let expected = flows.steer(flow_hash(&frame));
                prop_assert_eq!((place.kthread, place.is_active), (expected.kthread.index(), expected.is_active));
            }
        }

        #[test]
        fn whatever_comes_is_steered_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..120), to in 0..3u8) {
            let mut steering = FrameSteering::new();
            let number = steering.attach(host(1), 3).unwrap();
            steering.set_active(number, 0b101);
            let mut frame = frame;
            if to > 0 && frame.len() >= 6 {
                let mac = if to == 1 { [2, 0, 0, 0, 9, 1] } else { [0xff; 6] };
                frame[..6].copy_from_slice(&mac);
            }
            if let Some(place) = steering.steer(&frame) {
                prop_assert!(place.application == 0 && place.kthread < 3);
            }
            let _ = steering.may_send(0, &frame);
        }
    }

    #[test]
    fn flows_spread_over_the_kthreads_with_cores() {
        let mut steering = FrameSteering::new();
        let number = steering.attach(host(9), 8).unwrap();
        steering.set_active(number, 0b1010_0010);
        let mut counts = [0; 8];
        for port in 0..3000 {
            counts[steering.steer(&datagram(9, port)).unwrap().kthread] += 1;
        }
        for (kthread, count) in counts.into_iter().enumerate() {
            let expected = if 0b1010_0010 >> kthread & 1 == 1 {
                800..1200
            } else {
                0..1
            };
            assert!(expected.contains(&count), "{counts:?}");
        }
    }

    #[test]
    fn applications_are_told_apart_by_ethernet_address_and_arp_by_the_one_asked_for() {
        let mut steering = FrameSteering::new();
        let (a, b) = (
            steering.attach(host(1), 1).unwrap(),
            steering.attach(host(2), 1).unwrap(),
        );
        assert_eq!(steering.attach(host(2), 1), None);
        assert_eq!(steering.attach(host(3), 0), None);
        let of = |steering: &FrameSteering, frame: &[u8]| steering.application_of(frame);
        assert_eq!(of(&steering, &datagram(2, 1)), Some(b));
        assert_eq!(of(&steering, &datagram(7, 1)), None);
        let mut arp = [&[0xff; 6][..], &[2, 0, 0, 0, 1, 1, 8, 6], &[0; 28]].concat();
        arp[38..42].copy_from_slice(&[10, 0, 0, 1]);
        assert_eq!(of(&steering, &arp), Some(a));
        arp[12..14].copy_from_slice(&[8, 0]);
        assert_eq!(of(&steering, &arp), None);
        // An application may send only with its own addresses.
        let own = datagram_from(2);
        assert!(steering.may_send(b, &own) && !steering.may_send(a, &own));
        assert_eq!(steering.detach(b), Some(host(2)));
        assert_eq!(of(&steering, &datagram(2, 1)), None);
        assert!(!steering.may_send(b, &own));
        assert_eq!(steering.attach(host(4), 2), Some(b));
    }
}
