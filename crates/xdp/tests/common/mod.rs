//! Frames as they are on the wire, and the programs, or the reason why there are none.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod cost;
pub(crate) mod maps;
pub(crate) mod net;
pub(crate) mod settings;
pub(crate) mod vlan;

use aya::Ebpf;
use aya::programs::Xdp;
use headway_xdp::{XdpObjects, compile};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;

/// The compiled programs. Without clang, root or the kernel's permission the test prints the reason and is
/// skipped, unless `HEADWAY_XDP_REQUIRED` demands it.
pub(crate) fn objects(test: &str) -> Option<XdpObjects> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let missing = if is_root {
        match compile() {
            Ok(objects) if may_load(&objects) => return Some(objects),
            Ok(_) => {
                println!("SKIPPED {test}: this machine does not let root load XDP programs");
                return None;
            }
            Err(error @ headway_xdp::ObjectError::Refused { .. }) => panic!("{error}"),
            Err(error) => error.to_string(),
        }
    } else {
        "loading an XDP program needs root".to_owned()
    };
    assert!(
        std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(),
        "{missing}"
    );
    println!("SKIPPED {test}: {missing}");
    None
}

/// Whether the kernel permits any program. An error for one of ours is left for the tests to show.
fn may_load(objects: &XdpObjects) -> bool {
    let Ok(mut bare) = Ebpf::load(&objects.bare) else {
        return false;
    };
    let program: Option<&mut Xdp> = bare.program_mut("bare").and_then(|it| it.try_into().ok());
    program.expect("the program bare").load().is_ok()
}

/// Pins the thread to one processor, so that its packets use the registers of one CPU.
pub(crate) fn stay_on_cpu(cpu: usize) {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu).expect("a processor's number");
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).expect("the processor");
}

pub(crate) const DROP: u32 = 1;
pub(crate) const PASS: u32 = 2;
pub(crate) const TX: u32 = 3;
pub(crate) const REDIRECT: u32 = 4;

/// A UDP datagram in an Ethernet frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) to_mac: [u8; 6],
    pub(crate) from_mac: [u8; 6],
    /// 0 to 2 VLAN tags.
    pub(crate) tags: usize,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// Without one, IPv4's UDP checksum is 0.
    pub(crate) has_checksum: bool,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The offset of the IP header.
    pub(crate) fn ip_at(&self) -> usize {
        14 + 4 * self.tags
    }

    /// The offset of the UDP header.
    pub(crate) fn udp_at(&self) -> usize {
        self.ip_at() + if self.from.is_ipv4() { 20 } else { 40 }
    }

    /// The frame's bytes, all checksums right.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = [self.to_mac, self.from_mac].concat();
        for tag in 0..self.tags {
            let kind: u16 = if tag + 1 < self.tags { 0x88a8 } else { 0x8100 };
            bytes.extend(kind.to_be_bytes());
            bytes.extend([0x20, 7 + tag as u8]);
        }
        let udp_bytes = (8 + self.payload.len()) as u16;
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes.extend([0x08, 0x00, 0x45, 0x10]);
                bytes.extend((20 + udp_bytes).to_be_bytes());
                bytes.extend([0x12, 0x34, 0x40, 0, 63, 17, 0, 0]);
                bytes.extend(from.octets());
                bytes.extend(to.octets());
                let ip = self.ip_at();
                let check = !sum(&bytes[ip..], 0);
                bytes[ip + 10..ip + 12].copy_from_slice(&check.to_be_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                bytes.extend([0x86, 0xdd, 0x60, 0x01, 0x02, 0x03]);
                bytes.extend(udp_bytes.to_be_bytes());
                bytes.extend([17, 63]);
                bytes.extend(from.octets());
                bytes.extend(to.octets());
            }
            _ => panic!("one family"),
        }
        bytes.extend(self.from.port().to_be_bytes());
        bytes.extend(self.to.port().to_be_bytes());
        bytes.extend(udp_bytes.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(&self.payload);
        if self.has_checksum {
            let check = self.udp_check(&bytes);
            let at = self.udp_at() + 6;
            bytes[at..at + 2].copy_from_slice(&check.to_be_bytes());
        }
        bytes
    }

    /// The frame's bytes as a device leaves them whose hardware is to finish the UDP checksum: the field has the sum of the pseudo header alone.
    pub(crate) fn unfinished_bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes();
        let udp = self.udp_at();
        let pseudo = 17 + (bytes.len() - udp) as u32;
        let check = sum(&bytes[self.addresses()], pseudo);
        bytes[udp + 6..udp + 8].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// Where the IP addresses are.
    fn addresses(&self) -> std::ops::Range<usize> {
        let ip = self.ip_at();
        match self.from.ip() {
            IpAddr::V4(_) => ip + 12..ip + 20,
            IpAddr::V6(_) => ip + 8..ip + 40,
        }
    }

    /// The UDP checksum of `bytes`, whose checksum field is 0.
    fn udp_check(&self, bytes: &[u8]) -> u16 {
        let udp = &bytes[self.udp_at()..];
        let addresses = &bytes[self.addresses()];
        let pseudo = 17 + udp.len() as u32;
        match !sum(udp, u32::from(sum(addresses, pseudo))) {
            0 => 0xffff,
            check => check,
        }
    }
}

/// The one's complement sum of 16-bit words.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = words.fold(start, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
