//! `headway rack --xdp` before a client that leaves its VLAN tags to hardware.

use super::racking_xdp::net::{Host, enter_namespace, shell};
use super::racking_xdp::vlan::{leave_tags_to_hardware, put_into_vlan};
use super::racking_xdp::{
    CLIENT, LISTEN, SERVERS, await_status, in_namespaces, rack_args, requests, wire_to,
};
use super::serving::Serving;
use std::net::UdpSocket;

const REQUESTS: u64 = 20;

/// Sends requests and waits for no answer.
fn send() {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    for _ in 0..REQUESTS {
        socket.send_to(&[0; 32], LISTEN).expect("sent");
    }
}

#[test]
fn packets_with_a_tag_beside_them_are_dropped_and_counted_and_the_remedy_is_named() {
    in_namespaces("tags beside packets of headway rack --xdp", || {
        enter_namespace();
        let hosts = SERVERS.map(|number| Host::start(number, || ()));
        // One sends its tags beside packets, the other in them.
        let (tagged, in_packets) = (Host::start(CLIENT, send), Host::start(3, send));
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        wire_to(&[&tagged, &in_packets]);
        for client in [&tagged, &in_packets] {
            put_into_vlan(client.task());
        }
        leave_tags_to_hardware(in_packets.task(), false);
        let folder = tempfile::tempdir().expect("a folder");
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        let rack = Serving::start_command(&rack_args("p2,p3,p10,p11", &["--ctl", ctl]));
        in_packets.begin();
        in_packets.end();
        let status = await_status(ctl, "tags in packets are no matter", |status| {
            requests(status) == REQUESTS
        });
        assert_eq!(status["counts"]["hidden_tag"], 0, "{status}");
        tagged.begin();
        tagged.end();
        let status = await_status(ctl, "tags beside packets are counted", |status| {
            status["counts"]["hidden_tag"].as_u64() == Some(REQUESTS)
        });
        assert_eq!(requests(&status), REQUESTS, "{status}");
        rack.signal(libc::SIGTERM);
        let (code, said) = rack.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("`ethtool -K PEER txvlan off`"), "{said}");
        for host in hosts {
            host.begin();
            host.end();
        }
    });
}
