//! `headway host --device` with Linux on the other side of a veth pair, each the real command.

use super::children::TestChild;
use super::headway;
use super::racking_xdp::has_no_program_soon;
use super::racking_xdp::net::{Host, enter_namespace, shell};
use super::serving_xdp::{in_namespaces, refused_by};
use headway_host::client::{ClientOptions, HostClient};
use headway_rings::lane::{MOST_PACKET_BYTES, Taken};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LINUX: u8 = 2;
const LINUX_MAC: [u8; 6] = [2, 0, 0, 0, 7, LINUX];
/// By default an application's Ethernet address is 02:00 and its IPv4 address.
const KV_MAC: [u8; 6] = [2, 0, 10, 77, 0, 9];
/// The test has a network namespace of its own, so the port is free.
const METRICS: &str = "127.0.0.1:9100";

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder for the daemon's socket.
struct HostFolder(tempfile::TempDir);

impl HostFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("host.sock")
    }

    /// The arguments of a daemon on a device.
    fn args(&self, device: &str) -> Vec<String> {
        let args = ["host", "--share-core", "--app", "kv:ip=10.77.0.9/24"];
        let socket = self.socket();
        let rest = ["--device", device, "--socket", path_text(&socket)];
        let args = [&args[..], &rest, &["--metrics", METRICS]].concat();
        args.into_iter().map(str::to_owned).collect()
    }

    /// Starts the daemon on `p2`, and waits until it listens. Returns its words.
    fn daemon(&self) -> (TestChild, String) {
        let said = self.0.path().join("said");
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        command.args(self.args("p2"));
        command.stderr(fs::File::create(&said).expect("a file"));
        let child = TestChild::start(&mut command);
        let words = || fs::read_to_string(&said).expect("a file");
        until("the daemon listens", || words().contains("deals out cores"));
        (child, words())
    }

    /// The files of a daemon, without the lock, which each daemon finds and takes.
    fn files_left(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.0.path()).expect("a folder");
        let files = files.map(|file| file.expect("a file").path());
        files
            .filter(|path| path.extension().is_none_or(|end| end != "lock"))
            .collect()
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Sends an application more datagrams than its lane holds.
fn send_datagrams(count: u32) {
    shell("ip neigh replace 10.77.0.9 lladdr 02:00:0a:4d:00:09 dev e0");
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
    for _ in 0..count {
        socket.send_to(&[7; 100], "10.77.0.9:7").expect("sent");
    }
}

