//! `headway serve --listen xdp://DEVICE:PORT` with `headway load` on the other side of a veth pair, each the real command.

use super::racking_xdp::net::{Host, enter_namespace, missing, shell};
use super::racking_xdp::{empty_cache, has_no_program_soon, has_program};
use super::serving::{Serving, count, figure};
use serde_json::Value;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

/// Runs a test in a thread, whose namespaces end with it. Prints why if the test cannot run.
pub(super) fn in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    if let Some(why) = cannot() {
        assert!(std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(), "{why}");
        println!("SKIPPED {test}: {why}");
        return;
    }
    if let Err(panic) = std::thread::spawn(body).join() {
        std::panic::resume_unwind(panic);
    }
}

fn cannot() -> Option<String> {
    let own = std::fs::metadata("/proc/self").expect("/proc");
    if own.uid() != 0 {
        return Some("attaching an XDP program needs root".into());
    }
    let lacking = headway_xsk::missing();
    let needs = missing().map(str::to_owned);
    needs.or_else(|| (!lacking.is_empty()).then(|| lacking.join("; ")))
}

const CLIENT: u8 = 2;

/// Loads the server at `url` from another namespace.
fn load(url: &'static str) -> Host<Value> {
    Host::start(CLIENT, move || {
        shell("ip -6 address add fd77::2/64 dev e0 nodad");
        let load = ["load", url, "--workload", "shenango-bimodal"];
        let rate = ["--rate", "2000", "--duration", "2s", "--timeout", "60s"];
        super::json(&[&load[..], &rate, &["--format", "json"]].concat())
    })
}

/// The server's side of the wire: `p2`.
fn wire(client: &Host<Value>) {
    assert_eq!(client.wire(), "p2");
    shell("ip address add 10.77.0.1/24 dev p2; ip -6 address add fd77::1/64 dev p2 nodad");
    shell("ip neigh add 10.77.0.2 lladdr 02:00:00:00:07:02 dev p2");
}

fn serve_args<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    let serve = ["serve", "--listen", "xdp://p2:7000", "--app", "spin"];
    [&serve[..], &["--pin", "off", "--no-ctl"], rest].concat()
}

/// Starts a server with a policy, loads it, and checks that it received and answered all requests.
fn answers_all(policy: &'static str, workers: &'static str, url: &'static str) {
    in_namespaces(policy, move || {
        enter_namespace();
        let client = load(url);
        wire(&client);
        let serving =
            Serving::start_command(&serve_args(&["--policy", policy, "--workers", workers]));
        assert_eq!(serving.url, "xdp://p2:7000");
        client.begin();
        let run = client.end();
        assert_eq!(count(&run, "lost"), 0, "{run}");
        assert_eq!(count(&run, "duplicates"), 0, "{run}");
        assert!(count(&run, "sent") > 2_000, "{run}");
        serving.signal(libc::SIGTERM);
        let (status, said) = serving.end();
        assert_eq!(status, Some(0), "{said}");
        assert_eq!(figure(&said, "served "), count(&run, "sent"), "{said}");
        assert_eq!(figure(&said, "dropped by the kernel "), 0, "{said}");
    });
}

#[test]
fn a_server_with_a_dispatcher_answers_all_from_the_devices_packets() {
    answers_all("c-fcfs", "1", "udp://10.77.0.1:7000");
}

#[test]
fn a_server_of_workers_with_queues_of_their_own_answers_all() {
    answers_all("d-fcfs", "2", "udp://10.77.0.1:7000");
}

#[test]
fn a_server_of_thieves_answers_all() {
    answers_all("work-stealing", "2", "udp://[fd77::1]:7000");
}

#[test]
fn a_server_that_interrupts_answers_all() {
    answers_all("concord,q=20us", "2", "udp://10.77.0.1:7000");
}

#[test]
fn a_killed_server_leaves_neither_program_nor_socket() {
    in_namespaces("a killed server on AF_XDP", || {
        enter_namespace();
        let client = Host::start(CLIENT, || Value::Null);
        wire(&client);
        for _ in 0..3 {
            let mut serving =
                Serving::start_command(&serve_args(&["--policy", "d-fcfs", "--workers", "2"]));
            assert!(has_program("p2"));
            serving.kill();
            has_no_program_soon("p2");
        }
        client.begin();
        client.end();
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
    assert_eq!(said.trim().lines().count(), 1, "one sentence: {said}");
    said
}

#[test]
fn what_a_device_refuses_is_one_sentence_with_its_remedy() {
    in_namespaces("what xdp:// refuses", || {
        enter_namespace();
        let client = Host::start(CLIENT, || Value::Null);
        wire(&client);
        let says = |before: &[&str], args: &[&str], parts: &[&str]| {
            let said = refused_by(before, args);
            for part in parts {
                assert!(said.contains(part), "{part:?} is not in: {said}");
            }
        };
        let mut nowhere = serve_args(&[]);
        nowhere[2] = "xdp://e9:7000";
        says(
            &[],
            &nowhere,
            &["--listen", "there is no device e9", "`ip link`"],
        );
        let (_new, cache) = empty_cache();
        says(
            &["env", "PATH=/nowhere", &cache],
            &serve_args(&[]),
            &["apt-get install clang"],
        );
        let no_caps = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        says(
            &no_caps,
            &serve_args(&[]),
            &["--listen", "AF_XDP needs root", "udp://HOST:PORT"],
        );
        let first = Serving::start_command(&serve_args(&["--policy", "c-fcfs"]));
        says(
            &[],
            &serve_args(&[]),
            &["--listen", "port 7000 of p2 is in use"],
        );
        let mut other = serve_args(&[]);
        other[2] = "xdp://p2:0";
        says(
            &[],
            &other,
            &["queue 0 of p2 has an AF_XDP socket of another process"],
        );
        drop(first);
        client.begin();
        client.end();
    });
}

/// A server without packets that goes on in silence is a server that nobody restarts.
#[test]
fn a_device_that_is_removed_or_changed_ends_the_server_with_the_reason() {
    in_namespaces("changes of a server's device", || {
        enter_namespace();
        for (change, says) in [
            (
                "ip link set dev p2 address 02:00:00:00:08:77",
                "address 02:00:00:00:08:02`",
            ),
            ("ip link delete dev p2", "device p2 was removed"),
        ] {
            let client = Host::start(CLIENT, || Value::Null);
            wire(&client);
            let serving = Serving::start_command(&serve_args(&["--policy", "c-fcfs"]));
            shell(change);
            let (status, said) = serving.end();
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains(says), "{said}");
            assert!(said.contains("served 0"), "{said}");
            client.begin();
            client.end();
        }
    });
}
