//! Several dispatchers in one server, each with workers and a receive queue of its own: they start, drain, give up and fail as one server.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headway_net::header::Status;
use headway_runtime::{Builder, Call, Idle, Layout, Pin, ResizeError, Server, Spin};

use super::common::{
    Client, FOREVER, ServeOnLoopback, assert_all_answered, gated, loopback, play, replay,
    uneven_replay, wait_until,
};
use super::slower::until_interrupted;
use super::{alone, given_up};

const REQUESTS: u32 = 300;
const LONG_NS: u64 = 200_000;
const GAP_NS: u64 = 40_000;
const LAYOUTS: [Layout; 2] = [Layout::Dedicated, Layout::Inline];

fn builder(policy: &str, workers: usize, layout: Layout) -> Builder {
    Server::builder()
        .policy(policy)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(LONG_NS))
        .workers(workers)
        .layout(layout)
        .pin(Pin::Off)
}

#[test]
fn everything_is_answered_once_by_any_division() {
    let _alone = alone();
    for layout in LAYOUTS {
        for (dispatchers, workers) in [(2, 2), (2, 3), (3, 4)] {
            for how in ["dedicated", "works"] {
                let policy = format!("concord,dispatchers={dispatchers},dispatcher={how}");
                let (datapath, control) = replay(dispatchers, REQUESTS, GAP_NS, [500, LONG_NS]);
                let server = builder(&policy, workers, layout)
                    .service(Spin::default())
                    .datapath(datapath)
                    .start()
                    .unwrap();
                assert_eq!(server.layout(), Some(layout));
                let said = server.params().iter().any(|(key, _)| *key == "dispatchers");
                assert!(said, "{policy}");
                play(&control);
                let stats = server.shutdown(FOREVER).unwrap();
                let context = format!("{policy}, {workers} workers, {layout:?}");
                assert_all_answered(&stats, &control, LONG_NS, &context);
            }
        }
    }
}

/// A dispatcher knows nothing of the others: its requests stay with its workers, whose numbers are the server's.
#[test]
fn requests_stay_with_the_workers_of_their_dispatcher() {
    let _alone = alone();
    for layout in LAYOUTS {
        for fed in [1, 2] {
            let seen = Arc::new(Mutex::new(HashSet::new()));
            let (datapath, control) = uneven_replay(2, fed, REQUESTS, 1_000, [500, 500]);
            let ran = Arc::clone(&seen);
            let server = builder("concord,dispatchers=2,dispatcher=dedicated", 4, layout)
                .service(move |call: &mut Call<'_>| {
                    ran.lock().unwrap().insert(call.worker().index());
                })
                .datapath(datapath)
                .start()
                .unwrap();
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            assert_eq!(stats.answered, u64::from(REQUESTS), "{stats:?}");
            let seen = seen.lock().unwrap();
            let of_first = seen.iter().any(|&worker| worker < 2);
            let of_second = seen.iter().any(|&worker| worker >= 2);
            assert_eq!(
                (of_first, of_second),
                (true, fed == 2),
                "{layout:?}: {seen:?}"
            );
            assert!(seen.iter().all(|&worker| worker < 4), "{seen:?}");
        }
    }
}

/// Longs yield to what waits at their own dispatcher.
#[test]
fn longs_are_interrupted_in_each_group() {
    let _alone = alone();
    for layout in LAYOUTS {
        until_interrupted("two dispatchers", |stretch| {
            let (datapath, control) =
                replay(2, REQUESTS, 150_000 * stretch, [500, LONG_NS * stretch]);
            let server = builder(
                "concord,dispatchers=2,dispatcher=dedicated,q=20us",
                2,
                layout,
            )
            .service(Spin::default())
            .datapath(datapath)
            .start()
            .unwrap();
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            assert_all_answered(&stats, &control, LONG_NS * stretch, "two groups");
            stats.preemptions
        });
    }
}