fn scraped() -> String {
    let mut stream = TcpStream::connect(METRICS).expect("the daemon listens");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

#[test]
fn frames_are_counted_in_the_status_and_for_prometheus() {
    in_namespaces("the counters of headway host --device", || {
        const SENT: u32 = 400;
        const LANE: u64 = 256;
        enter_namespace();
        let (all_seen, wait) = std::sync::mpsc::channel::<()>();
        let linux = Host::start(LINUX, move || {
            send_datagrams(SENT);
            // The device ends with this side.
            let _ = wait.recv();
        });
        linux.wire();
        let folder = HostFolder::new();
        let (_daemon, _) = folder.daemon();
        let socket = folder.socket();
        let options = ClientOptions {
            network: true,
            ..ClientOptions::new("kv", 1)
        };
        let client = HostClient::register(&socket, &options).expect("the daemon has a place");
        let network = client.network().expect("it asked for one");
        let mut lanes = network.take_lanes().expect("nobody took them");
        let status = || -> Value {
            let status = ["host", "status", "--socket", path_text(&socket)];
            super::json(&[&status[..], &["--format", "json"]].concat())["network"].take()
        };
        let counted = |network: &Value, field: &str| network[field].as_u64().expect("a count");

        linux.begin();
        until("every frame has a fate", || {
            let now = status();
            let fates = ["delivered", "lane_full", "missed"].map(|field| counted(&now, field));
            fates.iter().sum::<u64>() == u64::from(SENT)
        });
        let now = status();
        assert_eq!(now["device"], "p2");
        assert_eq!(counted(&now, "delivered"), LANE, "{now}");
        assert_eq!(counted(&now, "lane_full"), u64::from(SENT) - LANE, "{now}");
        let mut buffer = [0; MOST_PACKET_BYTES];
        for _ in 0..LANE {
            let taken = lanes[0].receiver.receive(&mut buffer);
            assert_eq!(taken, Ok(Taken::Packet(142)));
        }

        let from = |mac: [u8; 6], ip: [u8; 4]| {
            let mut frame = [0; 1600];
            frame[..6].copy_from_slice(&LINUX_MAC);
            frame[6..12].copy_from_slice(&mac);
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            frame[26..30].copy_from_slice(&ip);
            frame
        };
        let own = from(KV_MAC, [10, 77, 0, 9]);
        let (another, neighbour) = (
            from(*b"\x02other", [10, 77, 0, 9]),
            from(KV_MAC, [10, 77, 0, 8]),
        );
        for frame in [own, own, own, another, neighbour] {
            assert_eq!(lanes[0].sender.send(&frame[..60]), Ok(true));
        }
        assert_eq!(lanes[0].sender.send(&own), Ok(true), "more than the MTU");
        until("the daemon takes the application's frames", || {
            client.packets_sent();
            lanes[0].sender.unread() == 0
        });
        let now = status();
        assert_eq!(counted(&now, "sent"), 3, "{now}");
        assert_eq!(counted(&now, "spoofed"), 2, "{now}");
        assert_eq!(counted(&now, "too_long"), 1, "{now}");
        for field in ["unknown", "device_full", "missed", "invalid", "for_broken"] {
            assert_eq!(counted(&now, field), 0, "{field}: {now}");
        }
        assert_eq!(now["broken"], serde_json::json!([]));

        let text = scraped();
        for line in [
            "headway_host_frames_total{direction=\"in\"} 256",
            "headway_host_frames_total{direction=\"out\"} 3",
            "headway_host_lost_frames_total{reason=\"lane_full\"} 144",
            "headway_host_lost_frames_total{reason=\"spoofed\"} 2",
            "headway_host_lost_frames_total{reason=\"too_long\"} 1",
            "headway_host_lost_frames_total{reason=\"unknown\"} 0",
            "headway_host_lost_frames_total{reason=\"device_full\"} 0",
            "headway_host_lost_frames_total{reason=\"missed\"} 0",
            "headway_host_lost_frames_total{reason=\"invalid\"} 0",
            "headway_host_cut_off_apps 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        let table = headway(&["host", "status", "--socket", path_text(&socket)]);
        let table = String::from_utf8_lossy(&table.stdout).into_owned();
        let says = "device p2: 256 frames to applications, 3 from them; lost: 0 for nobody here, 144 at full lanes";
        assert!(table.contains(says), "{table}");
        drop(all_seen);
        linux.end();
    });
}

#[test]
fn a_device_that_cannot_be_had_is_one_sentence_and_nothing_is_left() {
    in_namespaces("what headway host --device refuses", || {
        enter_namespace();
        let linux = Host::start(LINUX, || ());
        linux.wire();
        let folder = HostFolder::new();
        let refuses = |before: &[&str], device: &str, parts: &[&str]| {
            let args = folder.args(device);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let said = refused_by(before, &args);
            for part in parts {
                assert!(said.contains(part), "{part:?} is not in: {said}");
            }
            assert_eq!(folder.files_left(), [] as [PathBuf; 0], "{said}");
            has_no_program_soon("p2");
        };
        refuses(
            &[],
            "e9",
            &["--device", "there is no device e9", "`ip link`"],
        );
        // Without any capability no socket opens, without CAP_IPC_LOCK no memory, without CAP_BPF no program, without CAP_NET_ADMIN it attaches to nothing.
        let remedy = [
            "--device",
            "AF_XDP needs root",
            "run the daemon as root, or without --device",
        ];
        let memory = ["--device", "CAP_IPC_LOCK", "`ulimit -l`"];
        for (capabilities, parts) in [
            ("--bounding-set=-all", &remedy[..]),
            ("--bounding-set=-all,+net_raw", &memory[..]),
            ("--bounding-set=-all,+net_raw,+ipc_lock", &remedy[..]),
            ("--bounding-set=-all,+net_raw,+ipc_lock,+bpf", &remedy[..]),
        ] {
            let without = ["setpriv", capabilities, "--inh-caps=-all"];
            refuses(&without, "p2", parts);
        }
        // Nothing looks like a crash to the next daemon.
        let (daemon, said) = folder.daemon();
        assert!(!said.contains("did not end in order"), "{said}");
        let other = HostFolder::new();
        let args = other.args("p2");
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.truncate(args.len() - 2);
        let said = refused_by(&[], &args);
        assert!(
            said.contains("p2 has an AF_XDP socket of another process"),
            "{said}"
        );
        assert_eq!(other.files_left(), [] as [PathBuf; 0], "{said}");
        drop(daemon);
        linux.begin();
        linux.end();
    });
}
