//! `headway rack --listen xdp://DEVICE:PORT`: the switch in user space on a device, with clients and servers on a host behind it.
//! Also `--xdp --direct`, where responses bypass the switch.

use super::agents::{KEY, key_file};
use super::errors::refused;
use super::racking_xdp::net::{Host, enter_namespace, shell};
use super::racking_xdp::{
    CLIENT, LISTEN, SERVERS, await_load, await_second, await_servers, await_status, empty_cache,
    has_no_program_soon, has_program, in_namespaces, rack_args, refused_by, server_with, status,
    wire_to,
};
use super::serving::{Serving, count, figure};
use headway_machine::thread::uninterrupted;
use serde_json::Value;
use std::collections::HashSet;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tests of a switch that spins take turns.
static TURN: Mutex<()> = Mutex::new(());

fn in_turn(test: &'static str, body: impl FnOnce() + Send + 'static) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    in_namespaces(test, body);
}

/// A host with two servers at ports 6000 and 6001, and a client with a separate address. The device ends with the host.
struct DeviceRack {
    /// The number of requests that each server served.
    host: Host<[u64; 2]>,
    is_up: Receiver<()>,
    /// Each message starts a load with this rate.
    go: Sender<&'static str>,
    /// Loads follow each other as long as this is set.
    goes_on: Arc<AtomicBool>,
    found: Receiver<Vec<Value>>,
    /// Each message sends a signal to a server, even during a load.
    signals: Sender<(usize, i32)>,
}

impl DeviceRack {
    fn start(servers: &[&str]) -> Self {
        let servers: Vec<String> = servers.iter().map(|&arg| arg.to_owned()).collect();
        let ((up, is_up), (finds, found)) = (channel(), channel());
        let (go, wait) = channel::<&str>();
        let goes_on = Arc::<AtomicBool>::default();
        let another = Arc::clone(&goes_on);
        let (signals, to_send) = channel::<(usize, i32)>();
        let host = Host::start(CLIENT, move || {
            shell(
                "ip address add 10.77.0.99/24 dev e0
                 ip route replace 10.77.0.1/32 dev e0 src 10.77.0.99",
            );
            let started = ["6000", "6001"].map(|port| {
                let listen = format!("udp://10.77.0.2:{port}");
                let serve = ["serve", "--listen", &listen, "--app", "spin"];
                let rest = ["--workers", "1", "--pin", "off", "--no-ctl"];
                let more: Vec<&str> = servers.iter().map(String::as_str).collect();
                Serving::start_command(&[&serve[..], &rest, &more].concat())
            });
            up.send(()).expect("the test waits");
            std::thread::scope(|scope| {
                let servers = &started;
                scope.spawn(move || {
                    for (server, signal) in to_send {
                        servers[server].signal(signal);
                    }
                });
                for rate in &wait {
                    let url = format!("udp://{LISTEN}");
                    let load = ["load", &url, "--workload", "shenango-bimodal"];
                    let rate = ["--rate", rate, "--duration", "2s", "--timeout", "10s"];
                    let load = [&load[..], &rate, &["--format", "json"]].concat();
                    let mut runs = vec![super::json(&load)];
                    while another.load(Ordering::Acquire) {
                        runs.push(super::json(&load));
                    }
                    finds.send(runs).expect("the test waits");
                }
            });
            started.map(|server| {
                server.signal(libc::SIGTERM);
                match server.end() {
                    // Killed by the test.
                    (None, _) => 0,
                    (code, said) => {
                        assert_eq!(code, Some(0), "{said}");
                        figure(&said, "served ")
                    }
                }
            })
        });
        assert_eq!(host.wire(), "p2");
        shell("ip address add 10.77.0.1/24 dev p2");
        host.begin();
        is_up.recv().expect("the servers start");
        Self {
            host,
            is_up,
            go,
            goes_on,
            found,
            signals,
        }
    }

    /// Begins one load after the other.
    fn begin_loads(&self) {
        self.goes_on.store(true, Ordering::Release);
        self.go.send("1000").expect("the host waits");
    }

    fn finish_loads(&self) -> Vec<Value> {
        self.goes_on.store(false, Ordering::Release);
        self.found.recv().expect("the load ends")
    }

    fn load(&self) -> Value {
        self.go.send("2000").expect("the host waits");
        let mut runs = self.found.recv().expect("the load ends");
        runs.pop().expect("one load")
    }

    fn signal(&self, server: usize, signal: i32) {
        self.signals.send((server, signal)).expect("the host waits");
    }

    fn end(self) -> [u64; 2] {
        drop((self.go, self.is_up, self.signals));
        self.host.end()
    }
}

fn device_args<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    let rack = ["rack", "--listen", "xdp://p2:7100"];
    let servers = ["--server", "10.77.0.2:6000", "--server", "10.77.0.2:6001"];
    [&rack[..], &servers, rest].concat()
}

