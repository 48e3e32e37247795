//! The Ethernet addresses of neighbours, and frames that wait for one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::packet::{ETHERNET_BYTES, Mac};
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};

/// The time after which an unanswered request is sent again, and how many of them.
const ASK_NS: u64 = 200 * MILLISECOND_NS;
const ASKS: u32 = 5;
/// The age at which an address in use is asked for again.
const FRESH_NS: u64 = 30 * SECOND_NS;
/// The most frames that wait for a neighbour's address; the oldest goes.
const WAITING: usize = 64;
/// The most neighbours whose address is missing. Packets for further ones are lost; a neighbour that asks for our address is known by that.
const MOST_MISSING: usize = 256;
/// The most neighbours.
const MOST: usize = 4096;
/// The interval at which a neighbour may be doubted.
const DOUBT_NS: u64 = ASK_NS;

#[derive(Debug, Default)]
struct NeighbourEntry {
    mac: Option<Mac>,
    confirmed_ns: u64,
    asked_ns: Option<u64>,
    /// Requests since the last answer.
    asks: u32,
    /// The last time that something spoke against its address.
    doubted_ns: Option<u64>,
    waiting: Vec<Vec<u8>>,
}

/// What is known of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeighbourAddress {
    pub(crate) mac: Option<Mac>,
    /// A request is to be sent.
    pub(crate) is_to_be_asked: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    all: Mutex<HashMap<IpAddr, NeighbourEntry>>,
    /// Neighbours whose address is missing.
    missing: AtomicUsize,
    /// The time before which no neighbour of a full table gets old enough to go.
    full_until_ns: AtomicU64,
    /// Frames that were lost since no neighbour took them.
    lost: AtomicU64,
}

impl Neighbours {
    fn all(&self) -> MutexGuard<'_, HashMap<IpAddr, NeighbourEntry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A neighbour's address, if it is known.
    pub(crate) fn look_up(&self, ip: IpAddr, now_ns: u64) -> NeighbourAddress {
        let mut all = self.all();
        if !all.contains_key(&ip) && self.is_full(&mut all, now_ns) {
            return NeighbourAddress {
                mac: None,
                is_to_be_asked: false,
            };
        }
        let neighbour = all.entry(ip).or_default();
        let is_doubted = neighbour
            .doubted_ns
            .is_some_and(|at| at >= neighbour.confirmed_ns);
        let is_fresh = now_ns < neighbour.confirmed_ns + FRESH_NS && !is_doubted;
        if neighbour.mac.is_some() && is_fresh {
            return NeighbourAddress {
                mac: neighbour.mac,
                is_to_be_asked: false,
            };
        }
        let is_new = neighbour.asked_ns.is_none_or(|at| at + ASK_NS <= now_ns);
        if is_new {
            neighbour.asked_ns = Some(now_ns);
            neighbour.asks += 1;
            if neighbour.asks > ASKS {
                neighbour.mac = None;
            }
        }
        NeighbourAddress {
            mac: neighbour.mac,
            is_to_be_asked: is_new,
        }
    }

    /// Whether no neighbour can be added. Whoever sends SYNs in the names of all addresses of the network gets this far.
    fn is_full(&self, all: &mut HashMap<IpAddr, NeighbourEntry>, now_ns: u64) -> bool {
        self.missing.load(Ordering::Relaxed) >= MOST_MISSING || !self.make_place(all, now_ns)
    }

    /// Makes a place for a neighbour if there is none: the one goes that was silent for longest, if its address is old and no frame waits for it. Returns
    /// whether there is a place.
    fn make_place(&self, all: &mut HashMap<IpAddr, NeighbourEntry>, now_ns: u64) -> bool {
        if all.len() < MOST {
            return true;
        }
        // All entries are looked at once in a while only, whatever a stranger sends.
        if now_ns < self.full_until_ns.load(Ordering::Relaxed) {
            return false;
        }
        let idle = all.iter().filter(|(_, entry)| entry.waiting.is_empty());
        let oldest = idle.min_by_key(|(_, entry)| entry.confirmed_ns);
        let Some((ip, old_ns)) = oldest.map(|(ip, entry)| (*ip, entry.confirmed_ns + FRESH_NS))
        else {
            return false;
        };
        if now_ns < old_ns {
            self.full_until_ns.store(old_ns, Ordering::Relaxed);
            return false;
        }
        all.remove(&ip);
        true
    }

    /// Something speaks against a neighbour's address: frames to it stay unanswered, or its own come from another one (`seen`). It is used further, and asked
    /// for again at the next frame. Returns `false` if it was doubted a moment ago.
    pub(crate) fn doubt(&self, ip: IpAddr, seen: Option<Mac>, now_ns: u64) -> bool {
        let mut all = self.all();
        let Some(neighbour) = all.get_mut(&ip).filter(|neighbour| neighbour.mac != seen) else {
            return true;
        };
        let is_due = neighbour
            .doubted_ns
            .is_none_or(|at| at + DOUBT_NS <= now_ns);
        if is_due {
            neighbour.doubted_ns = Some(now_ns);
        }
        is_due
    }

