//! VLAN tags that a veth pair takes out of packets, which then lie beside them.

use crate::net::{Host, enter_namespace, shell};
use crate::vlan::tag_all;
use crate::{PORT, Served, ask, config, echo_while, in_namespaces, wire};
use headway_net::datapath::Datapath as _;
use headway_net::udp::Steering;
use headway_xsk::{HostAddress, MacAddress, XskDatapath, XskPort, hides_tags};
use nix::sched::{CloneFlags, unshare};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const TAGGED: usize = 10;

fn send(to: &str) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    for _ in 0..TAGGED {
        socket.send_to(&[0; 32], to).expect("sent");
    }
}

#[test]
fn requests_whose_tag_lies_beside_them_are_dropped_and_counted() {
    in_namespaces("AF_XDP and tags that a device takes out", || {
        enter_namespace();
        let client = Host::start(2, || {
            let to = "10.77.0.1:7000";
            let all_answered = || ask(to.parse().expect("an address"), 1, 20, 32);
            all_answered();
            tag_all();
            send(to);
            // Now the tag stays in the packet, and the server answers with it; nothing here takes the answer.
            shell("ethtool -K e0 txvlan off");
            send(to);
            shell("tc qdisc del dev e0 clsact");
            all_answered();
        });
        wire(&client);
        let mut served = Served::open(2, Steering::Flow);
        let (counts, ()) = echo_while(&mut served, || {
            client.begin();
            client.end();
        });
        assert_eq!(
            counts.iter().sum::<usize>(),
            20 + TAGGED + 20,
            "port {PORT}"
        );
        let dropped = [0, 1].map(|queue| served.rxs[queue].dropped());
        assert_eq!(dropped, [TAGGED as u64, 0]);
    });
}

/// An application on no VLAN gets no packet of one.
#[test]
fn frames_for_hosts_whose_tag_lies_beside_them_are_dropped_and_counted() {
    in_namespaces("hosts behind a device that takes tags out", || {
        enter_namespace();
        let client = Host::start(2, || {
            shell("ip neigh add 10.77.0.8 lladdr 02:00:00:00:09:09 dev e0");
            tag_all();
            send("10.77.0.8:9");
        });
        wire(&client);
        let mut port = XskPort::open("p2").expect("AF_XDP");
        let host = HostAddress {
            mac: MacAddress([2, 0, 0, 0, 9, 9]),
            ip: [10, 77, 0, 9].into(),
        };
        port.add_host(host).expect("room for a host");
        client.begin();
        client.end();
        let begun = Instant::now();
        while port.dropped() < TAGGED as u64 {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut received = Vec::new();
        port.receive(64, |frame| received.push(frame.to_vec()));
        assert!(
            !received.iter().any(|frame| frame[12..14] == [8, 0]),
            "{received:?}"
        );
        assert_eq!(port.dropped(), TAGGED as u64);
    });
}

/// Shows `p2` with a VLAN upon it in place of the machine's devices, to this thread alone: not every kernel has VLANs.
fn show_in_a_vlan() {
    unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).expect("a mount namespace");
    shell(
        "mount --make-rprivate /
         mount -t tmpfs none /sys/class/net; mkdir -p /sys/class/net/p2/upper_p2.5 /sys/class/net/p2.5
         echo DEVTYPE=vlan > /sys/class/net/p2.5/uevent",
    );
}

#[test]
fn a_device_in_a_vlan_is_refused_where_the_program_cannot_look_for_tags() {
    in_namespaces("a device that takes tags out", || {
        enter_namespace();
        let client = Host::start(2, || ());
        wire(&client);
        let starts = || {
            let datapath = XskDatapath::open(config(PORT, Steering::Flow)).expect("AF_XDP");
            Box::new(datapath).split(1, 1).map(drop)
        };
        let peers_mtu = |mtu: u32| {
            let namespace = format!("/proc/{}/task/{}/ns/net", std::process::id(), client.task());
            shell(&format!(
                "nsenter --net={namespace} ip link set dev e0 mtu {mtu}"
            ));
        };
        // A veth pair with such packets takes no program, which runs behind the driver then.
        peers_mtu(9000);
        assert!(!hides_tags("p2"), "it is in no VLAN");
        starts().expect("no tags, no loss");
        show_in_a_vlan();
        assert!(hides_tags("p2"));
        let refused = starts()
            .expect_err("it would answer without tags")
            .to_string();
        assert!(refused.contains("`ethtool -K p2 rxvlan off`"), "{refused}");
        shell("ethtool -K p2 rxvlan off");
        starts().expect("tags stay in packets");
        shell("ethtool -K p2 rxvlan on");
        peers_mtu(1500);
        starts().expect("the program looks");
        client.begin();
        client.end();
    });
}
