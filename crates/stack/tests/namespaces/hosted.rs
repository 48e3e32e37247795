//! Applications behind a host's daemon, which has the device: each is a process with threads in user space; Linux is on the other side.

use crate::net::{Host, enter_namespace, shell};
use crate::roles::RoleProcess;
use crate::{in_namespaces, pattern};
use headway_host::arbiter::{AppReport, HostReport, NetworkReport};
use headway_host::client::{ClientError, ClientOptions, HostClient};
use headway_host::daemon::{AppNetwork, AppRule, DaemonError, DaemonSettings, HostDaemon};
use headway_machine::Clock;
use headway_machine::thread::uninterrupted;
use headway_policy::host::AppKind;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The device to Linux.
pub(crate) const DEVICE: &str = "p2";
pub(crate) const KV: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);
const WEB: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 10);

fn rule(name: &str, ip: Option<Ipv4Addr>) -> AppRule {
    AppRule {
        name: name.into(),
        guaranteed: 0,
        most: None,
        kind: AppKind::Latency,
        users: Vec::new(),
        groups: Vec::new(),
        network: ip.map(|ip| AppNetwork {
            ip,
            prefix: 24,
            gateway: None,
            mac: None,
        }),
    }
}

pub(crate) fn settings(socket: &Path, device: Option<&str>) -> DaemonSettings {
    let has_device = device.is_some();
    let ip = |ip| Some(ip).filter(|_| has_device);
    DaemonSettings {
        socket: socket.into(),
        policy: "shenango".parse().expect("a policy"),
        apps: vec![rule("kv", ip(KV)), rule("web", ip(WEB)), rule("mute", None)],
        cores: None,
        shares: Some(true),
        tick_ns: 100_000,
        device: device.map(str::to_owned),
        sysfs: "/sys".into(),
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A daemon with a device in this namespace, and Linux behind the device.
pub(crate) struct HostedStage {
    daemon: Option<HostDaemon>,
    jobs: Option<Sender<Job>>,
    linux: Option<Host<()>>,
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// Tests with a daemon run one at a time: they move threads, and count this process's mappings.
static TURN: Mutex<()> = Mutex::new(());

impl HostedStage {
    pub(crate) fn new() -> Self {
        let mut stage = Self::without_daemon();
        stage.start_daemon(DEVICE);
        stage
    }

    /// Linux behind the device [`DEVICE`] of this namespace.
    pub(crate) fn without_daemon() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        enter_namespace();
        let (jobs, todo) = std::sync::mpsc::channel::<Job>();
        let linux = Host::start(2, move || todo.into_iter().for_each(|job| job()));
        assert_eq!(linux.wire(), DEVICE);
        linux.begin();
        Self {
            daemon: None,
            jobs: Some(jobs),
            linux: Some(linux),
            folder: tempfile::tempdir().expect("a place"),
            _turn: turn,
        }
    }

    pub(crate) fn start_daemon(&mut self, device: &str) {
        let settings = settings(&self.socket(), Some(device));
        self.daemon = Some(HostDaemon::start(settings, Clock::global()).expect("a daemon"));
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("host.sock")
    }

    /// Runs a closure on the other side.
    pub(crate) fn linux<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let done = self.begin_on_linux(job);
        done.recv_timeout(Duration::from_secs(100))
            .expect("it is done")
    }

    /// Begins a closure on the other side; its result comes by the receiver.
    pub(crate) fn begin_on_linux<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Receiver<R> {
        let (tell, told) = sync_channel(1);
        let job = Box::new(move || drop(tell.send(job())));
        let jobs = self.jobs.as_ref().expect("Linux is there");
        jobs.send(job).expect("Linux is there");
        told
    }

    fn report(&self) -> HostReport {
        let daemon = self.daemon.as_ref().expect("a daemon");
        daemon.observer().report(0, 0).expect("the daemon answers")
    }

    pub(crate) fn network(&self) -> NetworkReport {
        self.report().network.expect("it has a device")
    }

    pub(crate) fn app(&self, name: &str) -> Option<AppReport> {
        let mut apps = self.report().apps.into_iter();
        apps.find(|app| app.name == name)
    }
}

impl Drop for HostedStage {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(daemon) = self.daemon.take() {
            daemon.stop();
        }
        if let Some(linux) = self.linux.take()
            && !std::thread::panicking()
        {
            linux.end();
        }
    }
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const READY: &[u8] = b"ready?";

/// A socket of Linux to an application that answers.
pub(crate) fn asking() -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
    socket.connect((KV, 7)).expect("an address");
    let timeout = Some(Duration::from_millis(200));
    socket.set_read_timeout(timeout).expect("a timeout");
    let mut buffer = [0; 10];
    // The application may not have started yet.
    until("the application answers", || {
        let _ = socket.send(READY);
        socket.recv(&mut buffer).is_ok()
    });
    let timeout = Some(Duration::from_secs(60));
    socket.set_read_timeout(timeout).expect("a timeout");
    socket
}

