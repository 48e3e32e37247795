//! A rack of network namespaces: each host is a thread in a namespace of its own, tied to the switch's by a veth pair. The kernel removes
//! all of it when the threads end.
#![allow(dead_code, reason = "each test uses a part of it")]

use nix::sched::{CloneFlags, unshare};
use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The reason why namespaces are impossible here, if there is one.
pub(crate) fn missing() -> Option<&'static str> {
    if !runs("ip", &["-V"]) {
        return Some("it needs ip (apt-get install iproute2)");
    }
    if !runs("ethtool", &["--version"]) {
        return Some("it needs ethtool (apt-get install ethtool)");
    }
    let tried = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok()).join();
    (!tried.unwrap_or(false)).then_some("this machine permits no network namespaces")
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Runs a command in this thread's namespace.
pub(crate) fn shell(command: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", command])
        .output()
        .expect("sh");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Moves this thread into a network namespace of its own.
pub(crate) fn enter_namespace() {
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
    shell("ip link set dev lo up");
}

thread_local! {
    /// The namespaces of the hosts that this thread wired. Their interfaces would end with their threads, and what is on the other side of a wire with them.
    static WIRED: RefCell<Vec<File>> = const { RefCell::new(Vec::new()) };
}

/// A host of the rack: a thread in its own namespace, with the interface `e0`.
pub(crate) struct Host<T> {
    pub(crate) number: u8,
    thread: JoinHandle<T>,
    wired: Sender<()>,
    tell_id: Receiver<i32>,
    id: OnceCell<i32>,
}

impl<T: Send + 'static> Host<T> {
    /// Starts the thread, which runs `work` once the host is wired to the switch.
    pub(crate) fn start(number: u8, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let ((id, tell_id), (wired, wait)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            enter_namespace();
            id.send(nix::unistd::gettid().as_raw())
                .expect("the test waits");
            wait.recv().expect("the test wires the host");
            work()
        });
        Self {
            number,
            thread,
            wired,
            tell_id,
            id: OnceCell::new(),
        }
    }

    /// The thread, by whose number the namespace is entered.
    pub(crate) fn task(&self) -> i32 {
        *self
            .id
            .get_or_init(|| self.tell_id.recv().expect("the host started"))
    }

    /// Ties the host to the switch's namespace, that of this thread, for as long as this thread lives. Returns the interface there.
    pub(crate) fn wire(&self) -> String {
        let (number, id) = (self.number, self.task());
        let namespace = File::open(format!("/proc/self/task/{id}/ns/net"));
        WIRED.with_borrow_mut(|wired| wired.push(namespace.expect("the host's namespace")));
        // An earlier host of this number may be wired still.
        shell(&format!(
            "ip link delete p{number} 2>&- || true
             ip link add p{number} address {} type veth peer name e0 address {} netns {id}; ip link set dev p{number} up",
            mac_text(switch_mac(number)),
            mac_text(host_mac(number))
        ));
        // The host configures its own side, before its work.
        shell(&format!(
            "nsenter --net=/proc/{}/task/{id}/ns/net sh -ec '
                ip address add 10.77.0.{number}/24 dev e0; ip link set dev e0 up
                ethtool -K e0 gro on tx off
                ip neigh add 10.77.0.1 lladdr {switch} dev e0
                ip neigh add 10.77.0.2 lladdr {switch} dev e0 || true'",
            std::process::id(),
            switch = mac_text(switch_mac(number)),
        ));
        format!("p{number}")
    }

    pub(crate) fn begin(&self) {
        self.wired.send(()).expect("the host waits");
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn end(self) -> T {
        self.thread.join().expect("the host's work")
    }
}

pub(crate) fn host_mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 7, number]
}

/// Of the switch's interface to that host.
pub(crate) fn switch_mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 8, number]
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// The kernel's number of an interface in this namespace.
pub(crate) fn ifindex(interface: &str) -> u32 {
    nix::net::if_::if_nametoindex(interface).expect("the interface")
}
