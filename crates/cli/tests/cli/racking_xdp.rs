//! `headway rack --xdp`: a client, a switch and two servers in network namespaces, each the real command.

#[path = "../../../xdp/tests/common/net.rs"]
pub(super) mod net;
#[path = "../../../xdp/tests/common/vlan.rs"]
pub(super) mod vlan;

use super::agents::{KEY, key_file};
use super::errors::refused;
use super::serving::{Serving, count};
use net::{Host, enter_namespace, missing, shell};
use serde_json::Value;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub(super) const CLIENT: u8 = 2;
pub(super) const SERVERS: [u8; 2] = [10, 11];
pub(super) const LISTEN: &str = "10.77.0.1:7100";

/// Why the switch in the kernel cannot run here; none if it can.
fn cannot() -> Option<String> {
    let own = std::fs::metadata("/proc/self").expect("/proc");
    if own.uid() != 0 {
        return Some("attaching an XDP program needs root".into());
    }
    let needs = missing().map(str::to_owned);
    needs.or_else(|| headway_xdp::compile().err().map(|error| error.to_string()))
}

/// A switch that starts removes all those whose lease has run out, also of other namespaces: a test of such a one has nobody start any.
static STARTS: RwLock<()> = RwLock::new(());

/// As [`in_namespaces`], while no other test runs there.
pub(super) fn alone_in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    run_in_namespaces(test, body);
}

/// Runs a test in a thread, whose namespaces end with it. Prints why if the test cannot run.
pub(super) fn in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    let _beside = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    run_in_namespaces(test, body);
}

fn run_in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    if let Some(why) = cannot() {
        assert!(std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(), "{why}");
        println!("SKIPPED {test}: {why}");
        return;
    }
    let thread = std::thread::spawn(body);
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A server on a separate host. It gets the signals from the sender until that is dropped. A signal is sent once the server listens.
pub(super) fn server(number: u8) -> (Host<()>, SyncSender<i32>) {
    server_with(number, Vec::new())
}

/// The same server with more arguments.
pub(super) fn server_with(number: u8, more: Vec<String>) -> (Host<()>, SyncSender<i32>) {
    let (signals, wait) = sync_channel::<i32>(0);
    let host = Host::start(number, move || {
        let listen = format!("udp://10.77.0.{number}:6000");
        let listen = ["serve", "--listen", &listen, "--app", "spin"];
        let rest = [
            "--workers",
            "1",
            "--pin",
            "off",
            "--policy",
            "c-fcfs",
            "--no-ctl",
        ];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let serving = Serving::start_command(&[&listen[..], &rest, &more].concat());
        wait.iter().for_each(|signal| serving.signal(signal));
    });
    (host, signals)
}

/// Waits until the servers listen: the signal 0 does nothing.
pub(super) fn await_servers(signals: &[SyncSender<i32>]) {
    for server in signals {
        server.send(0).expect("the server starts");
    }
}

/// The switch's side of the wires to these hosts, with a route to each.
pub(super) fn wire_to(hosts: &[&Host<impl Send + 'static>]) {
    for host in hosts {
        let interface = host.wire();
        shell(&format!(
            "ip route add 10.77.0.{} dev {interface}",
            host.number
        ));
    }
}

pub(super) fn rack_args<'a>(interfaces: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let servers = ["--server", "10.77.0.10:6000", "--server", "10.77.0.11:6000"];
    let rack = ["rack", "--listen", LISTEN, "--xdp", interfaces];
    // Concurrent tests use the same port in separate namespaces, but control sockets by port share one folder.
    let no_ctl: &[&str] = if rest.contains(&"--ctl") {
        &[]
    } else {
        &["--no-ctl"]
    };
    [&rack[..], &servers, no_ctl, rest].concat()
}

