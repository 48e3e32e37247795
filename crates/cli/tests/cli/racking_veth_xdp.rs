//! `headway rack --xdp` on one end of a veth pair: what goes back by it, its MTU, and signals that come before it is attached.

use super::children::TestChild;
use super::racking_xdp::net::{Host, enter_namespace, shell};
use super::racking_xdp::{
    LISTEN, has_no_program_soon, in_namespaces, rack_args, refused_by, stop, wire_to,
};
use super::serving::Serving;
use headway_net::header::{Flag, Header, Status};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HOST: u8 = 10;
const REQUESTS: u32 = 20;

/// The switch's arguments, of the one server at the host.
fn args<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    let mut args = rack_args("p10", rest);
    args.drain(7..9);
    args
}

/// Asks a server of the same host, and returns how many answers there are.
fn ask_itself() -> u32 {
    let bound = |port: u16| {
        let socket = UdpSocket::bind(("10.77.0.10", port)).expect("the port");
        let patience = Some(Duration::from_secs(5));
        socket.set_read_timeout(patience).expect("a timeout");
        socket
    };
    let (client, server) = (bound(9000), bound(6000));
    let (mut answers, mut buffer) = (0, [0; 64]);
    for index in 0..REQUESTS {
        let request = Header {
            class: 0,
            flag: Flag::REQUEST,
            index,
            time_ns: 0,
        };
        client.send_to(&request.encode(), LISTEN).expect("sent");
        let Ok((length, from)) = server.recv_from(&mut buffer) else {
            return answers;
        };
        let (header, _) = Header::parse(&buffer[..length]).expect("a header");
        let response = header.response(Status::Ok, 1_000).encode();
        server.send_to(&response, from).expect("sent");
        answers += u32::from(client.recv(&mut buffer).is_ok());
    }
    answers
}

/// The other end has no XDP program, as of a host that nobody configured but for GRO.
#[test]
fn clients_and_servers_behind_one_veth_pair_reach_each_other() {
    in_namespaces("headway rack --xdp on one veth pair", || {
        enter_namespace();
        let host = Host::start(HOST, ask_itself);
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&[&host]);
        let (own, task) = (std::process::id(), host.task());
        let set_gro = |gro: &str| {
            shell(&format!(
                "nsenter --net=/proc/{own}/task/{task}/ns/net ethtool -K e0 gro {gro}"
            ));
        };
        if headway_xdp::takes_redirected("p10").is_none() {
            host.begin();
            host.end();
            return println!("SKIPPED one veth pair: it needs Linux 6.3");
        }
        set_gro("off");
        let said = refused_by(&[], &args(&[]));
        assert!(said.contains("device p10 sends no packets"), "{said}");
        set_gro("on");
        let rack = Serving::start_command(&args(&["--silence", "0ms"]));
        host.begin();
        assert_eq!(host.end(), REQUESTS);
        stop(rack);
    });
}

#[test]
fn an_mtu_that_is_too_large_for_a_program_is_named() {
    in_namespaces("the MTU of headway rack --xdp", || {
        enter_namespace();
        let host = Host::start(HOST, || ());
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&[&host]);
        let (own, task) = (std::process::id(), host.task());
        shell(&format!(
            "ip link set p10 mtu 9000; nsenter --net=/proc/{own}/task/{task}/ns/net ip link set e0 mtu 9000"
        ));
        let said = refused_by(&[], &args(&[]));
        for part in ["Its MTU", "os error", "mtu 1500"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        host.begin();
        host.end();
    });
}

/// The switch's folder in the BPF file system. No other test has its port.
fn pins() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/sys/fs/bpf/headway").ok()?;
    let mut folders = folders.flatten().map(|folder| folder.path());
    folders.find(|path| path.to_string_lossy().ends_with("-10-77-0-1-7143"))
}

#[test]
fn a_signal_while_the_kernels_switch_starts_leaves_nothing_pinned() {
    in_namespaces("a signal at the start of headway rack --xdp", || {
        enter_namespace();
        let host = Host::start(HOST, || ());
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&[&host]);
        let mut args = args(&[]);
        args[2] = "10.77.0.1:7143";
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        command.args(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut rack = TestChild::start(&mut command);
        let begun = Instant::now();
        while pins().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it pins");
            std::thread::sleep(Duration::from_millis(1));
        }
        rack.signal(libc::SIGTERM);
        assert_eq!(rack.wait().code(), Some(0));
        assert_eq!(pins(), None);
        has_no_program_soon("p10");
        host.begin();
        host.end();
    });
}