    /// Counts frames that no neighbour takes.
    pub(crate) fn lost(&self, frames: usize) {
        self.lost.fetch_add(frames as u64, Ordering::Relaxed);
    }

    /// The frames that no neighbour took.
    pub(crate) fn lost_frames(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Keeps a frame, without its destination, until its neighbour answers.
    pub(crate) fn keep(&self, ip: IpAddr, frame: &[u8]) {
        let mut all = self.all();
        // Unless there is no place for it.
        let Some(neighbour) = all.get_mut(&ip) else {
            return self.lost(1);
        };
        if neighbour.waiting.is_empty() {
            self.missing.fetch_add(1, Ordering::Relaxed);
            neighbour.asks = neighbour.asks.min(1);
        }
        if neighbour.waiting.len() >= WAITING {
            neighbour.waiting.remove(0);
            self.lost(1);
        }
        neighbour.waiting.push(frame.to_vec());
    }

    /// A neighbour told its address; one that nobody asked for counts only if `is_for_us`, on an own network. Returns the frames that waited for it.
    pub(crate) fn learn(&self, ip: IpAddr, mac: Mac, is_for_us: bool, now_ns: u64) -> Vec<Vec<u8>> {
        // A multicast address is nobody's.
        if mac[0] & 1 != 0 || ip.is_unspecified() || ip.is_multicast() {
            return Vec::new();
        }
        let mut all = self.all();
        let has_place = all.contains_key(&ip) || is_for_us && self.make_place(&mut all, now_ns);
        if !has_place {
            return Vec::new();
        }
        let neighbour = all.entry(ip).or_default();
        neighbour.mac = Some(mac);
        neighbour.confirmed_ns = now_ns;
        (neighbour.asked_ns, neighbour.asks) = (None, 0);
        // A doubt of this very moment is older than the answer.
        neighbour.doubted_ns = neighbour.doubted_ns.filter(|at| *at > now_ns);
        let mut waiting = std::mem::take(&mut neighbour.waiting);
        if !waiting.is_empty() {
            self.missing.fetch_sub(1, Ordering::Relaxed);
        }
        for frame in waiting
            .iter_mut()
            .filter(|frame| frame.len() >= ETHERNET_BYTES)
        {
            frame[..6].copy_from_slice(&mac);
        }
        waiting
    }

    /// Whether frames wait.
    pub(crate) fn has_waiting(&self) -> bool {
        self.missing.load(Ordering::Relaxed) > 0
    }

    /// The next neighbour to ask again, whose frames still wait. After the last request the frames are lost.
    pub(crate) fn next_to_ask(&self, now_ns: u64) -> Option<IpAddr> {
        if !self.has_waiting() {
            return None;
        }
        let mut all = self.all();
        let mut asked = None;
        all.retain(|ip, neighbour| {
            let is_due = neighbour.asked_ns.is_none_or(|at| at + ASK_NS <= now_ns);
            if asked.is_some() || neighbour.waiting.is_empty() || !is_due {
                return true;
            }
            if neighbour.asks >= ASKS {
                self.missing.fetch_sub(1, Ordering::Relaxed);
                self.lost(neighbour.waiting.len());
                return false;
            }
            neighbour.asks += 1;
            neighbour.asked_ns = Some(now_ns);
            asked = Some(*ip);
            true
        });
        asked
    }

    /// The time until the next call of [`next_to_ask`](Self::next_to_ask) is due.
    pub(crate) fn due_in_ns(&self) -> Option<u64> {
        self.has_waiting().then_some(ASK_NS / 2)
    }
}

/// The Ethernet addresses from which packets came, by a hash of their IP address: who changes its address is noticed by its next packet, without a look at the
/// table for each one.
#[derive(Debug)]
pub(crate) struct PacketOrigins([AtomicU64; ORIGINS]);

const ORIGINS: usize = 256;

impl PacketOrigins {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ORIGINS])
    }

    /// A packet came. Calls `check` if the last one that has its place came from elsewhere; it returns whether that is settled.
    #[inline]
    pub(crate) fn came(&self, source: IpAddr, from: Mac, check: impl FnOnce() -> bool) {
        let bits = match source {
            IpAddr::V4(ip) => ip.to_bits(),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                (bits ^ bits >> 32 ^ bits >> 64 ^ bits >> 96) as u32
            }
        };
        let place = &self.0[(bits.wrapping_mul(0x9E37_79B1) >> 24) as usize % ORIGINS];
        let [a, b, c, d, e, f] = from;
        let from = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        if place.load(Ordering::Relaxed) != from && check() {
            place.store(from, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const MAC: Mac = [2, 0, 0, 0, 0, 1];

    #[test]
    fn frames_wait_for_the_answer_and_are_lost_after_the_last_request() {
        let neighbours = Neighbours::default();
        assert!(neighbours.look_up(IP, 0).is_to_be_asked);
        assert!(!neighbours.look_up(IP, 1).is_to_be_asked);
        neighbours.keep(IP, &[0; 20]);
        let asked = (1..100).filter(|turn| neighbours.next_to_ask(turn * ASK_NS).is_some());
        assert_eq!(asked.count(), ASKS as usize - 1);
        assert!(!neighbours.has_waiting());
        neighbours.look_up(IP, 0);
        neighbours.keep(IP, &[0; 20]);
        let frames = neighbours.learn(IP, MAC, false, 0);
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0][..6], MAC);
    }

    #[test]
    fn a_scan_of_the_network_keeps_little_and_hides_nobody_who_is_known() {
        let neighbours = Neighbours::default();
        neighbours.learn(IP, MAC, true, 0);
        for host in 0..100_000 {
            let ip = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0B00_0000 + host));
            neighbours.look_up(ip, 0);
            neighbours.keep(ip, &[0; 20]);
        }
        assert_eq!(neighbours.all().len(), MOST_MISSING + 1);
        assert_eq!(neighbours.look_up(IP, 0).mac, Some(MAC));
        for turn in 1..20 {
            while neighbours.next_to_ask(turn * ASK_NS).is_some() {}
        }
        assert_eq!(neighbours.all().len(), 1, "who never answered is forgotten");
        assert!(!neighbours.has_waiting());
    }

    #[test]
    fn only_who_speaks_to_us_is_learnt_unasked_and_an_old_address_is_asked_for() {
        let neighbours = Neighbours::default();
        neighbours.learn(IP, MAC, false, 0);
        assert_eq!(neighbours.look_up(IP, 0).mac, None);
        neighbours.learn(IP, MAC, true, 0);
        let known = neighbours.look_up(IP, FRESH_NS - 1);
        assert_eq!((known.mac, known.is_to_be_asked), (Some(MAC), false));
        let stale = neighbours.look_up(IP, FRESH_NS);
        assert_eq!((stale.mac, stale.is_to_be_asked), (Some(MAC), true));
        (1..=ASKS as u64).for_each(|turn| {
            neighbours.look_up(IP, FRESH_NS + turn * ASK_NS);
        });
        assert_eq!(neighbours.look_up(IP, 2 * FRESH_NS).mac, None);
    }

    #[test]
    fn an_address_in_doubt_is_used_and_asked_for_until_it_is_told_or_nobody_answers() {
        let neighbours = Neighbours::default();
        neighbours.learn(IP, MAC, true, 0);
        assert!(
            neighbours.doubt(IP, Some(MAC), 1),
            "nothing speaks against it"
        );
        assert!(!neighbours.look_up(IP, 2).is_to_be_asked);
        assert!(neighbours.doubt(IP, None, 3));
        assert!(!neighbours.doubt(IP, None, 4), "a moment ago");
        let known = neighbours.look_up(IP, 5);
        assert_eq!((known.mac, known.is_to_be_asked), (Some(MAC), true));
        let other = [2, 0, 0, 0, 0, 9];
        neighbours.learn(IP, other, false, 6);
        let known = neighbours.look_up(IP, 7);
        assert_eq!((known.mac, known.is_to_be_asked), (Some(other), false));
        assert!(neighbours.doubt(IP, Some(MAC), 8 + DOUBT_NS));
        (0..=ASKS as u64).for_each(|turn| {
            neighbours.look_up(IP, 8 + DOUBT_NS + turn * ASK_NS);
        });
        assert_eq!(
            neighbours.look_up(IP, 9 + 8 * ASK_NS).mac,
            None,
            "it is gone"
        );
    }

    #[test]
    fn every_frame_that_nobody_takes_is_counted() {
        let neighbours = Neighbours::default();
        neighbours.keep(IP, &[0; 20]);
        assert_eq!(neighbours.lost_frames(), 1, "there is no place for it");
        neighbours.look_up(IP, 0);
        (0..WAITING + 3).for_each(|_| neighbours.keep(IP, &[0; 20]));
        assert_eq!(neighbours.lost_frames(), 4, "the oldest went");
        for turn in 1..20 {
            neighbours.next_to_ask(turn * ASK_NS);
        }
        assert_eq!(neighbours.lost_frames(), 4 + WAITING as u64);
    }

    #[test]
    fn a_full_table_forgets_the_oldest_neighbour_that_nobody_waits_for() {
        let neighbours = Neighbours::default();
        let host = |number: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0B00_0000 + number));
        for number in 0..MOST as u32 {
            neighbours.learn(host(number), MAC, true, u64::from(number));
        }
        neighbours.learn(IP, MAC, true, FRESH_NS - 1);
        assert_eq!(
            neighbours.look_up(IP, FRESH_NS - 1).mac,
            None,
            "all are fresh"
        );
        neighbours.keep(host(0), &[0; 20]);
        neighbours.learn(IP, MAC, true, FRESH_NS + 1);
        assert_eq!(neighbours.look_up(IP, FRESH_NS + 1).mac, Some(MAC));
        assert_eq!(neighbours.all().len(), MOST);
        assert!(neighbours.all().contains_key(&host(0)), "a frame waits");
        assert!(!neighbours.all().contains_key(&host(1)), "the oldest");
    }
}
