//! A switch in the kernel that outlives its process, and servers that come to it and go.

use super::racking_members::ordered;
use super::racking_xdp::net::{Host, enter_namespace, shell};
use super::racking_xdp::{
    CLIENT, LISTEN, SERVERS, alone_in_namespaces, await_load, await_servers, await_status,
    has_program, in_namespaces, rack_args, refused_by, requests, server, status, stop, wire_to,
};
use super::serving::{Serving, count};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use std::process::{Command, Output};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

const INTERFACES: &str = "p2,p10,p11";

/// A client, two servers and the wires between them and the switch.
struct Room {
    hosts: Vec<Host<()>>,
    signals: Vec<SyncSender<i32>>,
    client: Option<Host<Value>>,
    _folder: tempfile::TempDir,
    ctl: String,
}

impl Room {
    /// A client that sends for so long, once it begins.
    fn new(duration: &'static str, timeout: &'static str) -> Self {
        enter_namespace();
        let (hosts, signals): (Vec<_>, Vec<_>) = SERVERS.map(server).into_iter().unzip();
        let client = Host::start(CLIENT, move || {
            let url = format!("udp://{LISTEN}");
            let load = ["load", &url, "--workload", "shenango-bimodal"];
            let rate = [
                "--rate",
                "400",
                "--duration",
                duration,
                "--timeout",
                timeout,
            ];
            super::json(&[&load[..], &rate, &["--format", "json"]].concat())
        });
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        wire_to(&[&client]);
        hosts.iter().for_each(Host::begin);
        let folder = tempfile::tempdir().expect("a folder");
        let ctl = folder
            .path()
            .join("rack")
            .to_str()
            .expect("a path")
            .to_owned();
        await_servers(&signals);
        Self {
            hosts,
            signals,
            client: Some(client),
            _folder: folder,
            ctl,
        }
    }

    fn rack(&self, more: &[&str]) -> Serving {
        self.rack_on(INTERFACES, more)
    }

    fn rack_on(&self, interfaces: &str, more: &[&str]) -> Serving {
        let ctl = ["--ctl", &self.ctl];
        Serving::start_command(&rack_args(interfaces, &[&ctl[..], more].concat()))
    }

    fn begin(&self) {
        self.client.as_ref().expect("it has not ended").begin();
    }

    fn run(&mut self) -> Value {
        self.client.take().expect("it has not ended").end()
    }

    fn end(self) {
        drop(self.signals);
        self.hosts.into_iter().for_each(Host::end);
    }
}

fn headway(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headway"))
        .args(args)
        .output()
        .expect("headway runs")
}

