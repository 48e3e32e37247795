//! The daemon is killed while an application has lanes, and a successor takes the application over.

use crate::hosted::{DEVICE, HostedStage, KV, connected, echoes_datagrams, echoes_stream, until};
use crate::net::{enter_namespace, shell};
use crate::roles::{RoleProcess, report_place};
use crate::{KTHREADS, in_namespaces, pattern};
use headway_dataplane::plane::{DataPlane, LaneWaiting};
use headway_rings::lane::{LANE_BYTES, LaneEnds};
use headway_rings::mapping::SharedMapping;
use headway_xsk::{HostAddress, MacAddress};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// A daemon in a process of its own. Dropping it kills it.
struct DaemonProcess {
    process: RoleProcess,
    report: PathBuf,
}

impl DaemonProcess {
    fn start(socket: &Path) -> Self {
        let process = RoleProcess::start("daemon", socket);
        let report = report_place(socket, process.id());
        let daemon = Self { process, report };
        until("the daemon has started", || daemon.report().is_some());
        daemon
    }

    fn report(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(&self.report).ok()?).ok()
    }

    /// Whether it has the application.
    fn has(&self, name: &str) -> bool {
        let report = self.report().expect("it has started");
        let mut apps = report["apps"].as_array().into_iter().flatten();
        apps.any(|app| app["name"] == name)
    }

    fn id(&self) -> u32 {
        self.process.id()
    }
}

/// The lanes that a process has mapped.
fn lanes_of(process: u32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).expect("it runs");
    let lanes = maps.lines().filter(|line| line.contains("headway-lanes"));
    lanes.count()
}

/// The number of a process's open files.
fn files_of(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd")).expect("it runs");
    files.count()
}

fn has_program(device: &str) -> bool {
    shell(&format!("ip -details link show dev {device}")).contains("xdp")
}

/// A connection that is in use while the daemon is killed: it sends a part, says so, and sends the rest.
fn echoes_across(length: usize, is_under_way: &Sender<()>) {
    let stream = connected(SocketAddrV4::new(KV, 80));
    let all = pattern(length, 3);
    let (first, rest) = all.split_at(length / 4);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut received = vec![0; first.len()];
            (&stream).read_exact(&mut received).expect("the first part");
            is_under_way.send(()).expect("the test waits");
            (&stream).read_to_end(&mut received).expect("to the end");
            received
        });
        (&stream).write_all(first).expect("written");
        for part in rest.chunks(4096) {
            (&stream).write_all(part).expect("written");
            std::thread::sleep(Duration::from_millis(1));
        }
        stream.shutdown(Shutdown::Write).expect("it is open");
        assert!(receiving.join().expect("received") == all, "the same bytes");
    });
}

#[test]
fn packets_flow_again_after_the_daemon_was_killed() {
    in_namespaces("a killed daemon with packets", || {
        let stage = HostedStage::without_daemon();
        let socket = stage.socket();
        let mut daemon = DaemonProcess::start(&socket);
        let app = RoleProcess::start("echo", &socket);
        stage.linux(|| echoes_datagrams(50));
        let files = (files_of(app.id()), files_of(daemon.id()));
        for round in 0..3 {
            let (begins, is_under_way) = std::sync::mpsc::channel();
            let across = stage.begin_on_linux(move || echoes_across(2 << 20, &begins));
            let patience = Duration::from_secs(60);
            is_under_way.recv_timeout(patience).expect("it begins");
            drop(daemon);
            until("its program ends with it", || !has_program(DEVICE));
            daemon = DaemonProcess::start(&socket);
            until("the application is taken over", || daemon.has("kv"));
            across
                .recv_timeout(Duration::from_secs(60))
                .expect("the connection goes on");
            stage.linux(move || echoes_datagrams(50 + round));
            stage.linux(move || echoes_stream(1 << 20, round));
            assert_eq!((lanes_of(app.id()), lanes_of(daemon.id())), (1, 1));
            until("no file more is open", || {
                (files_of(app.id()), files_of(daemon.id())) == files
            });
        }
        drop(app);
        until("the application is gone", || !daemon.has("kv"));
        assert_eq!(lanes_of(daemon.id()), 0);

        // The address of an application that ended without a daemon is free.
        let app = RoleProcess::start("echo", &socket);
        until("it is there", || daemon.has("kv"));
        drop((daemon, app));
        let daemon = DaemonProcess::start(&socket);
        let _app = RoleProcess::start("echo", &socket);
        stage.linux(|| echoes_datagrams(50));
        drop(daemon);
        until("its program ends with it", || !has_program(DEVICE));
    });
}

/// Otherwise nobody would wake an application whose packets came just before the daemon died.
#[test]
fn a_successor_counts_the_packets_that_wait_in_lanes() {
    in_namespaces("packets of a killed daemon", || {
        enter_namespace();
        shell("ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up");
        let memory = SharedMapping::anonymous(KTHREADS * LANE_BYTES).expect("memory");
        let memory = Arc::new(memory);
        let mut before = LaneEnds::of_plane(&memory, LANE_BYTES).expect("it fits");
        for _ in 0..3 {
            assert_eq!(before.sender.send(&[7; 60]), Ok(true));
        }
        let mut plane = DataPlane::open("e0").expect("AF_XDP");
        let address = HostAddress {
            mac: MacAddress([2, 0, 0, 0, 9, 9]),
            ip: KV,
        };
        let attached = plane.attach(address, &memory, KTHREADS).expect("room");
        let number = attached.expect("the lanes fit");
        assert_eq!(plane.ingress(number, 0), LaneWaiting::default());
        assert_eq!(plane.ingress(number, 1), LaneWaiting { put: 3, taken: 0 });
    });
}
