//! The roles of the tests' processes.

use crate::stage::{ROLE, settings};
use headway_host::client::{ClientOptions, HostClient};
use headway_host::daemon::HostDaemon;
use headway_kthread::{CoreSource, Grant};
use headway_machine::Clock;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The entry of a test's process, not a test. It ends when it is killed.
#[test]
#[ignore = "it is a process of other tests"]
fn role() {
    let Ok(told) = std::env::var(ROLE) else {
        return;
    };
    let (role, socket) = told.split_once(':').expect("a role and a socket");
    let socket = PathBuf::from(socket);
    match role {
        "daemon" => daemon(&socket),
        "kv" | "web" | "batch" => app(role, &socket),
        "hangs" => hangs(&socket),
        "asks" => asks(&socket),
        "liar" => liar(&socket),
        "daemonises" => crate::programs::daemonise(&socket),
        other => panic!("there is no role {other}"),
    }
}

fn daemon(socket: &Path) {
    let _daemon = HostDaemon::start(settings(socket, "shenango"), Clock::global()).unwrap();
    loop {
        thread::park();
    }
}

/// A counter as a queue: each entry is a little work.
pub(crate) struct Work {
    pub(crate) client: HostClient,
    pub(crate) put: AtomicU64,
    pub(crate) taken: AtomicU64,
}

impl Work {
    pub(crate) fn register(name: &str, kthreads: usize, socket: &Path) -> Arc<Self> {
        let client = loop {
            match HostClient::register(socket, &ClientOptions::new(name, kthreads)) {
                Ok(client) => break client,
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        };
        Arc::new(Self {
            client,
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        })
    }

    pub(crate) fn put(&self, count: u64) {
        for _ in 0..count {
            self.client.put(1);
            self.put.fetch_add(1, Ordering::Release);
            self.client.notify();
        }
    }

    fn take(&self) -> bool {
        let taken = self.taken.load(Ordering::Acquire);
        let is_there = taken < self.put.load(Ordering::Acquire);
        let order = Ordering::AcqRel;
        is_there
            && self
                .taken
                .compare_exchange(taken, taken + 1, order, Ordering::Relaxed)
                .is_ok()
            && {
                self.client.took(1);
                true
            }
    }

    fn finds_nothing(&self) -> bool {
        self.taken.load(Ordering::Acquire) == self.put.load(Ordering::Acquire)
    }

    /// A kthread: works while there is work, until `ends`.
    pub(crate) fn run(&self, kthread: usize, ends: &dyn Fn() -> bool) {
        let mut grant: Grant = self.client.enter(kthread);
        while !ends() {
            if self.client.orders(kthread).is_revoked(grant) {
                grant = self.client.leave(kthread, grant, &mut || true);
            } else if self.take() {
                work();
            } else {
                grant = self
                    .client
                    .leave(kthread, grant, &mut || self.finds_nothing());
            }
        }
        self.client.exit();
    }
}

fn work() {
    for turn in 0..500 {
        std::hint::black_box(turn);
    }
}

/// Registers, and writes beside the socket what comes of it.
fn asks(socket: &Path) {
    let answer = match HostClient::register(socket, &ClientOptions::new("web", 1)) {
        Ok(_) => "registered".to_owned(),
        Err(error) => error.to_string(),
    };
    std::fs::write(socket.with_extension("answer"), answer).unwrap();
}

/// Bursts of work for ever.
fn app(name: &str, socket: &Path) {
    let work = Work::register(name, 2, socket);
    for kthread in 0..work.client.kthreads() {
        let work = Arc::clone(&work);
        thread::spawn(move || work.run(kthread, &|| false));
    }
    let mut burst = 1;
    loop {
        work.put(burst % 97);
        burst += 31;
        thread::sleep(Duration::from_micros(100 + burst % 400));
    }
}

/// Keeps its core, and ignores all orders.
fn hangs(socket: &Path) {
    let work = Work::register("web", 2, socket);
    block_signal();
    for kthread in 0..work.client.kthreads() {
        let work = Arc::clone(&work);
        thread::spawn(move || {
            work.client.enter(kthread);
            loop {
                std::hint::spin_loop();
            }
        });
    }
    work.put(1_000_000);
    loop {
        thread::park();
    }
}

/// Threads created from here on block the daemon's signal.
pub(crate) fn block_signal() {
    use nix::sys::signal::{SigSet, Signal};
    let mut set = SigSet::empty();
    set.add(Signal::SIGUSR1);
    set.thread_block().unwrap();
}

/// Writes nonsense into every shared word, as fast as it can.
fn liar(socket: &Path) {
    let work = Work::register("web", 2, socket);
    let mut seed = u64::from(std::process::id());
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let daemon_or_init = [
        1,
        std::process::id(),
        nix::unistd::getppid().as_raw() as u32,
    ];
    block_signal();
    for kthread in 0..work.client.kthreads() {
        let work = Arc::clone(&work);
        thread::spawn(move || {
            work.client.enter(kthread);
            loop {
                std::hint::spin_loop();
            }
        });
    }
    work.put(10);
    loop {
        for kthread in 0..work.client.kthreads() {
            let line = work.client.line(kthread);
            line.run_head.store(next(), Ordering::Relaxed);
            line.run_tail.store(next(), Ordering::Relaxed);
            line.ingress_head.store(next(), Ordering::Relaxed);
            line.ingress_tail.store(next(), Ordering::Relaxed);
            let lies = [
                daemon_or_init[0],
                daemon_or_init[1],
                daemon_or_init[2],
                next() as u32,
            ];
            line.set_tid(lies[(next() % 4) as usize]);
            line.leave(Grant(next()));
            let orders = work.client.orders(kthread);
            orders.grant_as(next() as u32, Grant(next()));
            orders.revoke_to(Grant(next()));
        }
        work.client.put(1);
        work.client.notify();
        thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn a_role_needs_to_be_asked_for() {
    assert!(std::env::var_os(ROLE).is_none());
}
