//! How a server starts, fails and stops.

use std::net::SocketAddr;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headway_net::classify::AnyClassifier;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::pool::SlotPool;
use headway_policy::WorkerId;
use headway_runtime::{
    Builder, Call, Idle, Layout, Server, Service, SetupFailure, ShutdownError, StartError, Stats,
    checkpoint,
};

use super::common::{
    Client, FOREVER, ServeOnLoopback, gated, laid_out, loopback, stopped_before_the_gate_opens,
    wait_until,
};
use super::{both_layouts, builder, handle};

/// One of each kind: a dispatcher, workers that interrupt themselves, a dispatcher that interrupts them, workers that are steered, and thieves
/// among them.
const POLICIES: [&str; 5] = ["c-fcfs", "tiny-quanta", CONCORD, "d-fcfs", "work-stealing"];
/// Its dispatcher runs no requests: the tests' handlers would hold it up.
const CONCORD: &str = "concord,q=20us,dispatcher=dedicated";

/// A builder of the policy in the layout.
fn placed(policy: &str, layout: Layout) -> Builder {
    laid_out(builder(), policy, layout)
}

fn each(test: impl Fn(&'static str, Layout)) {
    for policy in POLICIES {
        both_layouts(|layout| test(policy, layout));
    }
}

/// Runs many rounds, each of which ends by a wake. A thread that nobody wakes sleeps for a second, or for ever: then no round is shorter. A busy
/// machine delays some rounds, and not all of them.
fn woken_each_time(context: &str, once: impl Fn()) {
    const ROUNDS: u32 = 40;
    let times = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        once();
        begun.elapsed()
    });
    let shortest = times.min().expect("there are rounds");
    assert!(shortest < Duration::from_secs(1), "{context}: {shortest:?}");
}

#[test]
fn a_server_asleep_stops_at_once() {
    each(|policy, layout| {
        woken_each_time(policy, || {
            let server = placed(policy, layout).idle(Idle::Park).serving(handle);
            let mut client = Client::of(&server);
            assert_eq!(client.call(0, 1, b"echo").0, Status::Ok);
            server.shutdown(FOREVER).unwrap();
        });
    });
}

/// A classifier of a user's that panics once.
fn fragile(datagram: &[u8]) -> Option<u16> {
    assert!(!datagram.ends_with(b"break"), "as the test asked");
    Some(0)
}

#[test]
fn a_thread_that_panics_ends_the_server_and_is_the_only_one_blamed() {
    each(|policy, layout| {
        woken_each_time(policy, || {
            let service = Arc::new(());
            let theirs = Arc::clone(&service);
            let server = placed(policy, layout)
                .idle(Idle::Park)
                .classifier(fragile)
                .serving(move |call: &mut Call<'_>| {
                    let _ = &theirs;
                    handle(call);
                });
            let client = Client::of(&server);
            client.send(0, 1, b"break");
            server.wait();
            // Nobody else wakes them: the stop that wakes all is not asked for.
            wait_until("its threads are gone", || Arc::strong_count(&service) == 1);
            let error = server.shutdown(FOREVER).map(drop).unwrap_err();
            let ShutdownError::Crashed { threads } = &error else {
                panic!("{policy} {layout:?}: {error}");
            };
            assert_eq!(threads.len(), 1, "{policy} {layout:?}: {error}");
        });
    });
}

#[test]
fn workers_with_suspended_requests_outlive_no_dispatcher() {
    let gate = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&gate);
    let server = builder()
        .policy(CONCORD)
        .workers(1)
        .idle(Idle::Park)
        .classifier(fragile)
        .service(move |_: &mut Call<'_>| {
            while !opened.load(Ordering::Acquire) {
                checkpoint();
            }
        })
        .listen_udp(loopback())
        .start()
        .unwrap();
    let client = Client::connect(server.local_addr().unwrap());
    client.send(0, 1, b"x");
    client.send(0, 2, b"x");
    wait_until("one is suspended", || server.stats().preemptions > 0);
    client.send(0, 3, b"break");
    server.wait();
    gate.store(true, Ordering::Release);
    let error = server.shutdown(FOREVER).map(drop).unwrap_err();
    let threads = vec!["hw-dispatch".to_owned()];
    assert_eq!(error, ShutdownError::Crashed { threads });
}

