//! The links by which frames reach their peers: senders by their own frame's way back, named hosts by an Ethernet address given for them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::device::{NetDevice, mapped};
use crate::frame::ReturnLink;
use crate::mac::MacAddress;

/// A host to which the port sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedHost {
    /// Its address.
    pub ip: IpAddr,
    /// The Ethernet address of the host, or of the router on the way.
    pub mac: MacAddress,
}

/// The named hosts of a port, which another thread may replace.
#[derive(Debug, Default)]
pub struct HostLinks {
    hosts: Mutex<Vec<LinkedHost>>,
    generation: AtomicU64,
}

impl HostLinks {
    /// Replaces the port's named hosts from its next batch on.
    pub fn set(&self, hosts: Vec<LinkedHost>) {
        *self.hosts.lock().unwrap_or_else(PoisonError::into_inner) = hosts;
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// The link to a peer, and this machine's source address on that link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PeerLink {
    pub(crate) link: ReturnLink,
    pub(crate) own_ip: [u8; 16],
}

/// The number of slots for links.
const LINKS: usize = 4096;
/// The number of slots at which a link may be.
const WAYS: usize = 4;

/// A port's own copy of its named hosts, and numbered links back to other senders.
///
/// A link's number is its slot and the slot's generation, so the number of an evicted link never names another one.
#[derive(Debug)]
pub(crate) struct LinkTable {
    /// The hosts, sorted by address.
    hosts: Vec<HostEntry>,
    generation: u64,
    slots: Vec<LinkSlot>,
}

#[derive(Debug)]
struct HostEntry {
    ip: [u8; 16],
    link: PeerLink,
}

#[derive(Debug, Clone, Copy, Default)]
struct LinkSlot {
    /// 0 for an empty slot.
    generation: u16,
    link: PeerLink,
}

impl LinkTable {
    pub(crate) fn new() -> Self {
        Self {
            hosts: Vec::new(),
            generation: 0,
            slots: vec![LinkSlot::default(); LINKS],
        }
    }

    /// Copies the named hosts if they changed. It skips hosts of a family in which the device has no address.
    #[inline]
    pub(crate) fn follow(&mut self, named: &HostLinks, device: &NetDevice) {
        let newest = named.generation.load(Ordering::Acquire);
        if newest != self.generation {
            self.generation = newest;
            self.take_over(named, device);
        }
    }

    #[cold]
    fn take_over(&mut self, named: &HostLinks, device: &NetDevice) {
        let hosts = named.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = hosts.iter().filter_map(|host| {
            let link = PeerLink {
                link: ReturnLink::to(host.mac),
                own_ip: device.address_towards(host.ip)?,
            };
            Some(HostEntry {
                ip: mapped(host.ip),
                link,
            })
        });
        self.hosts = entries.collect();
        self.hosts.sort_unstable_by_key(|entry| entry.ip);
    }

    fn host(&self, ip: [u8; 16]) -> Option<&PeerLink> {
        let found = self.hosts.binary_search_by_key(&ip, |entry| entry.ip);
        Some(&self.hosts[found.ok()?].link)
    }

    /// The number of the link to a sender; 0 for a named host, whose own frames leave its link unchanged.
    #[inline]
    pub(crate) fn number(&mut self, ip: [u8; 16], link: PeerLink) -> u32 {
        if self.host(ip).is_some() {
            return 0;
        }
        let first = hash(&link) as usize;
        let places = (0..WAYS).map(|way| (first + way) % LINKS);
        let mut free = None;
        for place in places {
            let slot = &self.slots[place];
            if slot.generation == 0 {
                free = free.or(Some(place));
            } else if slot.link == link {
                return number(place, slot.generation);
            }
        }
        // Any link may be evicted; the one in the first slot is.
        let place = free.unwrap_or(first % LINKS);
        let slot = &mut self.slots[place];
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.link = link;
        number(place, slot.generation)
    }

    /// The link to a peer, by its number or, where that is 0, its address.
    #[inline]
    pub(crate) fn link(&self, ip: [u8; 16], number: u32) -> Option<&PeerLink> {
        if number == 0 {
            return self.host(ip);
        }
        let slot = self.slots.get((number & 0xffff) as usize)?;
        (u32::from(slot.generation) == number >> 16).then_some(&slot.link)
    }
}

fn number(place: usize, generation: u16) -> u32 {
    u32::from(generation) << 16 | place as u32
}

fn hash(link: &PeerLink) -> u32 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let words = [link.link.bytes(), link.own_ip].map(u128::from_ne_bytes);
    let folded = words.iter().fold(0u64, |hash, &word| {
        let word = (word >> 64) as u64 ^ (word as u64).rotate_left(29);
        (hash ^ word).wrapping_mul(ODD).rotate_left(31)
    });
    (folded >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u32) -> PeerLink {
        let [a, b, c, d] = number.to_be_bytes();
        PeerLink {
            link: ReturnLink::to(MacAddress([2, 0, a, b, c, d])),
            own_ip: [7; 16],
        }
    }

    fn device() -> NetDevice {
        NetDevice {
            name: "e0".into(),
            ifindex: 1,
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            queues: 1,
            addresses: vec![mapped([10, 0, 0, 1].into())],
        }
    }

    #[test]
    fn a_link_keeps_its_number_and_a_number_never_names_another_link() {
        let mut table = LinkTable::new();
        let ip = mapped([10, 0, 0, 2].into());
        let first = table.number(ip, link(1));
        assert_ne!(first, 0);
        assert_eq!(table.number(ip, link(1)), first);
        // Many more senders than slots.
        let numbers: Vec<u32> = (2..20_000u32)
            .map(|one| table.number(ip, link(one)))
            .collect();
        let mut left = 0;
        for (one, number) in (2..).zip(numbers) {
            if let Some(found) = table.link(ip, number) {
                assert_eq!(*found, link(one));
                left += 1;
            }
        }
        assert!((1_000..=LINKS).contains(&left), "{left}");
    }

    #[test]
    fn a_named_host_is_reached_as_it_was_said_whatever_its_frames_bear() {
        let (named, mut table) = (HostLinks::default(), LinkTable::new());
        let (ip4, ip6) = ([10, 0, 0, 2].into(), "fd00::2".parse().unwrap());
        let mac = MacAddress([2, 0, 0, 0, 0, 2]);
        named.set([ip4, ip6].map(|ip| LinkedHost { ip, mac }).to_vec());
        assert_eq!(table.link(mapped(ip4), 0), None);
        table.follow(&named, &device());
        assert_eq!(table.number(mapped(ip4), link(9)), 0);
        let reached = table.link(mapped(ip4), 0).unwrap();
        assert_eq!(reached.link, ReturnLink::to(mac));
        assert_eq!(reached.own_ip, mapped([10, 0, 0, 1].into()));
        // The device has no address of that family.
        assert_eq!(table.link(mapped(ip6), 0), None);
        named.set(Vec::new());
        table.follow(&named, &device());
        assert_eq!(table.link(mapped(ip4), 0), None);
    }
}
