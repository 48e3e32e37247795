//! Checksums that a sender left to hardware which its packets never meet, as behind a virtual device: the program finishes them.

mod common;

use common::settings::{settings, tables_over};
use common::*;
use headway_net::header::{Flag, HEADER_BYTES, Header};
use headway_xdp::{Mode, Neighbour, XdpSwitch, XdpSwitchConfig};
use std::net::{IpAddr, SocketAddr};

fn address(is_ip4: bool, host: u8, port: u16) -> SocketAddr {
    let ip: IpAddr = if is_ip4 {
        [10, 0, 0, host].into()
    } else {
        [0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host)].into()
    };
    SocketAddr::new(ip, port)
}

/// A switch with one server of this family.
fn switch(object: &[u8], mode: Mode, is_ip4: bool, unfinished_checksums: bool) -> XdpSwitch {
    let config = XdpSwitchConfig {
        unfinished_checksums,
        ..settings(mode)
    };
    let mut switch = XdpSwitch::load(object, &config).expect("the program loads");
    let server = Neighbour {
        address: address(is_ip4, 7, 8000),
        mac: [2, 0, 0, 0, 1, 7],
        ifindex: 1,
        own_mac: [2, 0, 0, 0, 0, 1],
    };
    let tables = tables_over(&[1], &[server]);
    switch.publish(&tables).expect("published");
    switch
}

/// A request with a body of so many bytes.
fn request(is_ip4: bool, body: usize) -> Frame {
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index: 0x0102_0304,
        time_ns: 77,
    };
    let body = (0..body).map(|at| (at * 31 + 7) as u8);
    Frame {
        to_mac: [2, 0, 0, 0, 0, 1],
        from_mac: [2, 0, 0, 0, 0, 9],
        tags: 0,
        from: address(is_ip4, 9, 9000),
        to: address(is_ip4, 1, 7777),
        has_checksum: true,
        payload: header.encode().into_iter().chain(body).collect(),
    }
}

/// The request that the server gets, as a frame whose checksum is right.
fn forwarded(request: &Frame, mode: Mode, bytes: &[u8]) -> Frame {
    let from = match mode {
        Mode::Nat => request.to,
        Mode::Direct => request.from,
    };
    let to = address(request.from.is_ipv4(), 7, 8000);
    Frame {
        to_mac: [2, 0, 0, 0, 1, 7],
        from_mac: [2, 0, 0, 0, 0, 1],
        from,
        to,
        // The switch draws its own index.
        payload: bytes[request.udp_at() + 8..].to_vec(),
        ..request.clone()
    }
}

fn cases() -> impl Iterator<Item = (Mode, bool, usize)> {
    [Mode::Nat, Mode::Direct].into_iter().flat_map(|mode| {
        [true, false].into_iter().flat_map(move |is_ip4| {
            let bodies = [0, 1, 2, 33, 1000, 2000 - HEADER_BYTES];
            bodies.map(|body| (mode, is_ip4, body))
        })
    })
}

#[test]
fn what_a_sender_left_to_hardware_is_finished() {
    let Some(objects) = objects("unfinished checksums") else {
        return;
    };
    for (mode, is_ip4, body) in cases() {
        let mut switch = switch(&objects.rack, mode, is_ip4, true);
        let request = request(is_ip4, body);
        let ran = switch
            .run(&request.unfinished_bytes(), 1)
            .expect("the packet runs");
        let mut expected = forwarded(&request, mode, &ran.bytes);
        // IPv4 has a word for "no checksum", and IPv6 has none.
        expected.has_checksum = !is_ip4;
        assert_eq!(
            (ran.action, ran.bytes),
            (TX, expected.bytes()),
            "{mode:?}, {body} bytes"
        );
    }
}

#[test]
fn a_whole_checksum_stays_one() {
    let Some(objects) = objects("whole checksums") else {
        return;
    };
    for (mode, is_ip4, body) in cases() {
        let mut switch = switch(&objects.rack, mode, is_ip4, true);
        let request = request(is_ip4, body);
        let ran = switch.run(&request.bytes(), 1).expect("the packet runs");
        let expected = forwarded(&request, mode, &ran.bytes);
        assert_eq!((ran.action, ran.bytes), (TX, expected.bytes()));
    }
}

#[test]
fn where_no_device_is_virtual_nothing_is_finished() {
    let Some(objects) = objects("checksums of wires") else {
        return;
    };
    for (mode, is_ip4, body) in cases() {
        let mut switch = switch(&objects.rack, mode, is_ip4, false);
        let request = request(is_ip4, body);
        let ran = switch
            .run(&request.unfinished_bytes(), 1)
            .expect("the packet runs");
        let right = forwarded(&request, mode, &ran.bytes);
        assert_ne!(ran.bytes, right.bytes(), "a wrong checksum stays wrong");
        assert_eq!(switch.registers().expect("registers").counts.requests, 1);
    }
}
