//! Servers that are added to a running switch, drain and are removed: by orders, and by its settings file.

use super::errors::refused;
use super::racking::{Asking, rack, server, status};
use super::serving::Serving;
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn order(switch: &str, order: &str, server: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headway"))
        .args([
            "rack", order, server, "--format", "json", "--switch", switch,
        ])
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("headway runs")
}

/// Gives an order that is carried out.
pub(super) fn ordered(switch: &str, word: &str, server: &str) -> Value {
    let output = order(switch, word, server);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn port(rack: &Serving) -> &str {
    rack.addr().rsplit(':').next().expect("a port")
}

fn servers(status: &Value) -> Vec<&str> {
    let servers = status["servers"].as_array().expect("servers");
    servers
        .iter()
        .map(|server| server["server"].as_str().expect("an address"))
        .collect()
}

/// Asks on until these are the switch's servers.
fn ask_until(rack: &Serving, asking: &mut Asking, wanted: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        asking.send(5);
        let now = status(rack);
        if servers(&now) == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{now}");
    }
}

#[test]
fn servers_come_drain_and_go_while_clients_ask() {
    for policy in ["round-robin", "pallas,clone=off"] {
        let (one, two) = (server(), server());
        let rack = rack(&[&one], &["--policy", policy, "--silence", "0ms"]);
        let mut asking = Asking::of(&rack);
        asking.send(50);
        let added = ordered(port(&rack), "add", &format!("{},cores=1", two.addr()));
        assert_eq!(added["state"], "serves", "{added}");
        asking.send(50);
        ask_until(&rack, &mut asking, &[one.addr(), two.addr()]);
        let drains = ordered(port(&rack), "drain", one.addr());
        assert_eq!(drains["state"], "drains", "{drains}");
        ask_until(&rack, &mut asking, &[two.addr()]);
        asking.send(50);
        let sent = asking.sent;
        assert_eq!(asking.await_answers(sent), sent, "{policy}: none is lost");
        one.signal(libc::SIGTERM);
        let (_, said) = one.end();
        let by_one = super::serving::figure(&said, "served ");
        assert!(by_one >= 50 && by_one < u64::from(sent), "{said}");
        two.signal(libc::SIGTERM);
        let (_, said) = two.end();
        let by_two = super::serving::figure(&said, "served ");
        assert_eq!(by_one + by_two, u64::from(sent), "{policy}: {said}");
    }
}