/// A group that has drained goes on refusing while another still answers.
#[test]
fn a_drain_ends_when_every_dispatcher_has_answered() {
    let _alone = alone();
    for layout in LAYOUTS {
        let gate = Arc::new(AtomicBool::new(false));
        let server = builder("concord,dispatchers=2,dispatcher=dedicated", 2, layout)
            .idle(Idle::Park)
            .serving(gated(&gate));
        // One socket is one group's; enough of them find both.
        let mut clients: Vec<Client> = (0..16).map(|_| Client::of(&server)).collect();
        for client in &mut clients {
            assert_eq!(client.call(0, 1, b"ping"), (Status::Ok, b"ping".into()));
        }
        clients[0].send(1, 100, b"");
        wait_until("the long request was taken in", || {
            server.stats().classes[1].accepted == 1
        });
        server.stopper().request_stop();
        // In the inline layout nobody receives for the group whose only worker is stuck.
        let receives = |client: usize| layout == Layout::Dedicated || client > 0;
        let mut refused = 0;
        let end = Instant::now() + FOREVER;
        while refused == 0 {
            assert!(Instant::now() < end, "nothing is refused");
            for (number, client) in clients.iter_mut().enumerate() {
                if receives(number)
                    && client.answers_within(Duration::from_millis(20), 0, 101)
                        == Some(Status::Draining)
                {
                    refused += 1;
                }
            }
        }
        gate.store(true, Ordering::Release);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!((stats.abandoned, stats.unsent), (0, 0), "{stats:?}");
        assert_eq!(stats.classes[1].answered, 1);
        assert_eq!(
            stats.received,
            stats.answered + stats.refused_draining,
            "{stats:?}"
        );
    }
}

/// Requests in the middle of their service when time is up are given up in every group, and counted.
#[test]
fn what_is_given_up_is_counted() {
    let _alone = alone();
    for layout in LAYOUTS {
        given_up(&format!("{layout:?}"), 2, || {
            builder("concord,dispatchers=2,dispatcher=dedicated", 2, layout)
        });
    }
}

/// A panicking thread of one group stops all groups, and the error names that thread only.
#[test]
fn a_crash_of_one_dispatcher_stops_the_server() {
    let _alone = alone();
    for layout in LAYOUTS {
        let server = builder("concord,dispatchers=2,dispatcher=dedicated", 2, layout)
            .classifier(|_: &[u8]| -> Option<u16> { panic!("a classifier with a bug") })
            .service(Spin::default())
            .listen_udp(loopback())
            .start()
            .unwrap();
        Client::of(&server).send(0, 1, b"");
        server.wait();
        let crashed = server.shutdown(FOREVER).unwrap_err().to_string();
        assert_eq!(crashed.matches("hw-").count(), 1, "{crashed}");
    }
}

#[test]
fn each_dispatcher_keeps_a_worker() {
    let _alone = alone();
    for layout in LAYOUTS {
        let seen = Arc::new(Mutex::new(HashSet::new()));
        let ran = Arc::clone(&seen);
        let server = builder("concord,dispatchers=2,dispatcher=dedicated", 4, layout).serving(
            move |call: &mut Call<'_>| {
                ran.lock().unwrap().insert(call.worker().index());
                call.reply(b"");
            },
        );
        let refused = ResizeError::Dispatchers {
            workers: 1,
            dispatchers: 2,
        };
        assert_eq!(server.set_workers(1), Err(refused));
        server.set_workers(2).unwrap();
        let workers_of_64 = || {
            seen.lock().unwrap().clear();
            for index in 0..64 {
                assert_eq!(Client::of(&server).call(0, index, b"").0, Status::Ok);
            }
            seen.lock().unwrap().clone()
        };
        // The dispatchers hear of the change when they get a core.
        wait_until("the others get nothing any more", || {
            workers_of_64() == HashSet::from([0, 2])
        });
        assert_eq!(workers_of_64(), HashSet::from([0, 2]), "{layout:?}");
        server.shutdown(FOREVER).unwrap();
    }
}
