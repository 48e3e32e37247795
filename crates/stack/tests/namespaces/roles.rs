//! The roles of the applications in the daemon's tests, each in a process of its own.
#![expect(
    unsafe_code,
    reason = "threads in user space move between kthreads by a promise"
)]

use crate::hosted::{DEVICE, settings};
use crate::{example, services};
use headway_host::client::{ClientOptions, HostClient};
use headway_host::daemon::HostDaemon;
use headway_kthread::CoreSource;
use headway_machine::Clock;
use headway_rings::lane::{LANE_BYTES, LaneEnds};
use headway_rings::mapping::SharedMapping;
use headway_stack::{NetStack, TcpListener, UdpSocket, Uthreads};
use headway_threads::{Migration, Runtime, spawn};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The role of a process, and its daemon's socket.
const ROLE: &str = "HEADWAY_STACK_ROLE";

/// A process that ends with the test.
pub(crate) struct RoleProcess(Child);

impl RoleProcess {
    pub(crate) fn start(role: &str, socket: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let only_role = ["roles::role", "--exact", "--ignored", "--nocapture"];
        command
            .args(only_role)
            .env(ROLE, format!("{role}:{}", socket.display()))
            .stdout(Stdio::null());
        Self(command.spawn().expect("a process"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The entry of a test's process, not a test.
#[test]
#[ignore = "it is a process of other tests"]
fn role() {
    let Ok(told) = std::env::var(ROLE) else {
        return;
    };
    // The process dies with the thread that started it, however that ends.
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).expect("it is permitted");
    let (role, socket) = told.split_once(':').expect("a role and a socket");
    match role {
        "echo" => echo(Path::new(socket)),
        "liar" => lie(Path::new(socket)),
        "daemon" => keep_daemon(Path::new(socket)),
        "services" => services::serve(Path::new(socket)),
        "example" => example::serve(socket, "web").expect("the daemon has a place"),
        other => panic!("there is no role {other}"),
    }
}

/// The file with the newest report of a daemon in a process of its own.
pub(crate) fn report_place(socket: &Path, process: u32) -> PathBuf {
    socket.with_extension(process.to_string())
}

/// A daemon, and a file that says what it reports.
fn keep_daemon(socket: &Path) {
    let daemon =
        HostDaemon::start(settings(socket, Some(DEVICE)), Clock::global()).expect("a daemon");
    let place = report_place(socket, std::process::id());
    let next = place.with_extension("next");
    loop {
        let report = daemon.observer().report(0, 0).expect("the daemon answers");
        let report = serde_json::to_vec(&report).expect("numbers and words");
        fs::write(&next, report).expect("a file");
        fs::rename(&next, &place).expect("a file");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn register(name: &str, socket: &Path) -> HostClient {
    let options = ClientOptions {
        network: true,
        at_signal: headway_threads::STOP_AT_SIGNAL,
        ..ClientOptions::new(name, 2)
    };
    HostClient::register(socket, &options).expect("the daemon has a place")
}

/// The threads of an application, with a stack over its lanes.
pub(crate) fn threads_of(name: &str, socket: &Path) -> (Runtime, Arc<NetStack<Uthreads>>) {
    let client = Arc::new(register(name, socket));
    let stack = NetStack::of_host(&client, 256 << 10, Uthreads).expect("packets");
    // SAFETY: neither these threads nor the stack use thread-local variables of `std`, and the stack holds its lock in sections only.
    let migration = unsafe { Migration::allow() };
    let runtime = Runtime::builder().source(client, migration);
    let runtime = runtime.packets(Arc::<NetStack<Uthreads>>::clone(&stack));
    let runtime = runtime.stack_bytes(256 << 10).start().expect("threads");
    (runtime, stack)
}

/// Answers datagrams at port 7, and connections at port 80, with the received bytes.
fn echo(socket: &Path) {
    let (runtime, stack) = threads_of("kv", socket);
    runtime.run(move || {
        let datagrams = UdpSocket::bind(&stack, 7).expect("the port");
        spawn(move || {
            let mut buffer = [0; 2000];
            loop {
                let (bytes, from) = datagrams.recv_from(&mut buffer).expect("a datagram");
                datagrams.send_to(&buffer[..bytes], from).expect("sent");
            }
        });
        let listener = TcpListener::bind(&stack, 80, 8).expect("the port");
        loop {
            let stream = listener.accept().expect("a connection");
            spawn(move || {
                let mut buffer = vec![0; 16 << 10];
                while let Ok(bytes @ 1..) = (&stream).read(&mut buffer) {
                    (&stream).write_all(&buffer[..bytes]).expect("written");
                }
            });
        }
    });
}

/// Sends with others' addresses, and then writes nonsense into all shared memory.
fn lie(socket: &Path) {
    let client = Arc::new(register("web", socket));
    let network = client.network().expect("it asked for one");
    let mut lanes = network.take_lanes().expect("nobody took them");
    let own = network.place().mac;
    let kthreads = Arc::clone(&client);
    std::thread::spawn(move || {
        kthreads.enter(0);
        loop {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let mut frame = [0u8; 60];
    for round in 0..200u8 {
        frame[..6].copy_from_slice(&[2, 0, 10, 77, 0, 9]);
        frame[6..12].copy_from_slice(if round % 2 == 0 { &own } else { b"\x02other" });
        let _ = lanes[0].sender.send(&frame[..usize::from(round) % 60]);
        let _ = lanes[0].sender.send(&frame);
        client.packets_sent();
        client.notify();
        std::thread::sleep(Duration::from_micros(100));
    }
    scribble(&client);
}

/// The memory of the lanes, by the descriptor that this process has of it.
fn lanes_memory() -> Arc<SharedMapping> {
    let open = fs::read_dir("/proc/self/fd").expect("/proc").flatten();
    let mut open = open.map(|entry| entry.path());
    let lanes = open.find(|path| {
        fs::read_link(path).is_ok_and(|name| name.to_string_lossy().contains("headway-lanes"))
    });
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true);
    let file = options.open(lanes.expect("it has lanes")).expect("its own");
    Arc::new(SharedMapping::of(file.as_fd(), 2 * LANE_BYTES, 0).expect("memory"))
}

fn scribble(client: &HostClient) {
    let memory = lanes_memory();
    let words = memory.words(0, 2 * LANE_BYTES / 8).expect("all of it");
    let mut seed = u64::from(std::process::id());
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let indices: Vec<_> = (0..2)
        .flat_map(|lane| [0, 64, 128, 192].map(|line| lane * LANE_BYTES + line))
        .filter_map(|offset| memory.word(offset))
        .collect();
    loop {
        for _ in 0..1000 {
            words.set(next() as usize % words.len(), next());
        }
        for index in &indices {
            index.store(next() as u32, Ordering::Release);
        }
        client.packets_sent();
        client.notify();
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn a_role_needs_to_be_asked_for() {
    assert!(std::env::var_os(ROLE).is_none());
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    assert!(LaneEnds::of_application(&memory, 0).is_some());
}