/// The number of waiting requests at the stop of a server: far above its buffers.
const WAITING: u32 = 200;

/// All that was sent is in one count, and what was answered, was answered once.
fn assert_accounted(mut client: Client, stats: &Stats, context: &str) {
    let context = format!("{context}: {stats:?}");
    (0..stats.responses()).for_each(|_| drop(client.receive()));
    client.assert_silent();
    assert!(client.answers.values().all(|answers| answers.len() == 1));
    assert_eq!(client.answers.len() as u64, stats.responses(), "{context}");
    assert_eq!(stats.received, u64::from(WAITING), "{context}");
    assert_eq!(
        stats.received,
        stats.responses() + stats.abandoned,
        "{context}"
    );
    assert_eq!(stats.kernel_drops, 0, "{context}");
}

/// A server whose workers are held up, with more requests than it has buffers.
fn crowded(policy: &str, layout: Layout, gate: &Arc<AtomicBool>) -> (Server, Client) {
    let server = placed(policy, layout).slots(64).serving(gated(gate));
    let client = Client::of(&server);
    (0..WAITING).for_each(|index| client.send(1, index, b"x"));
    wait_until("some are in", || server.stats().received > 0);
    (server, client)
}

#[test]
fn all_that_waits_at_a_stop_is_answered() {
    each(|policy, layout| {
        let gate = Arc::new(AtomicBool::new(false));
        let (server, client) = crowded(policy, layout, &gate);
        server.stopper().request_stop();
        // It does not wait for the work, which is stuck.
        server.wait();
        gate.store(true, Ordering::Release);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.abandoned, 0, "{policy} {layout:?}: {stats:?}");
        assert!(stats.answered >= 32, "{policy} {layout:?}: {stats:?}");
        assert_accounted(client, &stats, &format!("{policy} {layout:?}"));
    });
}

#[test]
fn all_that_waits_at_a_deadline_is_answered_or_counted() {
    each(|policy, layout| {
        wait_until("the deadline comes before the gate opens", || {
            let gate = Arc::new(AtomicBool::new(false));
            let (server, client) = crowded(policy, layout, &gate);
            let Some(stats) = stopped_before_the_gate_opens(server, &gate) else {
                return false;
            };
            assert_accounted(client, &stats, &format!("{policy} {layout:?}"));
            // A dispatcher abandons what it took in, and has shed what found no room. Thieves leave in the socket what they do not run at once, so
            // that it is refused instead.
            stats.abandoned + stats.refused_draining >= 32
        });
    });
}

#[test]
fn a_deadline_beyond_all_clocks_never_passes() {
    let server = builder().serving(handle);
    server.shutdown(Duration::MAX).unwrap();
}

/// A panic's payload that panics when it is dropped, with another of its kind.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic_any(Grenade);
    }
}

#[test]
fn a_panic_that_panics_when_it_is_dropped_costs_its_request_only() {
    each(|policy, layout| {
        let server = placed(policy, layout).serving(|call: &mut Call<'_>| match call.payload() {
            b"grenade" => panic_any(Grenade),
            _ => call.reply_in_place(),
        });
        let mut client = Client::of(&server);
        for index in 0..4 {
            assert_eq!(client.call(0, index, b"grenade").0, Status::Error);
            assert_eq!(client.call(0, index, b"echo").0, Status::Ok);
        }
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(
            (stats.panics, stats.answered),
            (4, 8),
            "{policy} {layout:?}"
        );
    });
}

/// A service of which one worker cannot be set up.
struct Unready {
    panics: bool,
}

