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
const ETHERNET_BYTES: usize = 14;
const TYPE_IP4: [u8; 2] = [0x08, 0x00];
const TYPE_ARP: [u8; 2] = [0x08, 0x06];

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

    /// Whether this application may send the frame: its source is the application's Ethernet address.
    #[inline]
    #[must_use]
    pub fn may_send(&self, number: usize, frame: &[u8]) -> bool {
        let application = self.applications.get(number).copied().flatten();
        let mac = application.map(|application| application.address.mac.0);
        frame.len() >= ETHERNET_BYTES && mac.is_some_and(|mac| frame[6..12] == mac)
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
        // An application may send only with its own address.
        let mut own = datagram(1, 1);
        own[6..12].copy_from_slice(&host(2).mac.0);
        assert!(steering.may_send(b, &own) && !steering.may_send(a, &own));
        assert_eq!(steering.detach(b), Some(host(2)));
        assert_eq!(of(&steering, &datagram(2, 1)), None);
        assert!(!steering.may_send(b, &own));
        assert_eq!(steering.attach(host(4), 2), Some(b));
    }
}