#[test]
fn a_switch_on_a_device_answers_all_whatever_the_policy_and_leaves_nothing() {
    for policy in ["pallas,clone=off", "racksched", "netclone"] {
        in_turn("headway rack --listen xdp://", move || {
            enter_namespace();
            let rack = DeviceRack::start(&["--policy", "c-fcfs"]);
            let folder = tempfile::tempdir().expect("a folder");
            let ctl = folder.path().join("rack");
            let ctl = ctl.to_str().expect("a plain path");
            let args = device_args(&["--policy", policy, "--ctl", ctl, "--silence", "0ms"]);
            let mut switch = Serving::start_command(&args);
            assert_eq!(switch.url, "xdp://p2:7100");
            assert!(has_program("p2"));
            let run = rack.load();
            assert_eq!(count(&run, "lost"), 0, "{policy}: {run}");
            assert_eq!(count(&run, "duplicates"), 0, "{policy}: {run}");
            assert!(count(&run, "sent") > 2_000, "{run}");
            let status = status(ctl);
            let counted = |name: &str| status["counts"][name].as_u64().expect("a count");
            assert_eq!(counted("requests"), count(&run, "sent"));
            assert_eq!(counted("answered"), count(&run, "answered"));
            let lost = serde_json::json!({ "unsent": 0, "rejected": 0, "other_source": null });
            assert_eq!(status["port"], lost);
            switch.kill();
            has_no_program_soon("p2");
            let served = rack.end();
            let copies = counted("requests") + counted("cloned");
            assert_eq!(served.iter().sum::<u64>(), copies, "{policy}");
            assert!(served.iter().all(|&served| served > 0), "{served:?}");
        });
    }
}

#[test]
fn servers_that_stand_still_or_are_killed_leave_a_devices_turns() {
    in_turn("silent servers of headway rack --listen xdp://", || {
        enter_namespace();
        let rack = DeviceRack::start(&["--policy", "c-fcfs"]);
        let folder = tempfile::tempdir().expect("a folder");
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        let args = device_args(&["--policy", "pallas,clone=off", "--ctl", ctl]);
        let mut switch = Serving::start_command(&args);
        rack.begin_loads();
        await_load(ctl);
        rack.signal(1, libc::SIGSTOP);
        let left = await_second(ctl, "it leaves", |server| server["silent"] == true);
        // On a busy machine a server may be silent for want of a processor, too.
        assert!(left["counts"]["left"].as_u64() > Some(0), "{left}");
        await_status(ctl, "it is asked", |status| {
            status["counts"]["asked"].as_u64() > Some(0)
        });
        rack.signal(1, libc::SIGCONT);
        let back = await_second(ctl, "it returns", |server| server["silent"] == false);
        assert!(back["counts"]["returned"].as_u64() > Some(0), "{back}");
        rack.signal(1, libc::SIGKILL);
        let killed = await_second(ctl, "it dies", |server| server["silent"] == true);
        assert!(killed["counts"]["left"].as_u64() > Some(1), "{killed}");
        let runs = rack.finish_loads();
        for run in &runs {
            assert_eq!(count(run, "duplicates"), 0, "{run}");
        }
        // Only requests that the server held at the two moments are lost: once the control plane has laid the rack out without it, all are answered.
        let begun = Instant::now();
        while count(&rack.load(), "lost") > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{runs:?}");
        }
        switch.kill();
        has_no_program_soon("p2");
        let [first, second] = rack.end();
        assert!(first > 0 && second == 0, "the killed one says nothing");
    });
}

#[test]
fn a_server_that_stops_tells_a_devices_switch_first_and_nothing_is_lost() {
    in_turn("agents of headway rack --listen xdp://", || {
        enter_namespace();
        let folder = tempfile::tempdir().expect("a folder");
        let key = key_file(folder.path(), "key", KEY, 0o600);
        let key = key.to_str().expect("a plain path");
        let joins = ["--rack", "10.77.0.1:7101", "--rack-key", key];
        let rack = DeviceRack::start(&[&["--policy", "c-fcfs"][..], &joins].concat());
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        let agents = ["--agents", "10.77.0.1:7101", "--agent-key", key];
        let rest = [&["--ctl", ctl][..], &agents].concat();
        let mut switch = Serving::start_command(&device_args(&rest));
        await_second(ctl, "its agent has an order", |server| {
            server["agent"]["order"].as_u64() > Some(0)
        });
        rack.begin_loads();
        await_load(ctl);
        rack.signal(1, libc::SIGTERM);
        let runs = rack.finish_loads();
        let last = await_second(ctl, "it leaves", |server| server["counted_cores"] == 0);
        assert_eq!(last["servers"][1]["agent"]["draining"], true, "{last}");
        for run in &runs {
            assert_eq!(count(run, "lost"), 0, "{run} {last}");
        }
        await_status(ctl, "all is counted", |status| {
            status["counts"]["answered"] == status["counts"]["requests"]
        });
        switch.kill();
        has_no_program_soon("p2");
        rack.end();
    });
}