/// The next answer that is none to a question of [`asking`], of which several may be on their way.
pub(crate) fn answer<'a>(socket: &UdpSocket, buffer: &'a mut [u8]) -> &'a [u8] {
    loop {
        let bytes = uninterrupted(|| socket.recv(buffer)).expect("an answer");
        if buffer[..bytes] != *READY {
            return &buffer[..bytes];
        }
    }
}

/// A connection of Linux, once an application listens.
pub(crate) fn connected(to: SocketAddrV4) -> TcpStream {
    let mut stream = None;
    until("the application listens", || {
        stream = TcpStream::connect_timeout(&to.into(), Duration::from_secs(10)).ok();
        stream.is_some()
    });
    stream.expect("it listens")
}

pub(crate) fn echoes_datagrams(count: u32) {
    let socket = asking();
    let mut buffer = [0; 2000];
    for number in 0..count {
        let datagram = pattern(1 + number as usize * 1400 / count as usize, number);
        socket.send(&datagram).expect("sent");
        assert!(
            answer(&socket, &mut buffer) == datagram,
            "datagram {number}"
        );
    }
}

pub(crate) fn echoes_stream(length: usize, seed: u32) {
    echoes_stream_of(SocketAddrV4::new(KV, 80), length, seed);
}

/// Sends bytes while it receives them back.
pub(crate) fn echoes_stream_of(to: SocketAddrV4, length: usize, seed: u32) {
    let stream = connected(to);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&stream)
                .write_all(&pattern(length, seed))
                .expect("written");
            stream.shutdown(Shutdown::Write).expect("it is open");
        });
        let mut received = Vec::new();
        (&stream).read_to_end(&mut received).expect("to the end");
        assert!(received == pattern(length, seed), "the same bytes");
    });
}

#[test]
fn an_application_is_reached_through_the_daemon_and_woken_when_it_has_no_core() {
    in_namespaces("UDP and TCP through the daemon", || {
        let stage = HostedStage::new();
        let _app = RoleProcess::start("echo", &stage.socket());
        stage.linux(|| echoes_datagrams(300));
        stage.linux(|| {
            std::thread::scope(|scope| {
                for connection in 0..4 {
                    scope.spawn(move || echoes_stream(1 << 20, connection));
                }
            });
        });
        for round in 0..20 {
            until("it gave its cores back", || {
                stage.app("kv").is_some_and(|app| app.cores.is_empty())
            });
            let grants = stage.app("kv").expect("it is there").grants;
            stage.linux(move || echoes_stream(1000, round));
            assert!(stage.app("kv").expect("it is there").grants > grants);
        }
        let counts = stage.network();
        assert!(counts.delivered > 1000 && counts.sent > 1000, "{counts:?}");
        assert_eq!((counts.spoofed, counts.invalid), (0, 0), "{counts:?}");
        assert!(counts.broken.is_empty());
    });
}

/// Kthreads show when a timer of TCP is due. Whichever does the work, the daemon grants nothing afterwards.
#[test]
fn an_application_is_granted_no_core_after_its_connections() {
    const GRANTS_MAX: u64 = 20;
    in_namespaces("no grants without traffic", || {
        let stage = HostedStage::new();
        let _app = RoleProcess::start("echo", &stage.socket());
        let grants = || stage.app("kv").map_or(0, |app| app.grants);
        for round in 0..5 {
            stage.linux(move || echoes_stream(100_000, round));
            until("it gave its cores back", || {
                stage.app("kv").is_some_and(|app| app.cores.is_empty())
            });
            let before = grants();
            std::thread::sleep(Duration::from_secs(1));
            let more = grants() - before;
            assert!(more <= GRANTS_MAX, "{more} grants in a second");
        }
    });
}

/// Linux gets another Ethernet address, and tells nobody: it knows the application's, and asks for nothing.
#[test]
fn a_neighbour_with_another_address_is_found_again_by_its_packets() {
    in_namespaces("a neighbour that changes its address", || {
        let stage = HostedStage::new();
        let _app = RoleProcess::start("echo", &stage.socket());
        let answered_after = stage.linux(|| {
            let socket = asking();
            let of_app = "02:00:0a:4d:00:09";
            shell(&format!(
                "ip link set dev e0 address 02:00:00:00:77:99
                 ip neigh replace {KV} lladdr {of_app} dev e0 nud permanent"
            ));
            let timeout = Some(Duration::from_millis(50));
            socket.set_read_timeout(timeout).expect("a timeout");
            let (begun, mut buffer) = (Instant::now(), [0; 10]);
            until("the application answers", || {
                let _ = socket.send(b"anew");
                std::iter::from_fn(|| {
                    socket
                        .recv(&mut buffer)
                        .ok()
                        .map(|bytes| buffer[..bytes] == *b"anew")
                })
                .any(|is_it| is_it)
            });
            let answered_after = begun.elapsed();
            echoes_stream(10_000, 1);
            answered_after
        });
        // Its address would be asked for after 30 s anyway.
        assert!(
            answered_after < Duration::from_secs(10),
            "{answered_after:?}"
        );
    });
}