pub(super) fn status(ctl: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_headway"))
        .args(["rack", "status", "--format", "json", "--switch", ctl])
        .output()
        .expect("headway runs");
    let text = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Ends a switch in order, so that nothing of it stays in the kernel.
pub(super) fn stop(rack: Serving) {
    rack.signal(libc::SIGTERM);
    let (code, said) = rack.end();
    assert_eq!(code, Some(0), "{said}");
}

/// Whether a switch's program is still attached to the interface.
pub(super) fn has_program(interface: &str) -> bool {
    let driver = shell(&format!("ip -details link show dev {interface}")).contains("xdp");
    driver || shell(&format!("tc qdisc show dev {interface}")).contains("clsact")
}

/// Kernels may remove an attachment a moment after the last that holds it is gone.
pub(super) fn has_no_program_soon(interface: &str) {
    let begun = Instant::now();
    while has_program(interface) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{interface}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_rack_in_the_kernel_is_shaped_and_nothing_is_left_of_it_when_it_ends() {
    in_namespaces("headway rack --xdp", || {
        enter_namespace();
        let (hosts, signals): (Vec<_>, Vec<_>) = SERVERS.map(server).into_iter().unzip();
        let client = Host::start(CLIENT, || {
            let url = format!("udp://{LISTEN}");
            let load = ["load", &url, "--workload", "shenango-bimodal"];
            let rate = ["--rate", "1000", "--duration", "2s", "--timeout", "60s"];
            super::json(&[&load[..], &rate, &["--format", "json"]].concat())
        });
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        wire_to(&[&client]);
        hosts.iter().for_each(Host::begin);
        let folder = tempfile::tempdir().expect("a folder");
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        // The command itself resolves the servers' Ethernet addresses.
        let rack = Serving::start_command(&rack_args("p2,p10,p11", &["--ctl", ctl]));
        assert!(has_program("p2") && has_program("p11"));
        await_servers(&signals);
        client.begin();
        let run = client.end();
        assert_eq!(count(&run, "lost"), 0, "{run}");
        assert!(count(&run, "sent") > 1_000);
        // The process reads the program's counts when it gets a core.
        let status = await_status(ctl, "all are counted, and laid out", |status| {
            let counted = |name: &str| status["counts"][name].as_u64().expect("a count");
            counted("requests") == count(&run, "sent")
                && counted("answered") == count(&run, "answered")
                && status["layouts"].as_u64().expect("a count") > 1
        });
        let types = status["types"].as_array().expect("types");
        assert_eq!(types.len(), 2, "{status}");
        for class in types {
            assert!(class["mean_us"].as_f64().expect("measured") > 0.0);
        }
        stop(rack);
        for interface in ["p2", "p10", "p11"] {
            has_no_program_soon(interface);
        }
        drop(signals);
        hosts.into_iter().for_each(Host::end);
    });
}

/// A stopped process stops the control plane too. Packets go on by the last tables.
#[test]
fn packets_go_on_while_the_process_of_the_kernels_switch_stands_still() {
    in_namespaces("headway rack --xdp that stands still", || {
        enter_namespace();
        let (hosts, signals): (Vec<_>, Vec<_>) = SERVERS.map(server).into_iter().unzip();
        let client = Host::start(CLIENT, || {
            let url = format!("udp://{LISTEN}");
            let load = ["load", &url, "--workload", "shenango-bimodal"];
            let rate = ["--rate", "500", "--duration", "1s", "--timeout", "60s"];
            super::json(&[&load[..], &rate, &["--format", "json"]].concat())
        });
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        wire_to(&[&client]);
        hosts.iter().for_each(Host::begin);
        let folder = tempfile::tempdir().expect("a folder");
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        let rack = Serving::start_command(&rack_args("p2,p10,p11", &["--ctl", ctl]));
        await_servers(&signals);
        rack.signal(libc::SIGSTOP);
        client.begin();
        let run = client.end();
        rack.signal(libc::SIGCONT);
        assert_eq!(count(&run, "lost"), 0, "{run}");
        assert!(count(&run, "sent") > 250, "{run}");
        await_status(ctl, "it takes up the counts of the meantime", |status| {
            status["counts"]["answered"].as_u64() == Some(count(&run, "answered"))
        });
        stop(rack);
        drop(signals);
        hosts.into_iter().for_each(Host::end);
    });
}

/// Waits until the status of the second server fulfils `is_so`.
pub(super) fn await_second(ctl: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    await_status(ctl, what, |status| is_so(&status["servers"][1]))
}

/// Waits for a state of the switch.
pub(super) fn await_status(ctl: &str, what: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let status = status(ctl);
        if is_so(&status) {
            return status;
        }
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(60), "{what}: {status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The requests that the switch has had.
pub(super) fn requests(status: &Value) -> u64 {
    status["counts"]["requests"].as_u64().expect("a count")
}

/// Waits until there is load.
pub(super) fn await_load(ctl: &str) {
    await_status(ctl, "there is load", |status| requests(status) > 300);
}

/// Sends one load after the other until the test has seen what it waits for, and returns the number of lost requests.
fn loads_until(seen: &AtomicBool) -> u64 {
    let url = format!("udp://{LISTEN}");
    let load = ["load", &url, "--workload", "shenango-bimodal"];
    let rate = ["--rate", "1000", "--duration", "2s", "--timeout", "5s"];
    let load = [&load[..], &rate, &["--format", "json"]].concat();
    let mut lost = 0;
    while !seen.load(Ordering::Acquire) {
        lost += count(&super::json(&load), "lost");
    }
    lost
}

#[test]
fn a_silent_server_leaves_the_kernels_turns_and_comes_back() {
    in_namespaces("silent servers of headway rack --xdp", || {
        enter_namespace();
        let (hosts, signals): (Vec<_>, Vec<_>) = SERVERS.map(server).into_iter().unzip();
        let seen = Arc::<AtomicBool>::default();
        let is_seen = Arc::clone(&seen);
        let client = Host::start(CLIENT, move || loads_until(&is_seen));
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        wire_to(&[&client]);
        hosts.iter().for_each(Host::begin);
        let folder = tempfile::tempdir().expect("a folder");
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        // Only the requests that the stopped server held are lost.
        let rack = Serving::start_command(&rack_args("p2,p10,p11", &["--ctl", ctl]));
        await_servers(&signals);
        client.begin();
        await_load(ctl);
        signals[1].send(libc::SIGSTOP).expect("the host runs");
        let left = await_second(ctl, "it leaves", |server| server["silent"] == true);
        // On a busy machine a server may be silent for want of a processor, too.
        assert!(left["counts"]["left"].as_u64() > Some(0), "{left}");
        let owed = |status: &Value| {
            let counts = [
                &status["servers"][1]["unanswered"],
                &status["counts"]["expired"],
            ];
            counts
                .map(|count| count.as_u64().expect("a count"))
                .iter()
                .sum::<u64>()
        };
        assert!(owed(&left) > 0, "{left}");
        // The server gets requests until the control plane has made a new layout.
        let mut before = left;
        await_status(ctl, "none of 300 requests goes there", |status| {
            if owed(status) > owed(&before) {
                before = status.clone();
            }
            requests(status) >= requests(&before) + 300
        });
        await_status(ctl, "it is asked", |status| {
            status["counts"]["asked"].as_u64() > Some(0)
        });
        let alone = status(ctl);
        signals[1].send(libc::SIGCONT).expect("the host runs");
        let back = await_second(ctl, "it returns", |server| server["silent"] == false);
        assert!(back["counts"]["returned"].as_u64() > Some(0), "{back}");
        for fate in [
            "fragment",
            "options",
            "other_family",
            "no_server",
            "hidden_tag",
            "wrong_side",
        ] {
            assert_eq!(back["counts"][fate], 0, "{back}");
        }
        seen.store(true, Ordering::Release);
        let lost = client.end();
        assert!(lost <= owed(&alone), "{lost}: {alone}");
        stop(rack);
        drop(signals);
        hosts.into_iter().for_each(Host::end);
    });
}

#[test]
fn a_server_that_stops_tells_the_kernels_switch_first_and_nothing_is_lost() {
    in_namespaces("agents of headway rack --xdp", || {
        enter_namespace();
        let folder = tempfile::tempdir().expect("a folder");
        let key = key_file(folder.path(), "key", KEY, 0o600);
        let key = key.to_str().expect("a plain path").to_owned();
        let joins = |number| {
            let more = ["--rack", "10.77.0.1:7101", "--rack-key", &key];
            server_with(number, more.map(str::to_owned).to_vec())
        };
        let (hosts, signals): (Vec<_>, Vec<_>) = SERVERS.map(joins).into_iter().unzip();
        let client = Host::start(CLIENT, || {
            let url = format!("udp://{LISTEN}");
            let load = ["load", &url, "--workload", "shenango-bimodal"];
            let rate = ["--rate", "1000", "--duration", "2s", "--timeout", "2s"];
            super::json(&[&load[..], &rate, &["--format", "json"]].concat())
        });
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        wire_to(&[&client]);
        hosts.iter().for_each(Host::begin);
        let ctl = folder.path().join("rack");
        let ctl = ctl.to_str().expect("a plain path");
        let agents = ["--agents", "10.77.0.1:7101", "--agent-key", &key];
        let rack = Serving::start_command(&rack_args(
            "p2,p10,p11",
            &[&["--ctl", ctl], &agents[..]].concat(),
        ));
        await_second(ctl, "its agent has an order", |server| {
            server["agent"]["order"].as_u64() > Some(0)
        });
        client.begin();
        await_load(ctl);
        signals[1].send(libc::SIGTERM).expect("the host runs");
        let run = client.end();
        let last = await_status(ctl, "it left, and every request is answered", |status| {
            let counts = &status["counts"];
            status["servers"][1]["counted_cores"] == 0 && counts["answered"] == counts["requests"]
        });
        assert_eq!(last["servers"][1]["agent"]["draining"], true, "{last}");
        assert_eq!(count(&run, "lost"), 0, "{run} {last}");
        stop(rack);
        drop(signals);
        hosts.into_iter().for_each(Host::end);
    });
}

/// The error of a command that must exit with 2; `before` is a prefix of the command.
pub(super) fn refused_by(before: &[&str], args: &[&str]) -> String {
    let command = [before, &[env!("CARGO_BIN_EXE_headway")], args].concat();
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// A folder without compiled objects, and the setting that names it.
pub(super) fn empty_cache() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let setting = format!("CACHE_DIRECTORY={}", folder.path().display());
    (folder, setting)
}

#[test]
fn what_the_kernel_refuses_is_told_and_nothing_stays_attached() {
    in_namespaces("what --xdp refuses", || {
        enter_namespace();
        // Hosts that are up, without servers.
        let hosts = SERVERS.map(|number| Host::start(number, || ()));
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        let said = refused_by(&[], &rack_args("p10,p11,p12", &[]));
        assert!(said.contains("there is no interface p12"), "{said}");
        let said = refused_by(&[], &rack_args("p10", &[]));
        assert!(said.contains("10.77.0.11:6000 is reached by p11"), "{said}");
        let said = refused_by(
            &[],
            &[&rack_args("p10,p11", &[])[..], &["--server", "10.9.9.9:1"]].concat(),
        );
        assert!(said.contains("no route to 10.9.9.9"), "{said}");
        let (_new, cache) = empty_cache();
        let no_path = ["env", "PATH=/nowhere", &cache];
        let said = refused_by(&no_path, &rack_args("p10,p11", &[]));
        assert!(said.contains("apt-get install clang libbpf-dev"), "{said}");
        let no_caps = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        let said = refused_by(&no_caps, &rack_args("p10,p11", &[]));
        assert!(
            said.contains("root or CAP_BPF with CAP_NET_ADMIN"),
            "{said}"
        );
        for interface in ["p10", "p11"] {
            has_no_program_soon(interface);
        }
        // A second control plane gets neither the first one's port nor its interfaces.
        let rack = Serving::start_command(&rack_args("p10,p11", &[]));
        let said = refused_by(&[], &rack_args("p10,p11", &[]));
        assert!(said.contains("cannot listen at 10.77.0.1:7100"), "{said}");
        shell("ip address add 10.77.0.3/32 dev lo");
        let mut other = rack_args("p10,p11", &[]);
        other[2] = "10.77.0.3:7100";
        let said = refused_by(&[], &other);
        assert!(said.contains("ip link show p10"), "{said}");
        stop(rack);
        if headway_xdp::takes_redirected("p11").is_some() {
            let (own, task) = (std::process::id(), hosts[1].task());
            shell(&format!(
                "nsenter --net=/proc/{own}/task/{task}/ns/net ethtool -K e0 gro off"
            ));
            let said = refused_by(&[], &rack_args("p10,p11", &[]));
            assert!(said.contains("device p11 sends no packets"), "{said}");
            assert!(said.contains("`ethtool -K PEER gro on`"), "{said}");
            for interface in ["p10", "p11"] {
                has_no_program_soon(interface);
            }
        } else {
            println!("SKIPPED devices that take no redirected packets: it needs Linux 6.3");
        }
        // `p10` as it is shown with a VLAN upon it, not every kernel has VLANs; and a kernel that does not tell how to look for tags beside packets.
        let shown = "mount -t tmpfs none /sys/kernel/btf; mount -t tmpfs none /sys/class/net; mkdir -p /sys/class/net/p10/upper_p10.5 /sys/class/net/p10.5
             echo DEVTYPE=vlan > /sys/class/net/p10.5/uevent; exec \"$@\"";
        let in_a_vlan = ["unshare", "--mount", "sh", "-ec", shown, "sh"];
        let said = refused_by(&in_a_vlan, &rack_args("p10,p11", &[]));
        assert!(said.contains("`ethtool -K p10 rxvlan off`"), "{said}");
        assert!(said.contains("`ethtool -K PEER txvlan off`"), "{said}");
        for interface in ["p10", "p11"] {
            has_no_program_soon(interface);
        }
        for host in &hosts {
            host.begin();
        }
        hosts.into_iter().for_each(Host::end);
    });
}

#[test]
fn a_device_that_is_removed_ends_the_kernels_switch_with_an_error() {
    in_namespaces("a removed device of headway rack --xdp", || {
        enter_namespace();
        let hosts = SERVERS.map(|number| Host::start(number, || ()));
        shell("ip address add 10.77.0.1/32 dev lo");
        wire_to(&hosts.iter().collect::<Vec<_>>());
        // It comes back under its name at once.
        let again =
            "ip link add px type veth peer name py; ethtool -K py gro on; ip link set dev px up";
        shell(again);
        let rack = Serving::start_command(&rack_args("p10,p11,px", &[]));
        shell(&format!("ip link delete px; {again}"));
        let (code, said) = rack.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("device px was removed"), "{said}");
        for host in &hosts {
            host.begin();
        }
        hosts.into_iter().for_each(Host::end);
    });
}

#[test]
fn settings_that_the_kernel_cannot_run_are_refused() {
    let server = ["--server", "127.0.0.1:9"];
    let with = |listen: &'static str, rest: &[&'static str], parts: &[&str]| {
        let rack = ["rack", "--listen", listen, "--xdp", "lo"];
        refused(&[&rack[..], &server, rest].concat(), parts);
    };
    with("127.0.0.1:7100", &[], &["--listen", "10.0.0.1:7100"]);
    let policy = ["--policy", "racksched"];
    with("10.77.99.99:7100", &policy, &["choose pallas"]);
    let twice = ["rack", "--xdp", "p0, p0"];
    refused(&[&twice[..], &server].concat(), &["p0 is named twice"]);
}