#[test]
fn what_a_device_cannot_switch_is_one_sentence_with_its_remedy() {
    in_turn("what headway rack --listen xdp:// refuses", || {
        enter_namespace();
        let rack = DeviceRack::start(&["--policy", "c-fcfs"]);
        let says = |before: &[&str], args: &[&str], parts: &[&str]| {
            let said = refused_by(before, args);
            assert_eq!(said.trim().lines().count(), 1, "one sentence: {said}");
            for part in parts {
                assert!(said.contains(part), "{part:?} is not in: {said}");
            }
            has_no_program_soon("p2");
        };
        let args = device_args(&["--no-ctl"]);
        let mut nowhere = args.clone();
        nowhere[2] = "xdp://e9:7100";
        says(&[], &nowhere, &["--listen", "there is no device e9"]);
        let (_new, cache) = empty_cache();
        let no_path = ["env", "PATH=/nowhere", &cache];
        says(&no_path, &args, &["apt-get install clang"]);
        let no_caps = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        says(&no_caps, &args, &["--listen", "AF_XDP needs root"]);
        let own = ["--server", "10.77.0.1:6000"];
        says(
            &[],
            &[&args[..], &own].concat(),
            &["--server", "address of this machine"],
        );
        let nobody = ["--server", "10.9.9.9:1"];
        says(
            &[],
            &[&args[..], &nobody].concat(),
            &["--server", "no route to 10.9.9.9"],
        );
        let other = Host::start(SERVERS[0], || ());
        wire_to(&[&other]);
        let elsewhere = ["--server", "10.77.0.10:6000"];
        says(
            &[],
            &[&args[..], &elsewhere].concat(),
            &["--listen", "10.77.0.10:6000 is reached by p10"],
        );
        other.begin();
        other.end();
        let in_kernel = ["--xdp", "p2"];
        says(
            &[],
            &[&args[..], &in_kernel].concat(),
            &["--listen", "leave --xdp out"],
        );
        let first = Serving::start_command(&args);
        let said = refused_by(&[], &args);
        assert!(said.contains("port 7100 of p2 is in use"), "{said}");
        let mut other = args.clone();
        other[2] = "xdp://p2:7200";
        let said = refused_by(&[], &other);
        assert!(said.contains("another process"), "{said}");
        // The first switch goes on.
        assert!(has_program("p2"));
        drop(first);
        has_no_program_soon("p2");
        rack.end();
    });
}

/// A switch without packets that goes on in silence is a switch that nobody restarts.
#[test]
fn a_device_that_is_removed_or_changed_ends_the_switch_with_the_reason() {
    in_turn("changes of a switch's device", || {
        enter_namespace();
        for (change, says) in [
            ("ethtool -L p2 rx 2", "ethtool -L p2"),
            (
                "ip link set dev p2 address 02:00:00:00:08:77",
                "address 02:00:00:00:08:02`",
            ),
            ("ip link delete dev p2", "device p2 was removed"),
        ] {
            let rack = DeviceRack::start(&["--policy", "c-fcfs"]);
            let args = device_args(&["--no-ctl", "--policy", "racksched"]);
            let switch = Serving::start_command(&args);
            shell(change);
            let (status, said) = switch.end();
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains(says), "{said}");
            rack.end();
        }
    });
}

/// Sends requests from an unconnected socket, and returns the number of responses from each server.
fn ask_by_anyone(requests: u32) -> Vec<u64> {
    let socket = UdpSocket::bind("10.77.0.2:0").expect("a socket");
    let patience = Some(Duration::from_secs(60));
    socket.set_read_timeout(patience).expect("a timeout");
    let mut by_server = vec![0; SERVERS.len()];
    let mut indices = HashSet::new();
    for index in 0..requests {
        let request = super::racking::request((index % 2) as u8, index);
        socket.send_to(&request, LISTEN).expect("sent");
        let mut buffer = [0; 64];
        let (length, from) = uninterrupted(|| socket.recv_from(&mut buffer)).expect("answered");
        assert!(length >= 6);
        let answered = u32::from_be_bytes(buffer[2..6].try_into().expect("four bytes"));
        assert!(indices.insert(answered) && answered == index);
        let server = SERVERS
            .iter()
            .position(|number| from == std::net::SocketAddr::from(([10, 77, 0, *number], 6000)));
        by_server[server.expect("in a server's name")] += 1;
    }
    by_server
}

