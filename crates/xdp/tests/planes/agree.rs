//! Long random sequences of packets through the three planes.

use crate::addresses::Family;
use crate::common::*;
use crate::{Excess, Planes, TYPES, WINDOW_NS};
use headway_policy::rack::{Cloning, Overflow};
use headway_xdp::XdpObjects;

pub(crate) fn packets() -> u64 {
    let asked = std::env::var("HEADWAY_XDP_PACKETS").ok();
    asked.map_or(100_000, |text| {
        text.parse().expect("HEADWAY_XDP_PACKETS: a number")
    })
}

/// The programs, where this machine can load them and has namespaces; else the test is skipped with the reason.
pub(crate) fn objects_in_namespaces(test: &str) -> Option<XdpObjects> {
    let objects = objects(test)?;
    if let Some(why) = net::missing() {
        println!("SKIPPED {test}: {why}");
        return None;
    }
    Some(objects)
}

/// Enters a namespace whose loopback is the clients' side.
pub(crate) fn servers_side() {
    net::enter_namespace();
    net::shell(
        "ip link add servers index 2 type veth peer name other index 3; ip link set dev servers up",
    );
}

impl Planes {
    /// After the packet of this number: new tables each 2 000, and a look at the registers each 10 000.
    fn change_and_compare(&mut self, packet: u64) {
        if packet % 2_000 == 1_999 {
            self.change_tables(packet as u32 / 2_000);
        }
        if packet % 10_000 == 9_999 {
            self.compare_registers();
        }
    }
}

/// A burst of one group, while others have had no arrival in the new window.
const BURST: usize = 100;

fn three_planes_agree(test: &str, family: Family, excess: Excess, packets: u64) {
    let Some(objects) = objects_in_namespaces(test) else {
        return;
    };
    servers_side();
    let mut planes = Planes::new(&objects.rack, family, excess, 18);
    for packet in 0..packets {
        planes.step();
        if packet % 600 == 599 {
            planes.pass_window();
            (0..BURST).for_each(|_| planes.request(TYPES as u8 - 1));
        }
        planes.change_and_compare(packet);
    }
    planes.compare_registers();
    every_fate_was_met(&planes, excess);
}

fn every_fate_was_met(planes: &Planes, (cloning, overflow): Excess) {
    let counts = planes.xdp.registers().expect("registers").counts;
    let mut unmet = vec![
        "shed",
        "expired",
        "other_family",
        "lost",
        "no_server",
        "hidden_tag",
    ];
    if overflow == Overflow::Off {
        unmet.push("overflowed");
    }
    if cloning == Cloning::Off {
        unmet.extend(["cloned", "filtered", "copies_refused"]);
    }
    for (name, count) in counts.named() {
        assert_eq!(count == 0, unmet.contains(&name), "{name}: {count}");
    }
}

#[test]
fn three_planes_agree_on_every_byte_of_ip4() {
    three_planes_agree(
        "three planes, IPv4",
        Family::Ip4,
        (Cloning::Off, Overflow::Off),
        packets() / 2,
    );
}

#[test]
fn three_planes_agree_on_every_byte_of_ip6() {
    three_planes_agree(
        "three planes, IPv6",
        Family::Ip6,
        (Cloning::Off, Overflow::Off),
        packets() / 4,
    );
}

#[test]
fn three_planes_clone_alike_to_longer_groups() {
    three_planes_agree(
        "three planes, clones to longer groups",
        Family::Ip4,
        (Cloning::Longer(WINDOW_NS), Overflow::Off),
        packets() / 2,
    );
}

#[test]
fn three_planes_clone_alike_to_any_group() {
    three_planes_agree(
        "three planes, clones to any group",
        Family::Ip6,
        (Cloning::Calmest(WINDOW_NS), Overflow::Off),
        packets() / 4,
    );
}

/// The user-space switch and the program send the same requests elsewhere, with clones beside them or not.
#[test]
fn three_planes_overflow_alike() {
    three_planes_agree(
        "three planes, requests overflow",
        Family::Ip4,
        (Cloning::Off, Overflow::PerCore(2.5)),
        packets() / 4,
    );
}

#[test]
fn three_planes_overflow_and_clone_alike() {
    three_planes_agree(
        "three planes, requests overflow and are cloned",
        Family::Ip6,
        (Cloning::Longer(WINDOW_NS), Overflow::PerCore(20.0)),
        packets() / 4,
    );
}

/// Packets come to every CPU, each with its own turns, slots and averages: also a request to one and its server's packets to others.
fn three_planes_agree_on_several_cpus(test: &str, family: Family, excess: Excess, packets: u64) {
    let Some(objects) = objects_in_namespaces(test) else {
        return;
    };
    let cpus = crate::cpus::allowed();
    if cpus.len() < 2 {
        println!("SKIPPED {test}: it needs two CPUs");
        return;
    }
    servers_side();
    let mut planes = Planes::on_cpus(&objects.rack, family, excess, (18, &cpus));
    for packet in 0..packets {
        // A move waits for its turn on a busy CPU.
        if packet % 12 == 0 {
            planes.next_cpu();
        }
        planes.step();
        // Bursts are counted where they are cloned. So many windows are more than a clock in ns has.
        if packet % 600 == 599 && excess.0 != Cloning::Off {
            planes.pass_window();
            // All CPUs together make the burst.
            for _ in 0..10 {
                (0..BURST / 10).for_each(|_| planes.request(TYPES as u8 - 1));
                planes.next_cpu();
            }
        }
        planes.change_and_compare(packet);
    }
    planes.compare_registers();
    every_fate_was_met(&planes, excess);
    assert!(packets < 150_000 || planes.indices.come_round());
}

#[test]
fn three_planes_agree_although_packets_come_to_several_cpus() {
    three_planes_agree_on_several_cpus(
        "three planes, several CPUs",
        Family::Ip4,
        (Cloning::Off, Overflow::Off),
        // By default enough that each CPU takes its first slots a second time.
        packets() / 2 * 3,
    );
}

/// The CPUs count arrivals in one window, and one has the response to a copy that another ordered.
#[test]
fn three_planes_clone_alike_on_several_cpus() {
    three_planes_agree_on_several_cpus(
        "three planes, clones on several CPUs",
        Family::Ip4,
        (Cloning::Calmest(WINDOW_NS), Overflow::Off),
        packets() / 4,
    );
}

/// What one CPU sends a server makes it busy for the others.
#[test]
fn three_planes_overflow_and_clone_alike_on_several_cpus() {
    three_planes_agree_on_several_cpus(
        "three planes, requests overflow and are cloned on several CPUs",
        Family::Ip4,
        (Cloning::Longer(WINDOW_NS), Overflow::PerCore(20.0)),
        packets() / 4,
    );
}