fn detach() -> (Option<i32>, String) {
    let output = headway(&["rack", "detach", LISTEN]);
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_switch_goes_on_in_the_kernel_and_the_next_process_takes_it_up() {
    in_namespaces("a killed headway rack --xdp", || {
        let mut room = Room::new("6s", "60s");
        let mut rack = room.rack(&[]);
        room.begin();
        await_load(&room.ctl);
        let before = await_status(&room.ctl, "both types are known", |status| {
            let types = status["types"].as_array().expect("types");
            types.len() == 2 && types.iter().all(|of_type| of_type["mean_us"].is_number())
        });
        rack.kill();
        assert!(has_program("p2") && has_program("p10"), "it stays attached");
        std::thread::sleep(Duration::from_millis(500));
        let rack = room.rack(&[]);
        // It goes on with the counts and the profile, and does not learn them anew.
        let after = status(&room.ctl);
        assert!(requests(&after) > requests(&before), "{after}");
        let means = |status: &Value| {
            let types = status["types"].as_array().expect("types").clone();
            types.iter().all(|of_type| of_type["mean_us"].is_number()) && types.len() == 2
        };
        assert!(means(&after), "{after}");
        let run = room.run();
        assert_eq!(count(&run, "lost"), 0, "{run}");
        let last = await_status(&room.ctl, "all are counted", |status| {
            status["counts"]["answered"].as_u64() == Some(count(&run, "answered"))
        });
        assert_eq!(requests(&last), count(&run, "sent"), "{last}");
        for fate in ["unexpected", "spoofed", "shed", "expired"] {
            assert_eq!(last["counts"][fate], 0, "{last}");
        }
        stop(rack);
        wait_until("nothing is left of it", || {
            !has_program("p10") && !has_program("p11")
        });
        let (code, said) = detach();
        assert_eq!(code, Some(2), "{said}");
        room.end();
    });
}

#[test]
fn what_nobody_takes_up_is_detached_by_order_and_passes_packets_on_when_its_lease_has_run_out() {
    alone_in_namespaces("the lease of headway rack --xdp", || {
        let mut room = Room::new("1s", "2s");
        let mut rack = room.rack(&["--lease", "2s"]);
        let (code, said) = detach();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("another process runs"), "{said}");
        rack.kill();
        assert!(has_program("p2") && has_program("p10"));
        std::thread::sleep(Duration::from_secs(4));
        room.begin();
        let run = room.run();
        assert_eq!(count(&run, "answered"), 0, "nobody's switch: {run}");
        assert!(has_program("p10"));
        let (code, said) = detach();
        assert_eq!(code, Some(0), "{said}");
        wait_until("it is detached", || {
            !has_program("p10") && !has_program("p11")
        });
        // The client's interface went with it. A start that fails leaves a switch alone, and one that does not takes it up.
        let mut rack = room.rack_on("p10,p11", &["--lease", "1s"]);
        rack.kill();
        std::thread::sleep(Duration::from_secs(2));
        shell("ip link add px type veth peer name py; ip link set dev px up");
        let mut other = rack_args("px", &[]);
        other.truncate(5);
        other[2] = "10.77.0.1:7200";
        let refused = refused_by(
            &[],
            &[&other[..], &["--server", "10.77.0.10:6000"]].concat(),
        );
        assert!(refused.contains("is reached by p10"), "{refused}");
        assert!(
            has_program("p10"),
            "a start that fails ends nobody's switch"
        );
        let rack = room.rack_on("p10,p11", &["--lease", "1s"]);
        rack.signal(libc::SIGTERM);
        let (code, said) = rack.end();
        assert_eq!(code, Some(0), "{said}");
        for part in ["goes on with its tables", "lease had run out"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        wait_until("it is gone", || !has_program("p10"));
        room.end();
    });
}

/// It renews the lease several times while it lasts.
#[test]
fn a_switch_of_the_shortest_lease_answers_all_while_its_process_lives() {
    in_namespaces("the shortest lease of headway rack --xdp", || {
        let mut room = Room::new("4s", "60s");
        let rack = room.rack(&["--lease", "1s"]);
        room.begin();
        let run = room.run();
        assert_eq!(count(&run, "lost"), 0, "{run}");
        rack.signal(libc::SIGTERM);
        let (code, said) = rack.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("lease had run out"), "{said}");
        room.end();
    });
}

#[test]
fn servers_come_to_the_kernels_switch_drain_and_go() {
    in_namespaces("the servers of headway rack --xdp", || {
        let mut room = Room::new("4s", "60s");
        let (one, two) = ("10.77.0.10:6000", "10.77.0.11:6000");
        let ctl = room.ctl.clone();
        let names = |status: &Value| {
            let servers = status["servers"].as_array().expect("servers").clone();
            let name = |server: &Value| server["server"].as_str().expect("a name").to_owned();
            servers.iter().map(name).collect::<Vec<_>>()
        };
        let mut args = rack_args(INTERFACES, &["--ctl", &ctl, "--silence", "0ms"]);
        // Without the second server.
        args.drain(7..9);
        let rack = Serving::start_command(&args);
        room.begin();
        await_load(&ctl);
        assert_eq!(names(&status(&ctl)), [one]);
        assert_eq!(ordered(&ctl, "add", two)["state"], "serves");
        await_status(&ctl, "both serve", |status| {
            let groups = |at: usize| status["servers"][at]["group_cores"].to_string();
            status["servers"].as_array().expect("servers").len() == 2 && groups(1).contains('1')
        });
        ordered(&ctl, "drain", one);
        await_status(&ctl, "the first one left", |status| names(status) == [two]);
        let run = room.run();
        assert_eq!(count(&run, "lost"), 0, "{run}");
        await_status(&ctl, "all are counted", |status| {
            status["counts"]["answered"].as_u64() == Some(count(&run, "answered"))
        });
        assert_eq!(ordered(&ctl, "add", one)["state"], "serves");
        let removed = ordered(&ctl, "remove", two);
        assert_eq!(
            (&removed["state"], &removed["lost"]),
            (&"removed".into(), &0.into())
        );
        await_status(&ctl, "it is gone", |status| names(status) == [one]);
        stop(rack);
        room.end();
    });
}

