//! C programs on the cores of a host's daemon: they come, go to another application, and come back.
#![expect(unsafe_code, reason = "calls the C interface")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod checked;
#[allow(dead_code, reason = "each test uses a part of it")]
mod toolchain;

use std::ffi::CStr;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use checked::alone;
use headway_capi::status::{HEADWAY_E_ARGUMENT, headway_last_error};
use headway_capi::threads::{HeadwayRuntimeOptions, headway_runtime_start};
use headway_host::arbiter::AppReport;
use headway_host::daemon::{AppRule, DaemonSettings, HostDaemon};
use headway_machine::Clock;
use headway_net::header::{Flag, Header, Status};
use headway_policy::host::AppKind;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use toolchain::{Linked, Toolchain};

/// The reason why threads cannot be moved between cores here, if there is one.
fn missing() -> Option<&'static str> {
    let own = Pid::from_raw(0);
    let mask = sched_getaffinity(own).ok()?;
    let cores = (0..CpuSet::count()).filter(|&core| mask.is_set(core) == Ok(true));
    if cores.count() < 2 {
        return Some("it needs two cores");
    }
    let pinned = sched_setaffinity(own, &mask);
    pinned.is_err().then_some("sched_setaffinity is forbidden")
}

fn rule(name: &str, guaranteed: usize, kind: AppKind) -> AppRule {
    AppRule {
        name: name.into(),
        guaranteed,
        most: None,
        kind,
        users: Vec::new(),
        groups: Vec::new(),
        network: None,
    }
}

fn daemon(socket: &Path) -> HostDaemon {
    HostDaemon::start(
        DaemonSettings {
            socket: socket.into(),
            // Nobody is moved away: only the signal takes a kthread off its core.
            policy: "shenango,evict=100s".parse().unwrap(),
            apps: vec![
                rule("kv", 1, AppKind::Latency),
                rule("primes", 0, AppKind::Batch),
            ],
            cores: None,
            shares: Some(true),
            tick_ns: 100_000,
            device: None,
            sysfs: "/sys".into(),
        },
        Clock::global(),
    )
    .unwrap()
}

/// What the daemon says of an application; `None` if it is not registered.
fn app(daemon: &HostDaemon, name: &str) -> Option<AppReport> {
    let report = daemon.observer().report(0, 0).expect("the daemon answers");
    report.apps.into_iter().find(|app| app.name == name)
}

fn cores_of(daemon: &HostDaemon, name: &str) -> Option<usize> {
    Some(app(daemon, name)?.cores.len())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Killed {
    /// Waits for its end: its exit status, and what it wrote.
    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        stdout.unwrap().read_to_string(&mut said).unwrap();
        stderr.unwrap().read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code().unwrap_or(-1), said)
    }
}

fn start(program: &Path, arguments: &[&str]) -> Killed {
    let mut command = Command::new(program);
    let command = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    Killed(command.stderr(Stdio::piped()).spawn().unwrap())
}

fn socket(test: &str) -> PathBuf {
    let name = format!("{test}-{}.sock", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The number of primes below a number, by a sieve.
fn primes(below: usize) -> usize {
    let mut composite = vec![false; below];
    (2..below)
        .filter(|&number| {
            let is_prime = !composite[number];
            if is_prime {
                (number * number..below)
                    .step_by(number)
                    .for_each(|multiple| composite[multiple] = true);
            }
            is_prime
        })
        .count()
}

#[test]
fn c_programs_trade_granted_cores() {
    if let Some(why) = missing() {
        return eprintln!("SKIPPED c_programs_trade_granted_cores: {why}");
    }
    let _alone = alone();
    let program = Toolchain::plain().build("examples/granted.c", Linked::Shared);
    let socket = socket("primes");
    let count = |application: &str, below: usize| {
        let socket = socket.to_str().expect("UTF-8");
        start(&program, &[application, &below.to_string(), socket])
    };
    let (code, said) = count("primes", 10).end();
    assert!(code == 1 && said.contains("no daemon listens at"), "{said}");

    let daemon = daemon(&socket);
    let cores = daemon.cores().dealt.len();
    let counted = |below: usize| (0, format!("{}\n", primes(below)));
    let batch = count("primes", 5_000_000);
    until("it has every core", || {
        cores_of(&daemon, "primes") == Some(cores.min(16))
    });
    loop {
        assert_eq!(count("kv", 100_000).end(), counted(100_000));
        let primes = app(&daemon, "primes").expect("the batch runs longer");
        if primes.revocations > 0 {
            break;
        }
    }
    assert_eq!(batch.end(), counted(5_000_000));
    until("both are gone", || cores_of(&daemon, "kv").is_none());
    daemon.stop();
}

/// A request of class 0 that asks for a sum of three steps.
fn ask(socket: &UdpSocket, index: u32) {
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index,
        time_ns: 0,
    };
    let request = [&header.encode()[..], b"3"].concat();
    socket.send(&request).unwrap();
    let mut buffer = [0; 256];
    let length = socket.recv(&mut buffer).expect("an answer in time");
    let (response, _) = Header::parse(&buffer[..length]).unwrap();
    assert_eq!(
        (response.index, response.flag),
        (index, Flag::response(Status::Ok))
    );
}

#[test]
fn a_c_server_answers_on_granted_cores() {
    if let Some(why) = missing() {
        return eprintln!("SKIPPED a_c_server_answers_on_granted_cores: {why}");
    }
    let _alone = alone();
    let program = Toolchain::plain().build("examples/server.c", Linked::Shared);
    let path = socket("server");
    let daemon = daemon(&path);
    let arguments = ["darc", "0", "kv", path.to_str().expect("UTF-8")];
    let mut server = start(&program, &arguments);
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = line.trim().strip_prefix("listening udp://");
    socket.connect(address.expect("its address")).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    for index in 0..200 {
        ask(&socket, index);
        if index % 50 == 0 {
            until("it gives its cores back", || {
                cores_of(&daemon, "kv") == Some(0)
            });
        }
    }
    drop(server.0.stdin.take());
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert_eq!(said, "answered 200, preemptions 0\n");
    until("it is gone", || cores_of(&daemon, "kv").is_none());
    daemon.stop();
}

#[test]
fn a_daemon_without_an_application_is_refused() {
    // SAFETY: numbers and pointers, of which 0 is a value.
    let mut options: HeadwayRuntimeOptions = unsafe { std::mem::zeroed() };
    options.size = size_of::<HeadwayRuntimeOptions>();
    options.host_socket = c"/run/headway/host.sock".as_ptr();
    let mut runtime = std::ptr::null_mut();
    // SAFETY: both are valid.
    let code = unsafe { headway_runtime_start(&raw const options, &raw mut runtime) };
    assert_eq!(code, HEADWAY_E_ARGUMENT);
    // SAFETY: a string until the next call that fails.
    let why = unsafe { CStr::from_ptr(headway_last_error()) };
    let why = why.to_str().expect("UTF-8");
    assert!(why.starts_with("host_socket needs an application"), "{why}");
}