/// The daemon ends with an error when its device is not what it was.
#[test]
fn a_device_that_changes_is_noticed() {
    in_namespaces("a device that changes", || {
        let stage = HostedStage::new();
        assert!(ip(&["-d", "link", "show", DEVICE]).contains("promiscuity 1"));
        let daemon = stage.daemon.as_ref().expect("a daemon");
        let observer = daemon.observer();
        assert_eq!(observer.failure(), None);
        ip(&["link", "delete", DEVICE]);
        ip(&[
            "link", "add", DEVICE, "type", "veth", "peer", "name", "other2",
        ]);
        until("the daemon sees it", || observer.failure().is_some());
        let why = observer.failure().expect("it sees it").to_owned();
        assert!(why.contains("was removed"), "{why}");
    });
}

fn ip(args: &[&str]) -> String {
    let done = std::process::Command::new("ip").args(args).output();
    let done = done.expect("ip runs");
    assert!(done.status.success(), "ip {args:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn the_example_answers_on_threads_in_user_space() {
    in_namespaces("the example of an echo server", || {
        let stage = HostedStage::new();
        let _app = RoleProcess::start("example", &stage.socket());
        stage.linux(|| {
            std::thread::scope(|scope| {
                for connection in 0..8 {
                    scope.spawn(move || {
                        let to = SocketAddrV4::new(WEB, 7);
                        echoes_stream_of(to, 100_000, connection);
                    });
                }
            });
        });
    });
}

fn mapped_lanes() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    let lanes = maps.lines().filter(|line| line.contains("headway-lanes"));
    lanes.count()
}

#[test]
fn an_application_that_is_killed_gives_its_address_and_memory_back() {
    in_namespaces("a killed application", || {
        let stage = HostedStage::new();
        for round in 0..3 {
            let app = RoleProcess::start("echo", &stage.socket());
            stage.linux(move || echoes_datagrams(20 + round));
            drop(app);
            until("it is gone", || stage.app("kv").is_none());
            assert_eq!(mapped_lanes(), 0, "its lanes are unmapped");
        }
    });
}

#[test]
fn an_application_that_lies_in_its_lanes_hurts_only_itself() {
    in_namespaces("a lying application", || {
        let stage = HostedStage::new();
        let _app = RoleProcess::start("echo", &stage.socket());
        let _liar = RoleProcess::start("liar", &stage.socket());
        stage.linux(|| echoes_datagrams(50));
        until("the daemon sees what is in another's name", || {
            stage.network().spoofed > 0
        });
        until("the daemon gives its lanes up", || {
            stage.network().broken == ["web"]
        });
        stage.linux(|| echoes_datagrams(50));
        stage.linux(|| echoes_stream(1 << 20, 5));
    });
}

fn refusal(socket: &Path, name: &str) -> String {
    let options = ClientOptions {
        network: true,
        ..ClientOptions::new(name, 1)
    };
    match HostClient::register(socket, &options) {
        Err(ClientError::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packets_that_nobody_can_have_are_refused_in_a_sentence() {
    in_namespaces("refusals of the data plane", || {
        let stage = HostedStage::new();
        let why = refusal(&stage.socket(), "mute");
        assert!(why.contains("has no address: give it `ip`"), "{why}");
        let elsewhere = stage.folder.path().join("other.sock");
        let start = |settings| match HostDaemon::start(settings, Clock::global()) {
            Err(error @ (DaemonError::Device(_) | DaemonError::Apps(_))) => error.to_string(),
            other => panic!("{other:?}"),
        };
        let why = start(settings(&elsewhere, Some("nothing0")));
        assert!(why.contains("there is no device nothing0"), "{why}");
        let why = start(settings(&elsewhere, Some("p2")));
        assert!(why.contains("p2"), "the device is taken: {why}");
        let mut without = settings(&elsewhere, None);
        without.apps[0] = rule("kv", Some(KV));
        let why = start(without);
        assert!(why.contains("give one with --device"), "{why}");
        let mut twice = settings(&elsewhere, Some("p2"));
        twice.apps[1] = rule("web", Some(KV));
        let why = start(twice);
        assert!(why.contains("of another: give each its own"), "{why}");
        let plain = HostDaemon::start(settings(&elsewhere, None), Clock::global())
            .expect("it needs no device");
        let why = refusal(&elsewhere, "kv");
        assert!(why.contains("start it with --device DEV"), "{why}");
        plain.stop();
    });
}
