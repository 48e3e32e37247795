//! Devices that would serve nobody, refused at the start.

use crate::net::{Host, enter_namespace, shell};
use crate::{PORT, config, in_namespaces};
use headway_net::udp::Steering;
use headway_xsk::{XskConfig, XskDatapath, XskPort, XskUdpPort};
use std::process::Command;

#[test]
fn a_device_without_ethernet_frames_is_refused() {
    in_namespaces("AF_XDP without Ethernet", || {
        enter_namespace();
        let said = |device: &str| {
            let config = XskConfig {
                device: device.into(),
                ..config(PORT, Steering::Flow)
            };
            let open = [
                XskDatapath::open(config).map(drop),
                XskUdpPort::open(device, PORT).map(drop),
                XskPort::open(device).map(drop),
            ];
            open.map(|opened| opened.expect_err("refused").to_string())
        };
        let of_lo = "device lo carries no Ethernet frames (link type 772";
        for said in said("lo") {
            assert!(said.starts_with(of_lo), "{said}");
        }
        if let Some(why) = lacks("ip tuntap add t0 mode tun") {
            println!("SKIPPED a tun device: {why}");
            return;
        }
        shell("ip address add 10.78.0.1/24 dev t0; ip link set dev t0 up");
        let of_tun = "device t0 carries no Ethernet frames (link type 65534";
        for said in said("t0") {
            assert!(said.starts_with(of_tun), "{said}");
        }
    });
}

/// The devices above another give their own packets, whatever they are asked for.
#[test]
fn a_device_that_keeps_back_frames_for_hosts_behind_it_is_refused() {
    in_namespaces("AF_XDP above another device", || {
        enter_namespace();
        let client = Host::start(2, || ());
        assert_eq!(client.wire(), "p2");
        let kinds = [
            ("macvlan", "macvlan mode bridge", true),
            ("macvlan", "macvlan mode private", true),
            ("macvtap", "macvtap mode vepa", true),
            ("ipvlan", "ipvlan mode l2", true),
            ("macvlan", "macvlan mode passthru", false),
        ];
        for (kind, kind_and_mode, is_refused) in kinds {
            if let Some(why) = lacks(&format!("ip link add d0 link p2 type {kind_and_mode}")) {
                println!("SKIPPED {kind_and_mode}: {why}");
                continue;
            }
            shell("ip link set dev d0 up; ethtool -K d0 gro off");
            let opened = XskPort::open("d0")
                .map(drop)
                .map_err(|error| error.to_string());
            let refused = format!(
                "device d0 is a {kind}, which gets no frames for Ethernet addresses but its own: name the device below it, p2"
            );
            let expected = if is_refused { Err(refused) } else { Ok(()) };
            assert_eq!(opened, expected, "{kind_and_mode}");
            shell("ip link delete dev d0");
        }
        client.begin();
        client.end();
    });
}

/// What a command said that this machine does not carry out.
fn lacks(command: &str) -> Option<String> {
    let output = Command::new("sh").args(["-ec", command]).output();
    let output = output.expect("sh");
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (!output.status.success()).then(|| format!("{command}: {said}"))
}