/// A client whose load lasts this long. Returns the responses from each server, and what the load found.
fn client_for(load_s: u64) -> Host<(Vec<u64>, Value)> {
    Host::start(CLIENT, move || {
        let by_server = ask_by_anyone(400);
        let url = format!("udp://{LISTEN}");
        let load = ["load", &url, "--workload", "high-bimodal", "--direct"];
        let lasts = format!("{load_s}s");
        let rate = ["--rate", "500", "--duration", &lasts, "--timeout", "60s"];
        let run = super::json(&[&load[..], &rate, &["--format", "json"]].concat());
        (by_server, run)
    })
}

/// Under a silence of so many seconds, and a load of twice as many. Returns the status after it.
fn answered_by_servers(silence_s: u64) -> Value {
    enter_namespace();
    let folder = tempfile::tempdir().expect("a folder");
    let key = key_file(folder.path(), "key", KEY, 0o600);
    let key = key.to_str().expect("a plain path").to_owned();
    let joins = |number| {
        let more = ["--rack", "10.77.0.1:7101", "--rack-key", &key];
        server_with(number, more.map(str::to_owned).to_vec())
    };
    let (hosts, signals): (Vec<_>, Vec<_>) = SERVERS.map(joins).into_iter().unzip();
    let client = client_for(2 * silence_s);
    shell("ip address add 10.77.0.1/32 dev lo; sysctl -qw net.ipv4.ip_forward=1");
    wire_to(&hosts.iter().collect::<Vec<_>>());
    wire_to(&[&client]);
    hosts.iter().for_each(Host::begin);
    let ctl = folder.path().join("rack");
    let ctl = ctl.to_str().expect("a plain path");
    let direct = ["--direct", "--policy", "pallas,clone=off", "--ctl", ctl];
    let silence = format!("{silence_s}s");
    let silence = ["--silence", &silence];
    let agents = ["--agents", "10.77.0.1:7101", "--agent-key", &key];
    let types = ["--workload", "high-bimodal"];
    let rest = [&direct[..], &silence, &agents, &types].concat();
    let mut rack = Serving::start_command(&rack_args("p2,p10,p11", &rest));
    await_status(ctl, "both agents join", |status| {
        (0..2).all(|server| status["servers"][server]["agent"]["order"].as_u64() > Some(0))
    });
    await_servers(&signals);
    client.begin();
    let (by_server, run) = client.end();
    assert_eq!(by_server.iter().sum::<u64>(), 400);
    assert!(by_server.iter().all(|&count| count > 0), "{by_server:?}");
    assert_eq!(count(&run, "lost"), 0, "{run}");
    assert_eq!(count(&run, "duplicates"), 0, "{run}");
    assert!(count(&run, "answered") > 250, "{run}");
    // The counts are complete after two rounds of the relay.
    let asked = 400 + count(&run, "sent");
    let status = await_status(ctl, "all is counted", |status| {
        status["counts"]["requests"] == asked
            && status["under_way"] == 0
            && status["servers"][0]["unanswered"] == 0
    });
    rack.kill();
    drop(signals);
    hosts.into_iter().for_each(Host::end);
    status
}

#[test]
fn servers_answer_clients_themselves_where_that_is_wanted() {
    let mut silence_s = 2;
    loop {
        let (tell, told) = channel();
        in_turn("headway rack --xdp --direct", move || {
            tell.send(answered_by_servers(silence_s))
                .expect("the test waits");
        });
        // No server leaves, although the switch sees no response and the load lasts longer than the silence.
        match told.recv() {
            Ok(status) if status["counts"]["left"] != 0 => {
                // A busy machine keeps an agent from its report.
                silence_s *= 2;
                assert!(silence_s < 32, "{status}");
            }
            // Without privileges there is nothing to tell.
            _ => return,
        }
    }
}

#[test]
fn what_servers_cannot_answer_themselves_is_refused() {
    let rack = ["rack", "--server", "10.77.99.98:9", "--direct"];
    refused(&rack, &["--direct", "add --xdp DEV"]);
    let kernel = ["--xdp", "lo", "--listen", "10.77.99.99:7100"];
    let with = |rest: &[&'static str], parts: &[&str]| {
        refused(&[&rack[..], &kernel, rest].concat(), parts);
    };
    with(&[], &["--policy", "clone=off"]);
    let calm = ["--policy", "pallas,clone=off"];
    with(&calm, &["--direct", "--workload NAME|FILE"]);
    let types = [&calm[..], &["--workload", "high-bimodal"]].concat();
    with(&types, &["--direct", "--agent-key FILE", "--silence 0ms"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rack.toml");
    std::fs::write(&file, "server = [\"10.77.99.98:9\"]\ndirect = true\n").expect("written");
    let file = file.to_str().expect("a plain path");
    refused(&["rack", "-c", file], &["rack.toml:2: direct", "add --xdp"]);
}