impl Service for Unready {
    fn handle(&self, _: &mut Call<'_>) {}

    fn setup_worker(&self, worker: WorkerId, _: Option<usize>) -> Result<(), SetupFailure> {
        match worker.0 {
            1 if self.panics => panic!("as the test asked"),
            1 => Err("as the test asked".into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_worker_that_cannot_be_set_up_keeps_the_server_from_starting() {
    each(|policy, layout| {
        for (panics, why) in [(true, "it panicked"), (false, "as the test asked")] {
            let addr = own_address();
            let error = placed(policy, layout)
                .idle(Idle::Park)
                .service(Unready { panics })
                .listen_udp(addr)
                .start()
                .map(drop)
                .unwrap_err();
            let StartError::Setup { name, source } = &error else {
                panic!("{policy} {layout:?}: {error}");
            };
            assert_eq!(name, "hw-worker-1");
            assert!(source.to_string().contains(why), "{error}");
            // The threads that were ready are gone, and the socket with them.
            wait_until("the port is free", || {
                std::net::UdpSocket::bind(addr).is_ok()
            });
        }
    });
}

/// An address of this process's own, at a port that the system gives to no socket that asks for any.
fn own_address() -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 128 | high, middle, low], 7_000))
}

#[test]
fn responses_are_never_answered_whatever_the_classifier() {
    for classifier in [
        "header",
        "offset:at=10,bytes=1",
        "resp:GET=0",
        "memcached",
        "protobuf:field=1",
    ] {
        let server = builder()
            .classifier(classifier.parse::<AnyClassifier>().unwrap())
            .serving(handle);
        let mut client = Client::of(&server);
        let request = Header {
            class: 0,
            flag: Flag::REQUEST,
            index: 1,
            time_ns: 0,
        };
        for status in [Status::Ok, Status::Shed, Status::Error] {
            client.send_raw(&request.response(status, 5).encode());
            client.send_raw(&[&request.response(status, 5).encode()[..], b"echo"].concat());
        }
        assert_eq!(client.call(0, 7, b"echo").0, Status::Ok, "{classifier}");
        client.assert_silent();
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!((stats.malformed, stats.answered), (6, 1), "{classifier}");
    }
}

#[test]
fn a_protocols_own_requests_are_no_responses() {
    let classifier: AnyClassifier = "memcached".parse().unwrap();
    let server = builder().classifier(classifier).serving(handle);
    let mut client = Client::of(&server);
    for request in [
        "get some-key\r\n",
        "delete some-key\r\n",
        "*4\r\n$3\r\nSET\r\n",
    ] {
        client.send_raw(request.as_bytes());
        let (header, _) = client.receive();
        let index = u32::from_be_bytes(request.as_bytes()[2..6].try_into().unwrap());
        assert_eq!(
            header.index, index,
            "{request}, {HEADER_BYTES} bytes of it overwritten"
        );
    }
    server.shutdown(FOREVER).unwrap();
}

/// Uses up the numbers that a process has for pools, so it runs in one of its own.
#[test]
#[ignore = "run by servers_one_after_another_do_not_run_out"]
fn starts_servers_with_one_number_left() {
    let last = SlotPool::new(1).unwrap();
    // A pool's number is used up with a token that is lost.
    while let Ok((_pool, mut free)) = SlotPool::new(1) {
        let _lost = free.take();
    }
    drop(last);
    each(|policy, layout| {
        for stops in [true, false, true] {
            let server = placed(policy, layout).serving(handle);
            if stops {
                let mut client = Client::of(&server);
                assert_eq!(client.call(0, 1, b"echo").0, Status::Ok);
                server.shutdown(FOREVER).unwrap();
            }
        }
    });
}

#[test]
fn servers_one_after_another_do_not_run_out() {
    let test = "life::starts_servers_with_one_number_left";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
}

#[test]
fn threads_share_a_server() {
    fn share<T: Send + Sync>() {}
    share::<Server>();
}
