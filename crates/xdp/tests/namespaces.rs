//! The program on real interfaces: a client, a switch and four servers in network namespaces.

mod common;

use aya::programs::SchedClassifier;
use aya::programs::tc::TcAttachType;
use common::net::*;
use common::settings::{settings, tables_over};
use common::*;
use headway_machine::thread::uninterrupted;
use headway_net::header::{Flag, Header, Status};
use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, Demand, Grouping, RackLayout, Shaper, Turns};
use headway_xdp::{
    HiddenTags, Mode, Neighbour, Registers, SwitchPins, XdpCounts, XdpMode, XdpSwitch,
    XdpSwitchConfig, XdpTables, pinned_switches, tables_of, takes_redirected,
};
use nix::sys::socket::{setsockopt, sockopt};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENT: u8 = 2;
const FIRST_SERVER: u8 = 10;
/// Cores of the four servers, which are their turns in a round.
const CORES: [usize; 4] = [3, 1, 2, 2];
const SERVICE_PORT: u16 = 6000;

fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, host], port))
}

fn config(mode: Mode) -> XdpSwitchConfig {
    XdpSwitchConfig {
        own_ip4: Some([10, 77, 0, 1].into()),
        own_ip6: None,
        ..settings(mode)
    }
}

/// The switch's links to the four servers.
fn neighbours() -> Vec<Neighbour> {
    (0..4)
        .map(|server| {
            let host = FIRST_SERVER + server;
            Neighbour {
                address: at(host, SERVICE_PORT),
                mac: host_mac(host),
                ifindex: ifindex(&format!("p{host}")),
                own_mac: switch_mac(host),
            }
        })
        .collect()
}

/// Tables over servers with `cores` each.
fn tables(cores: &[usize; 4]) -> XdpTables {
    tables_over(cores, &neighbours())
}

/// Answers requests until the flag is set and none is left, and returns their number. The response's body is the server's number. `listening` counts the
/// servers that have their port.
fn serve(number: u8, listening: &AtomicU64, stop: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind(at(number, SERVICE_PORT)).expect("the port");
    // The client does not wait for clones: beside other work a thousand may come before this thread runs.
    setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20)).expect("a receive buffer");
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a timeout");
    listening.fetch_add(1, Ordering::Release);
    let (mut buffer, mut answered) = ([0; 2048], 0);
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            if stop.load(Ordering::Relaxed) {
                return answered;
            }
            continue;
        };
        let (header, _) = Header::parse(&buffer[..length]).expect("a header");
        let response = header.response(Status::Ok, 8_000).encode();
        let datagram = [&response[..], &[number]].concat();
        socket.send_to(&datagram, from).expect("sent");
        answered += 1;
    }
}

/// The client's results.
struct Seen {
    /// Responses by server.
    of_server: [u64; 4],
    /// Requests that servers got, clones among them.
    served: u64,
    registers: Registers,
}

/// Sends requests one after the other; every one must be answered, with its own index.
fn ask(requests: u32) -> Seen {
    stay_on_cpu(0);
    let socket = UdpSocket::bind(at(CLIENT, 9000)).expect("the port");
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    let mut seen = Seen {
        of_server: [0; 4],
        served: 0,
        registers: Registers {
            counts: XdpCounts::default(),
            types: Vec::new(),
            servers: Vec::new(),
            unknown_bytes: Vec::new(),
        },
    };
    let mut buffer = [0; 64];
    for index in 0..requests {
        let header = Header {
            class: 0,
            flag: Flag::REQUEST,
            index: index << 8 | 0x5a,
            time_ns: 0,
        };
        socket.send_to(&header.encode(), at(1, 7777)).expect("sent");
        let length = uninterrupted(|| socket.recv(&mut buffer)).expect("no request is lost");
        let (response, body) = Header::parse(&buffer[..length]).expect("a header");
        assert_eq!((response.index, response.time_ns), (header.index, 8_000));
        assert_eq!(response.flag, Flag::response(Status::Ok));
        seen.of_server[usize::from(body[0] - FIRST_SERVER)] += 1;
    }
    seen
}

/// The setup of a rack.
struct Load {
    requests: u32,
    config: XdpSwitchConfig,
    /// Makes the first tables, once there are interfaces.
    first: fn() -> XdpTables,
    /// Whether the hosts leave their checksums to hardware, as every veth pair does that nobody configured.
    offloads: bool,
}

