//! A C program's sockets, over the packets of a host's daemon, against Linux in another network namespace. It needs root and what `AF_XDP` needs; it is a program of
//! its own since it enters namespaces.

#[path = "../../xdp/tests/common/net.rs"]
mod net;
#[allow(dead_code, reason = "other tests use the rest")]
mod toolchain;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use headway_host::daemon::{AppNetwork, AppRule, DaemonSettings, HostDaemon};
use headway_machine::Clock;
use headway_policy::host::AppKind;
use net::{Host, enter_namespace, missing, shell};
use toolchain::{Linked, Toolchain};

const APPLICATION: [u8; 4] = [10, 77, 0, 9];
const LINUX: [u8; 4] = [10, 77, 0, 2];

fn settings(socket: &Path) -> DaemonSettings {
    DaemonSettings {
        socket: socket.into(),
        policy: "shenango".parse().expect("a policy"),
        apps: vec![AppRule {
            name: "kv".into(),
            guaranteed: 0,
            most: Some(1),
            kind: AppKind::Latency,
            users: Vec::new(),
            groups: Vec::new(),
            network: Some(AppNetwork {
                ip: APPLICATION.into(),
                prefix: 24,
                gateway: None,
                mac: None,
            }),
        }],
        cores: None,
        shares: Some(true),
        tick_ns: 100_000,
        device: Some("p2".into()),
        sysfs: "/sys".into(),
    }
}

/// Linux's side: two connections that are echoed at once, then a service that the program asks.
fn linux() {
    let listener = TcpListener::bind(SocketAddr::from((LINUX, 8080))).expect("the port");
    let to = SocketAddr::from((APPLICATION, 7));
    let streams = [0, 1].map(|_| {
        TcpStream::connect_timeout(&to, Duration::from_secs(20)).expect("the program listens")
    });
    let pattern = |at: u8| -> Vec<u8> {
        (0..400_000u32)
            .map(|byte| (byte % 249) as u8 ^ at)
            .collect()
    };
    std::thread::scope(|scope| {
        for (at, stream) in (0..).zip(&streams) {
            scope.spawn(move || {
                let mut stream = stream;
                stream.write_all(&pattern(at)).expect("written");
                stream.shutdown(Shutdown::Write).expect("it is open");
            });
            scope.spawn(move || {
                let (mut stream, mut echoed) = (stream, Vec::new());
                stream.read_to_end(&mut echoed).expect("to the end");
                assert!(echoed == pattern(at), "the same bytes");
            });
        }
    });
    let (mut stream, _) = listener.accept().expect("the program asks");
    let mut question = Vec::new();
    stream.read_to_end(&mut question).expect("to the end");
    stream.write_all(&question.repeat(2)).expect("written");
}

fn serve() {
    enter_namespace();
    let program = Toolchain::plain().build("tests/c/sockets.c", Linked::Shared);
    let peer = Host::start(2, linux);
    let wire = peer.wire();
    shell(&format!("ethtool -K {wire} tx off gro off"));
    let folder = tempfile::tempdir().expect("a place");
    let socket = folder.path().join("host.sock");
    let daemon = HostDaemon::start(settings(&socket), Clock::global()).expect("a daemon");
    let mut process = Command::new(program)
        .arg(&socket)
        .args(["kv", "10.77.0.2", "8080"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut said = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let mut next = || said.next().map(|line| line.expect("text"));
    assert_eq!(next().as_deref(), Some("ready"));
    peer.begin();
    assert_eq!(next().as_deref(), Some("done"));
    peer.end();
    assert!(process.wait().expect("it ends").success());
    daemon.stop();
}

#[test]
fn a_c_program_serves_and_asks_over_tcp() {
    let own = std::fs::metadata("/proc/self").expect("/proc");
    let lacking = if own.uid() == 0 {
        missing().map(str::to_owned)
    } else {
        Some("it needs root".into())
    };
    if let Some(why) = lacking {
        assert!(std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(), "{why}");
        println!("SKIPPED sockets of C: {why}");
        return;
    }
    std::thread::spawn(serve).join().expect("it serves");
}