/// The arguments of a switch of these servers that has so many places.
fn args_of<'a>(ctl: &'a str, servers: &[&'a str], places: &'a str) -> Vec<&'a str> {
    let more = ["--ctl", ctl, "--most-servers", places];
    let mut args = rack_args(INTERFACES, &more);
    args.drain(5..9);
    let servers = servers.iter().flat_map(|&server| ["--server", server]);
    args.extend(servers);
    args
}

#[test]
fn the_next_process_keeps_silent_servers_that_were_added_and_refuses_what_has_no_place() {
    in_namespaces("the members that headway rack --xdp leaves", || {
        let mut room = Room::new("2s", "60s");
        let (one, two) = ("10.77.0.10:6000", "10.77.0.11:6000");
        let ctl = room.ctl.clone();
        let mut rack = Serving::start_command(&args_of(&ctl, &[one], "2"));
        assert_eq!(ordered(&ctl, "add", two)["state"], "serves");
        room.signals[1].send(libc::SIGSTOP).expect("it runs");
        room.begin();
        await_status(&ctl, "the second one is silent", |status| {
            status["servers"][1]["silent"] == true
        });
        std::thread::sleep(Duration::from_millis(500));
        rack.kill();
        let three = "10.77.0.11:6001";
        let refused = refused_by(&[], &args_of(&ctl, &[one, three], "2"));
        for part in [
            "--most-servers",
            "there is no place for 10.77.0.11:6001",
            "at least 3",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        let rack = Serving::start_command(&args_of(&ctl, &[one], "2"));
        let now = status(&ctl);
        let servers = now["servers"].as_array().expect("servers");
        let names: Vec<_> = servers.iter().map(|server| &server["server"]).collect();
        assert_eq!(names, [one, two], "{now}");
        assert_eq!(servers[1]["state"], "serves", "{now}");
        room.signals[1]
            .send(libc::SIGCONT)
            .expect("it stands still");
        room.run();
        await_status(&ctl, "the second one is back", |status| {
            status["servers"][1]["silent"] == false
        });
        rack.signal(libc::SIGTERM);
        let (code, said) = rack.end();
        assert_eq!(code, Some(0), "{said}");
        let stays = format!("{two} is not in the settings any more");
        assert!(said.contains(&stays), "{said}");
        room.end();
    });
}

#[test]
fn without_a_file_system_for_pins_the_switch_ends_with_its_process() {
    in_namespaces("headway rack --xdp without a BPF file system", || {
        unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
        shell("mount --make-rprivate /; mount -t tmpfs none /sys/fs");
        let room = Room::new("1s", "1s");
        let mut rack = room.rack(&[]);
        assert!(has_program("p10"));
        rack.kill();
        let (_, said) = rack.end();
        assert!(said.contains("the switch ends with this process"), "{said}");
        assert!(said.contains("mount -t bpf"), "{said}");
        wait_until("nothing is left", || {
            !has_program("p10") && !has_program("p11")
        });
        let client = room.client.as_ref().expect("a client");
        client.begin();
        room.end();
    });
}

/// The kernel takes an address from its table without a doubt until a packet of its own does not get there.
#[test]
fn a_server_with_a_new_ethernet_address_gets_requests_again() {
    in_namespaces("a new Ethernet address behind headway rack --xdp", || {
        let room = Room::new("1s", "60s");
        let rack = room.rack(&["--silence", "0ms"]);
        let host = &room.hosts[0];
        // Its doubts come sooner here than in half a minute.
        shell(
            "for of in p10 p11; do
                echo 500 > /proc/sys/net/ipv4/neigh/$of/base_reachable_time_ms
                echo 1 > /proc/sys/net/ipv4/neigh/$of/delay_first_probe_time
            done",
        );
        let inside = format!(
            "nsenter --net=/proc/{}/task/{}/ns/net",
            std::process::id(),
            host.task()
        );
        shell(&format!(
            "{inside} ip link set dev e0 address 02:00:00:00:09:10"
        ));
        let new = || shell("ip neigh show dev p10").contains("02:00:00:00:09:10");
        wait_until("the kernel knows the new address", new);
        // The switch looks every second.
        std::thread::sleep(Duration::from_secs(3));
        room.begin();
        let mut room = room;
        let run = room.run();
        assert_eq!(count(&run, "lost"), 0, "{run}");
        stop(rack);
        room.end();
    });
}