impl Load {
    fn new(mode: Mode, requests: u32) -> Self {
        Self {
            requests,
            config: config(mode),
            first: || tables(&CORES),
            offloads: false,
        }
    }
}

/// A rack under load: returns the client's results. `meanwhile` runs in the switch's namespace with the switch, again and again.
fn run_rack(object: &[u8], load: &Load, mut meanwhile: impl FnMut(&mut XdpSwitch)) -> Seen {
    let &Load {
        requests,
        config,
        first,
        offloads,
    } = load;
    enter_namespace();
    // Responses of direct servers come past the switch, by the kernel.
    shell("echo 1 > /proc/sys/net/ipv4/ip_forward");
    let stop = Arc::new(AtomicBool::new(false));
    let listening = Arc::new(AtomicU64::new(0));
    let servers: Vec<_> = (0..4)
        .map(|server| {
            let (number, stop) = (FIRST_SERVER + server, Arc::clone(&stop));
            let listening = Arc::clone(&listening);
            Host::start(number, move || {
                leave_checksums(offloads);
                serve(number, &listening, &stop)
            })
        })
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&done);
    let client = Host::start(CLIENT, move || {
        leave_checksums(offloads);
        let seen = std::panic::catch_unwind(|| ask(requests));
        tell.store(true, Ordering::Relaxed);
        seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let mut interfaces: Vec<_> = servers.iter().map(Host::wire).collect();
    interfaces.push(client.wire());
    let client_mac = host_mac(CLIENT).map(|byte| format!("{byte:02x}")).join(":");
    shell(&format!(
        "ip route add 10.77.0.{CLIENT} dev p{CLIENT}; ip neigh add 10.77.0.{CLIENT} lladdr {client_mac} dev p{CLIENT}"
    ));
    servers.iter().for_each(|server| {
        shell(&format!("ip route add 10.77.0.{0} dev p{0}", server.number));
    });
    let mut switch = XdpSwitch::load(object, &config).expect("the program loads");
    switch.publish(&first()).expect("published");
    for interface in &interfaces {
        let tags = switch.attach(interface, XdpMode::Driver).expect("attached");
        // Linux 6.3 tells of both. A program that its verifier refused would be left out in silence.
        let sees_tags = takes_redirected(interface).is_some();
        assert_eq!(tags == HiddenTags::Dropped, sees_tags);
    }
    servers.iter().for_each(Host::begin);
    wait_until("the servers have their ports", || {
        listening.load(Ordering::Acquire) == 4
    });
    client.begin();
    while !done.load(Ordering::Relaxed) {
        meanwhile(&mut switch);
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut seen = client.end();
    if config.mode == Mode::Nat {
        wait_until("all clones came back", || {
            let counts = switch.registers().expect("registers").counts;
            counts.answered + counts.filtered >= counts.requests + counts.cloned
        });
    }
    stop.store(true, Ordering::Relaxed);
    seen.served = servers.into_iter().map(Host::end).sum();
    seen.registers = switch.registers().expect("registers");
    seen
}

/// Has this host's device leave checksums to hardware.
fn leave_checksums(offloads: bool) {
    if offloads {
        shell("ethtool -K e0 tx on");
    }
}

/// Every request was served once, and the registers say so.
fn check(seen: &Seen, mode: Mode, requests: u64) {
    let registers = &seen.registers;
    assert_eq!(seen.served, requests, "no request twice");
    assert_eq!(registers.counts.requests, requests);
    assert_eq!(registers.types[0].count, requests);
    let of_nat = |count| if mode == Mode::Nat { count } else { 0 };
    assert_eq!(registers.counts.answered, of_nat(requests));
    assert_eq!(registers.types[0].execution_ns, of_nat(8_000));
}

/// Runs a test in a thread, and so in namespaces that end with it; prints the reason where that is impossible.
fn in_namespaces(test: &str, body: impl FnOnce(Vec<u8>) + Send + 'static) {
    let Some(objects) = objects(test) else {
        return;
    };
    if let Some(why) = missing() {
        println!("SKIPPED {test}: {why}");
        return;
    }
    let thread = std::thread::spawn(move || body(objects.rack));
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn turns_are_exact_and_nothing_is_lost() {
    in_namespaces("a rack in namespaces", |object| {
        for mode in [Mode::Nat, Mode::Direct] {
            let object = object.clone();
            let rack =
                std::thread::spawn(move || run_rack(&object, &Load::new(mode, 8_000), |_| ()));
            let seen = rack.join().expect("the rack");
            check(&seen, mode, 8_000);
            assert_eq!(seen.of_server, CORES.map(|cores| cores as u64 * 1_000));
        }
    });
}

#[test]
fn checksums_left_to_hardware_lose_nothing() {
    in_namespaces("offloads of veth pairs", |object| {
        for mode in [Mode::Nat, Mode::Direct] {
            let object = object.clone();
            let mut load = Load::new(mode, 800);
            load.offloads = true;
            load.config.unfinished_checksums = true;
            let rack = std::thread::spawn(move || run_rack(&object, &load, |_| ()));
            check(&rack.join().expect("the rack"), mode, 800);
        }
    });
}

/// What the device does not take is dropped without a count.
#[test]
fn a_veth_pair_takes_redirected_packets_while_its_peer_has_gro() {
    if let Some(why) = missing() {
        println!("SKIPPED devices that take redirected packets: {why}");
        return;
    }
    let takes = std::thread::spawn(|| {
        enter_namespace();
        shell(
            "ip link add a0 type veth peer name b0; ip link set dev a0 up; ip link set dev b0 up",
        );
        let take = |gro: &str| {
            shell(&format!("ethtool -K b0 gro {gro}"));
            takes_redirected("a0")
        };
        (
            take("on"),
            take("off"),
            take("on"),
            takes_redirected("none"),
        )
    });
    let takes = takes.join().expect("the devices");
    if takes.0.is_none() {
        println!("SKIPPED devices that take redirected packets: it needs Linux 6.3");
        return;
    }
    assert_eq!(takes, (Some(true), Some(false), Some(true), None));
}

#[test]
fn tables_change_under_load_and_nothing_is_lost() {
    in_namespaces("tables under load", |object| {
        let mut changes = 0;
        let seen = run_rack(&object, &Load::new(Mode::Nat, 20_000), move |switch| {
            changes += 1;
            // Alternates between two servers and all four, in other proportions.
            let cores = [[2, 2, 0, 0], [1, 2, 3, 4], [0, 0, 0, 5], CORES];
            let next = tables(&cores[changes % 4]);
            switch.publish(&next).expect("published");
            assert_eq!(switch.generation(), changes as u64 + 1);
        });
        check(&seen, Mode::Nat, 20_000);
        assert_eq!(seen.of_server.iter().sum::<u64>(), 20_000);
        assert!(seen.of_server.iter().all(|&count| count > 0));
    });
}

/// Two groups, a core of each server for either; every request of type 0 beyond the first is a burst, and type 1 has no bursts.
fn tables_of_bursts() -> XdpTables {
    let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
    let demand = Demand::declared(&[hint(1e18, 0.5), hint(2e18, 0.5)]);
    let layout = RackLayout::new(&[1; 4], 1).updated(&[2, 2], &[None, None]);
    let mut shaper = Shaper::new(2, 4, Turns::Even, EVERY, 1);
    shaper.install(&Grouping::new(&[0, 1], &demand), &layout, &demand);
    tables_of(&shaper, 2, &[0, 1], &neighbours()).expect("they fit")
}

/// One window that lasts for ever.
const EVERY: Cloning = Cloning::Longer(1_000_000_000_000_000_000);

#[test]
fn the_excess_of_a_burst_reaches_two_servers_and_is_answered_once() {
    in_namespaces("clones", |object| {
        let config = XdpSwitchConfig {
            types: 2,
            cloning: EVERY,
            overflows: false,
            unfinished_checksums: false,
            ..config(Mode::Nat)
        };
        let load = Load {
            requests: 2_000,
            config,
            first: tables_of_bursts,
            offloads: false,
        };
        let seen = run_rack(&object, &load, |_| ());
        let Registers { counts, types, .. } = seen.registers;
        // Two cores finish two requests in a window.
        assert_eq!((counts.requests, counts.cloned), (2_000, 1_998));
        assert_eq!(seen.served, 2_000 + 1_998);
        assert_eq!((counts.answered, counts.filtered), (2_000, 1_998));
        assert_eq!(
            (counts.unexpected, counts.shed, types[0].count),
            (0, 0, 2_000)
        );
    });
}

/// Whether the interface has a program for received packets: in the driver, in the network stack, or in a queueing discipline.
fn has_program(interface: &str) -> bool {
    let of_driver = shell(&format!("ip -details link show dev {interface}")).contains("xdp");
    let (_, of_stack) = SchedClassifier::query_tcx(interface, TcAttachType::Ingress).expect("TCX");
    let discipline = shell(&format!("tc qdisc show dev {interface}")).contains("clsact");
    of_driver || !of_stack.is_empty() || discipline
}

/// Kernels may remove an attachment a moment after its last descriptor is closed.
fn wait_for_no_program(interface: &str) {
    wait_until("no program is left", || !has_program(interface));
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Set for the process that attaches and is killed.
const VICTIM: &str = "HEADWAY_XDP_VICTIM";

#[test]
fn a_process_that_is_killed_leaves_nothing_behind() {
    in_namespaces("what a killed process leaves", |object| {
        let config = XdpSwitchConfig {
            cloning: EVERY,
            ..config(Mode::Nat)
        };
        if std::env::var_os(VICTIM).is_some() {
            let mut switch = XdpSwitch::load(&object, &config).expect("the program loads");
            switch.attach("pa", XdpMode::Driver).expect("attached");
            let (_, of_stack) =
                SchedClassifier::query_tcx("pa", TcAttachType::Ingress).expect("TCX");
            assert_eq!(of_stack.len(), 1, "the program that copies");
            assert!(shell("ip -details link show dev pa").contains("xdp"));
            nix::sys::signal::raise(nix::sys::signal::SIGKILL).expect("killed");
        }
        enter_namespace();
        shell("ip link add pa type veth peer name pb; ip link set dev pa up");
        let name = "a_process_that_is_killed_leaves_nothing_behind";
        let status = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args([name, "--exact"])
            .env(VICTIM, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .expect("the process starts");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(nix::sys::signal::SIGKILL as i32));
        wait_for_no_program("pa");
    });
}

/// The counterpart: what is pinned stays, with its program's lease, and a start that fails leaves no pins.
#[test]
fn a_pinned_switch_stays_until_it_is_removed_and_a_failed_load_pins_nothing() {
    in_namespaces("what a pinned switch leaves", |object| {
        enter_namespace();
        shell("ip link add pa type veth peer name pb; ip link set dev pa up");
        let at = SocketAddr::from(([10, 77, 0, 1], 7777));
        let pins = || SwitchPins::take(at, Duration::from_secs(60));
        let Ok(first) = pins() else {
            println!("SKIPPED what a pinned switch leaves: no BPF file system");
            return;
        };
        let impossible = XdpSwitchConfig {
            cloning: EVERY,
            ..config(Mode::Direct)
        };
        assert!(XdpSwitch::load_pinned(&object, &impossible, first).is_err());
        assert_eq!(pinned_switches(Some(at)).expect("a namespace").len(), 0);
        let cloning = XdpSwitchConfig {
            cloning: EVERY,
            ..config(Mode::Nat)
        };
        let load =
            || XdpSwitch::load_pinned(&object, &cloning, pins().expect("the folder is free"));
        let mut switch = load().expect("loaded");
        assert_eq!(switch.generation(), 0);
        switch.renew_lease().expect("renewed");
        switch.attach("pa", XdpMode::Driver).expect("attached");
        assert!(pins().is_err(), "somebody has the switch");
        drop(switch);
        assert!(has_program("pa"), "it stays");
        let mut again = load().expect("loaded again");
        again.attach("pa", XdpMode::Driver).expect("in its place");
        assert_eq!(again.renew_lease().expect("renewed"), 0);
        again.unpin();
        drop(again);
        wait_for_no_program("pa");
        assert_eq!(pinned_switches(Some(at)).expect("a namespace").len(), 0);
    });
}

#[test]
fn an_interface_that_cannot_be_had_is_named() {
    in_namespaces("interfaces", |object| {
        enter_namespace();
        shell("ip link add pa type veth peer name pb");
        let mut first = XdpSwitch::load(&object, &config(Mode::Nat)).expect("the program loads");
        let mut second = XdpSwitch::load(&object, &config(Mode::Nat)).expect("the program loads");
        let error = first
            .attach("none", XdpMode::Default)
            .expect_err("no such interface");
        assert!(error.to_string().contains("`ip link show none`"), "{error}");
        first.attach("pa", XdpMode::Default).expect("attached");
        let error = second
            .attach("pa", XdpMode::Default)
            .expect_err("it has a program");
        assert!(error.to_string().contains("interface pa"), "{error}");
        drop(first);
        wait_for_no_program("pa");
        second
            .attach("pa", XdpMode::Default)
            .expect("it is free again");
        drop(second);
        wait_for_no_program("pa");
    });
}
