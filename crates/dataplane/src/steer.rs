//! The choice of the application and kthread that get a frame. It has no I/O and no clock: frames and the set of kthreads with a core go in, a place comes out.

use std::collections::HashMap;

use headway_xsk::{HostAddress, MacAddress};

use crate::toeplitz;

/// The most kthreads of an application.
pub const MOST_KTHREADS: usize = 64;

/// An application in the data plane. Its index is its number.
#[derive(Debug, Clone, Copy)]
struct AttachedHost {
    address: HostAddress,
    kthreads: usize,
    /// Kthreads that have a core, one bit each.
    active: u64,
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
    /// `kthreads` is 0 or above [`MOST_KTHREADS`].
    pub fn attach(&mut self, address: HostAddress, kthreads: usize) -> Option<usize> {
        let (mac, ip) = (address.mac.0, address.ip.octets());
        let is_taken = self.by_mac.contains_key(&mac) || self.by_ip.contains_key(&ip);
        if is_taken || address.mac.is_group() || !(1..=MOST_KTHREADS).contains(&kthreads) {
            return None;
        }
        let free = self.applications.iter().position(Option::is_none);
        let number = free.unwrap_or(self.applications.len());
        if number == self.applications.len() {
            self.applications.push(None);
        }
        self.applications[number] = Some(AttachedHost {
            address,
            kthreads,
            active: 0,
        });
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
            application.active = active & mask(application.kthreads);
        }
    }

    /// Kthreads of an application that have a core, one bit each.
    #[must_use]
    pub fn active(&self, number: usize) -> u64 {
        let application = self.applications.get(number).copied().flatten();
        application.map_or(0, |application| application.active)
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
    ///
    /// A flow has a home among all kthreads. While the home has no core, the flow goes to another that has one, always the same for the same set. So
    /// a flow whose home keeps its core stays there when other kthreads gain or lose theirs.
    #[inline]
    #[must_use]
    pub fn steer(&self, frame: &[u8]) -> Option<LanePlace> {
        let number = self.application_of(frame)?;
        let application = self.applications[number]?;
        let hash = flow_hash(frame);
        let home = hash as usize % application.kthreads;
        if application.active == 0 || application.active >> home & 1 == 1 {
            return Some(LanePlace {
                application: number,
                kthread: home,
                is_active: application.active != 0,
            });
        }
        let count = application.active.count_ones();
        // The home used the low bits, so the choice here uses the high ones.
        let rank = (hash >> 16).wrapping_mul(0x9E37_79B9) % count;
        Some(LanePlace {
            application: number,
            kthread: nth_bit(application.active, rank),
            is_active: true,
        })
    }
}

fn mask(bits: usize) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The index of the set bit with this rank, which must exist.
fn nth_bit(mut bits: u64, rank: u32) -> usize {
    for _ in 0..rank {
        bits &= bits - 1;
    }
    bits.trailing_zeros() as usize
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
        fn a_frame_goes_to_a_kthread_with_a_core_and_its_home_if_it_has_one(
            active in any::<u64>(), kthreads in 1..=MOST_KTHREADS, port in any::<u16>(),
        ) {
            let mut steering = FrameSteering::new();
            let number = steering.attach(host(9), kthreads).unwrap();
            let frame = datagram(9, port);
            let home = steering.steer(&frame).unwrap();
            prop_assert!(!home.is_active && home.kthread < kthreads);
            steering.set_active(number, active);
            let place = steering.steer(&frame).unwrap();
            prop_assert_eq!(place.is_active, steering.active(number) != 0);
            prop_assert_eq!(place, steering.steer(&frame).unwrap());
            if place.is_active {
                prop_assert_eq!(active >> place.kthread & 1, 1);
            }
            if active >> home.kthread & 1 == 1 || !place.is_active {
                prop_assert_eq!(place.kthread, home.kthread);
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
