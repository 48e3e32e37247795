//! Either side is killed at any moment, hangs, or writes nonsense. Nothing leaks, and the others continue.

use crate::apps::Work;
use crate::stage::{Open, Stage, cores_of, descriptors, masks, may, report, turn, until};
use headway_host::daemon::HostDaemon;
use headway_kthread::CoreSource;
use headway_policy::Rng;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The kills of each side: together 200.
const APPS_KILLED: usize = 150;
const DAEMONS_KILLED: usize = 50;

fn settle(daemon: &HostDaemon) {
    until("every application is gone", || {
        report(daemon).apps.is_empty()
    });
    let told = report(daemon);
    assert!(told.cores.iter().all(|core| core.app.is_none()), "{told:?}");
}

#[test]
fn an_application_that_is_killed_gives_everything_back() {
    let _turn = turn();
    if !may("an_application_that_is_killed_gives_everything_back") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    // The first round opens the descriptors that stay open.
    kill_after(&stage, &daemon, "kv", Duration::from_millis(20));
    settle(&daemon);
    let before = Open::now();
    let mut rng = Rng::new(7);
    for round in 0..APPS_KILLED {
        let name = ["kv", "web", "batch", "liar", "hangs"][round % 5];
        let after = Duration::from_micros(rng.below(15_000) as u64);
        kill_after(&stage, &daemon, name, after);
    }
    settle(&daemon);
    until("descriptors and memory are given back", || {
        Open::now().is_within(before)
    });
    daemon.stop();
}

fn kill_after(stage: &Stage, daemon: &HostDaemon, name: &str, after: Duration) {
    let mut child = stage.spawn(name);
    // Half of the kills come before it has started.
    if after.as_micros().is_multiple_of(2) {
        until("it registered", || !report(daemon).apps.is_empty());
    }
    thread::sleep(after);
    child.kill();
}

/// The application keeps its cores, and the next daemon takes it over.
#[test]
fn a_daemon_that_is_killed_is_succeeded_by_the_next() {
    let _turn = turn();
    if !may("a_daemon_that_is_killed_is_succeeded_by_the_next") {
        return;
    }
    let stage = Stage::new();
    let mut child = stage.spawn("daemon");
    let work = Work::register("kv", 2, &stage.socket());
    let ended = AtomicBool::new(false);
    let mut rng = Rng::new(11);
    let before = descriptors();
    thread::scope(|scope| {
        for kthread in 0..work.client.kthreads() {
            let (work, ended) = (Arc::clone(&work), &ended);
            scope.spawn(move || work.run(kthread, &|| ended.load(Ordering::Acquire)));
        }
        for round in 1..=DAEMONS_KILLED as u64 {
            work.put(200);
            thread::sleep(Duration::from_micros(rng.below(5_000) as u64));
            child.kill();
            work.put(200);
            until("it works without a daemon", || {
                work.taken.load(Ordering::Acquire) == round * 400
            });
            child = stage.spawn("daemon");
        }
        child.kill();
        let daemon = stage.daemon();
        until("the last one has it", || !report(&daemon).apps.is_empty());
        work.put(1);
        until("it works with the last one", || {
            work.taken.load(Ordering::Acquire) == DAEMONS_KILLED as u64 * 400 + 1
        });
        ended.store(true, Ordering::Release);
        work.client.close();
        // Its last kthread ends the registration; its books are still there.
        until("it is gone", || report(&daemon).apps.is_empty());
        daemon.stop();
    });
    drop(work);
    assert!(descriptors() <= before, "descriptors leak");
}