#[test]
fn a_server_that_is_removed_loses_what_it_had_and_no_more() {
    let (one, two) = (server(), server());
    let rack = rack(
        &[&one, &two],
        &["--policy", "round-robin", "--silence", "0ms"],
    );
    let mut asking = Asking::of(&rack);
    asking.send(20);
    assert_eq!(asking.await_answers(20), 20);
    one.stand_still();
    asking.send(40);
    assert_eq!(asking.await_answers(40), 40, "the other one's");
    let removed = ordered(port(&rack), "remove", one.addr());
    assert_eq!(
        (&removed["state"], &removed["lost"]),
        (&"removed".into(), &20.into())
    );
    // One that was added by another name is found all the same, and what it lost is known.
    let last = server();
    let mapped = last.addr().replace("127.0.0.1", "[::ffff:127.0.0.1]");
    ordered(port(&rack), "add", &mapped);
    let removed = ordered(port(&rack), "remove", &mapped);
    assert_eq!(
        (&removed["server"], &removed["lost"]),
        (&last.addr().into(), &0.into())
    );
    // Its answers come too late.
    one.signal(libc::SIGCONT);
    asking.send(40);
    assert_eq!(asking.await_answers(80), 80);
    let now = status(&rack);
    assert_eq!(servers(&now), [two.addr()]);
    assert_eq!(
        (&now["counts"]["lost"], &now["under_way"]),
        (&20.into(), &0.into())
    );
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused_with_the_reason() {
    let one = server();
    let rack = rack(&[&one], &["--most-servers", "1"]);
    let told = |word: &str, server: &str| {
        let output = order(port(&rack), word, server);
        assert_eq!(output.status.code(), Some(2), "{word} {server}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = told("remove", one.addr());
    assert!(said.contains("add another one first"), "{said}");
    let said = told("drain", "10.0.0.1:7");
    assert!(said.contains("headway rack status"), "{said}");
    let said = told("add", "127.0.0.1:9");
    assert!(said.contains("--most-servers"), "{said}");
    let said = told("add", rack.addr());
    assert!(said.contains("the switch itself listens"), "{said}");
    let said = told("add", "nowhere");
    assert!(said.contains("ADDR:PORT"), "{said}");
    refused(
        &["rack", "add", "10.0.0.1:7", "--switch", "1"],
        &["--switch", "port 1"],
    );
}

/// Nothing of a socket of one family gets to the other one's addresses.
#[test]
fn servers_of_a_family_that_the_switch_cannot_send_to_are_refused() {
    let family = "of another family than the switch's address";
    for (listen, server) in [
        ("127.0.0.1:0", "[::1]:7"),
        ("0.0.0.0:0", "[::1]:7"),
        ("[::1]:0", "127.0.0.1:7"),
        ("[::1]:0", "[::ffff:127.0.0.1]:7"),
    ] {
        refused(
            &["rack", "--listen", listen, "--server", server],
            &["--server", family],
        );
    }
    let one = server();
    let rack = rack(&[&one], &[]);
    let output = order(port(&rack), "add", "[::1]:7");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(family), "{said}");
}

#[test]
fn a_lease_that_a_busy_machine_would_miss_is_refused() {
    for lease in ["1ms", "500ms"] {
        refused(
            &["rack", "--server", "10.0.0.1:7", "--lease", lease],
            &["--lease", "give it 1s or more, or 0ms"],
        );
    }
}

#[test]
fn on_sighup_the_servers_of_the_file_are_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rack.toml");
    let (one, two) = (server(), server());
    let write = |servers: &[&str]| {
        let text =
            format!("listen = \"127.0.0.1:0\"\nserver = {servers:?}\npolicy = \"round-robin\"\n");
        fs::write(&path, text).unwrap();
    };
    write(&[one.addr()]);
    let rack = Serving::start_command(&["rack", "-c", path.to_str().unwrap()]);
    let mut asking = Asking::of(&rack);
    asking.send(20);
    write(&[two.addr()]);
    rack.signal(libc::SIGHUP);
    ask_until(&rack, &mut asking, &[two.addr()]);
    // What is no settings file changes nothing, and neither does one without servers.
    for text in ["server = 7", "policy = \"round-robin\""] {
        fs::write(&path, text).unwrap();
        rack.signal(libc::SIGHUP);
        asking.send(20);
    }
    write(&[one.addr(), two.addr()]);
    rack.signal(libc::SIGHUP);
    // Its old place is taken last of all.
    ask_until(&rack, &mut asking, &[two.addr(), one.addr()]);
    let sent = asking.sent;
    assert_eq!(asking.await_answers(sent), sent, "none is lost");
    rack.signal(libc::SIGTERM);
    let (code, said) = rack.end();
    assert_eq!(code, Some(0), "{said}");
    for part in ["drains", "the servers stay as they are", "rack.toml:1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_file_that_cannot_be_carried_out_as_a_whole_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rack.toml");
    let (one, two, three) = (server(), server(), server());
    let write = |servers: &[&str]| {
        let text = format!("listen = \"127.0.0.1:0\"\nmost-servers = 2\nserver = {servers:?}\n");
        fs::write(&path, text).unwrap();
    };
    write(&[one.addr()]);
    let rack = Serving::start_command(&["rack", "-c", path.to_str().unwrap()]);
    // The second of each is refused: it has no place, or no packet gets there.
    for other in [three.addr(), "[2001:db8::1]:7"] {
        write(&[two.addr(), other, one.addr()]);
        rack.signal(libc::SIGHUP);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(servers(&status(&rack)), [one.addr()], "{other}");
    }
    write(&[two.addr()]);
    rack.signal(libc::SIGHUP);
    let mut asking = Asking::of(&rack);
    ask_until(&rack, &mut asking, &[two.addr()]);
    rack.signal(libc::SIGTERM);
    let (code, said) = rack.end();
    assert_eq!(code, Some(0), "{said}");
    for part in ["all 2 places are taken", "of another family"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("the servers stay as they are").count(), 2);
}

/// The greatest exposure, in tenths.
const EXPOSURE_MAX: &str = "--threshold=25";

#[test]
fn the_racks_unit_leaves_it_little() {
    let unit = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../contrib/headway-rack.service"
    );
    let mut analyze = Command::new("systemd-analyze");
    analyze.args([
        "security",
        "--offline=true",
        "--no-pager",
        EXPOSURE_MAX,
        unit,
    ]);
    let Ok(judged) = analyze.output() else {
        return println!("SKIPPED the_racks_unit_leaves_it_little: systemd-analyze is not there");
    };
    let told = String::from_utf8_lossy(&judged.stdout);
    let judged_by = told.lines().last().unwrap_or_default();
    assert!(judged.status.success(), "{judged_by}");
    assert!(judged_by.contains("Overall exposure level"), "{judged_by}");
}