/// The application works on any core meanwhile. The next daemon takes it over, and is given the cores back that have no work.
#[test]
fn a_daemon_that_ends_in_order_is_succeeded_by_the_next() {
    const ROUNDS: u64 = 5;
    let _turn = turn();
    if !may("a_daemon_that_ends_in_order_is_succeeded_by_the_next") {
        return;
    }
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    let work = Work::register("kv", 2, &stage.socket());
    let is_done = |work: &Work, put| work.taken.load(Ordering::Acquire) == put;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for kthread in 0..work.client.kthreads() {
            let (work, ended) = (Arc::clone(&work), &ended);
            scope.spawn(move || work.run(kthread, &|| ended.load(Ordering::Acquire)));
        }
        for round in 1..=ROUNDS {
            work.put(200);
            daemon.stop();
            work.put(200);
            until("it works without a daemon", || is_done(&work, round * 400));
            daemon = stage.daemon();
            until("the next one has it", || !report(&daemon).apps.is_empty());
            until("the cores are given back", || {
                cores_of(&report(&daemon), "kv") == Some(0)
            });
        }
        ended.store(true, Ordering::Release);
        work.client.close();
        until("it is gone", || report(&daemon).apps.is_empty());
        daemon.stop();
    });
}

/// A kthread never leaves its core; the daemon moves it away, and others make progress.
#[test]
fn an_application_that_hangs_stalls_nobody() {
    let _turn = turn();
    if !may("an_application_that_hangs_stalls_nobody") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut hanging = stage.spawn("hangs");
    until("it has a core", || {
        cores_of(&report(&daemon), "web").is_some_and(|cores| cores > 0)
    });
    serve(&stage);
    until("it was moved away", || {
        report(&daemon).apps.iter().any(|app| app.evictions > 0)
    });
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(hanging.id() as i32),
        nix::sys::signal::Signal::SIGSTOP,
    )
    .unwrap();
    serve(&stage);
    hanging.kill();
    settle(&daemon);
    daemon.stop();
}

/// An application writes nonsense into every shared word: others make progress, and no thread of theirs is moved or signalled.
#[test]
fn an_application_that_lies_hurts_only_itself() {
    let _turn = turn();
    if !may("an_application_that_lies_hurts_only_itself") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut liar = stage.spawn("liar");
    until("it is there", || {
        cores_of(&report(&daemon), "web").is_some()
    });
    let own = masks(std::process::id());
    for _ in 0..5 {
        serve(&stage);
    }
    assert_eq!(
        own.first(),
        masks(std::process::id()).first(),
        "this thread was moved"
    );
    liar.kill();
    settle(&daemon);
    daemon.stop();
}

/// Connections that send nothing, read nothing or end half-way leave room for others.
#[test]
fn connections_that_do_nothing_keep_nobody_out() {
    let _turn = turn();
    if !may("connections_that_do_nothing_keep_nobody_out") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let before = descriptors();
    let silent: Vec<_> = (0..20).map(|_| connect(&stage)).collect();
    for socket in &silent {
        let garbage = [0xff_u8; 100];
        let _ = nix::sys::socket::send(
            std::os::fd::AsRawFd::as_raw_fd(socket),
            &garbage,
            nix::sys::socket::MsgFlags::MSG_NOSIGNAL,
        );
    }
    let mute: Vec<_> = (0..20).map(|_| connect(&stage)).collect();
    assert!(
        UnixStream::connect(stage.socket()).is_err(),
        "it is a socket of packets"
    );
    serve(&stage);
    drop((silent, mute));
    settle(&daemon);
    until("descriptors are given back", || descriptors() <= before);
    daemon.stop();
}

fn connect(stage: &Stage) -> std::os::fd::OwnedFd {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
    let fd = socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    let address = UnixAddr::new(&stage.socket()).unwrap();
    connect(std::os::fd::AsRawFd::as_raw_fd(&fd), &address).unwrap();
    fd
}

/// An application that registers, works and ends.
fn serve(stage: &Stage) {
    let work = Work::register("kv", 2, &stage.socket());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for kthread in 0..work.client.kthreads() {
            let (work, ended) = (Arc::clone(&work), &ended);
            scope.spawn(move || work.run(kthread, &|| ended.load(Ordering::Acquire)));
        }
        for round in 1..=20 {
            work.put(50);
            until("its work is done", || {
                work.taken.load(Ordering::Acquire) == 50 * round
            });
        }
        ended.store(true, Ordering::Release);
        work.client.close();
    });
}
