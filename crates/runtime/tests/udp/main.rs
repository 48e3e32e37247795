//! The server over loopback UDP: what clients see.

#[path = "../common/mod.rs"]
mod common;
mod forks;
mod life;
mod rack;
mod steering;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{
    Client, FOREVER, ServeOnLoopback, gated, laid_out, live_policies, loopback,
    stopped_before_the_gate_opens, wait_until,
};
use headway_net::header::{Flag, Header, Status};
use headway_runtime::{
    Builder, Call, Idle, Layout, MAX_REPLY_BYTES, Pin, Server, ShutdownError, Spin, StartError,
};

fn builder() -> Builder {
    Server::builder()
        .policy("c-fcfs")
        .class("short", Duration::from_nanos(1_000))
        .class("long", Duration::from_nanos(100_000))
        .workers(2)
        .pin(Pin::Off)
}

/// The action of most tests' handler, by the request's first byte.
fn handle(call: &mut Call<'_>) {
    match call.payload().first() {
        Some(b'e') => call.reply_in_place(),
        Some(b'p') => panic!("as the test asked"),
        Some(b'f') => call.fail(),
        Some(b'b') => call.bad_request(),
        Some(b'l') => call.reply(&[7; MAX_REPLY_BYTES + 1]),
        Some(b'm') => call.reply_with(|buffer| {
            buffer.fill(9);
            buffer.len()
        }),
        Some(b'c') => {
            let class = call.class().0 as u8;
            call.reply(&[class]);
        }
        _ => {}
    }
}

fn both_layouts(test: impl Fn(Layout)) {
    [Layout::Dedicated, Layout::Inline]
        .into_iter()
        .for_each(test);
}

#[test]
fn every_policy_and_layout_answers_every_datagram_once() {
    for policy in live_policies() {
        both_layouts(|layout| {
            let server = laid_out(builder(), policy, layout).serving(handle);
            let mut client = Client::of(&server);
            for round in 0..20 {
                // A number of requests in flight that fits into every socket buffer.
                (0..16).for_each(|i| client.send((i % 2) as u8, round * 16 + i, b"echo"));
                (0..16).for_each(|_| drop(client.receive()));
            }
            client.assert_silent();
            assert_eq!(client.answers.len(), 320, "{policy} {layout:?}");
            assert!(
                client
                    .answers
                    .values()
                    .all(|answers| answers.len() == 1 && answers[0].1 == b"echo")
            );
            let stats = server.shutdown(FOREVER).unwrap();
            assert_eq!(
                (stats.received, stats.answered),
                (320, 320),
                "{policy} {layout:?}"
            );
        });
    }
}

#[test]
fn each_outcome_of_a_handler_has_its_status() {
    both_layouts(|layout| {
        let server = builder().layout(layout).serving(handle);
        let mut client = Client::of(&server);
        assert_eq!(client.call(0, 1, b"echo"), (Status::Ok, b"echo".to_vec()));
        assert_eq!(client.call(0, 2, b"fail"), (Status::Error, vec![]));
        assert_eq!(client.call(0, 3, b"bad"), (Status::BadRequest, vec![]));
        assert_eq!(client.call(0, 4, b"large"), (Status::TooLarge, vec![]));
        assert_eq!(
            client.call(0, 5, b"max"),
            (Status::Ok, vec![9; MAX_REPLY_BYTES])
        );
        assert_eq!(client.call(0, 6, b""), (Status::Ok, vec![]));
        assert_eq!(client.call(1, 7, b"class"), (Status::Ok, vec![1]));
        for class in [2, 200, 255] {
            assert_eq!(
                client.call(class, 8, b"class"),
                (Status::Ok, vec![2]),
                "UNKNOWN"
            );
        }
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.classes[2].answered, 3);
        assert_eq!(stats.classes[2].name, "unknown");
    });
}

#[test]
fn spin_refuses_requests_for_more_work_than_it_may_do() {
    for (spin, longest_ns) in [
        (Spin::default(), 100_000_000),
        (Spin::default().longest(Duration::from_micros(30)), 30_000),
    ] {
        let server = builder()
            .service(spin)
            .listen_udp(loopback())
            .start()
            .unwrap();
        let mut client = Client::connect(server.local_addr().unwrap());
        for (time_ns, status) in [
            (longest_ns, Status::Ok),
            (longest_ns + 1, Status::BadRequest),
            (u32::MAX, Status::BadRequest),
        ] {
            let request = Header {
                class: 0,
                flag: Flag::REQUEST,
                index: 1,
                time_ns,
            };
            client.send_raw(&request.encode());
            let (response, _) = client.receive();
            assert_eq!(response.flag.status(), status, "{time_ns} of {longest_ns}");
        }
        server.shutdown(FOREVER).unwrap();
    }
}

#[test]
fn a_panicking_handler_costs_its_request_only() {
    both_layouts(|layout| {
        let server = builder().layout(layout).serving(handle);
        let mut client = Client::of(&server);
        for index in 0..6 {
            assert_eq!(client.call(0, index, b"panic").0, Status::Error);
            assert_eq!(client.call(0, index, b"echo").0, Status::Ok);
        }
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!((stats.panics, stats.answered), (6, 12));
    });
}

#[test]
fn garbage_is_counted_and_harms_nobody() {
    for policy in ["c-fcfs", "d-fcfs", "work-stealing"] {
        both_layouts(|layout| {
            let server = laid_out(builder(), policy, layout).serving(handle);
            let mut client = Client::of(&server);
            for len in 0..10 {
                client.send_raw(&vec![0xFF; len]);
            }
            // All ones has the response flag: nobody answers a response.
            client.send_raw(&[0xFF; 20]);
            client.send_raw(&[0xFB; 3000]);
            let (header, payload) = client.receive();
            assert_eq!((header.flag.status(), payload.len()), (Status::TooLarge, 0));
            assert_eq!(client.call(0, 77, b"echo").0, Status::Ok);
            let stats = server.shutdown(FOREVER).unwrap();
            assert_eq!(
                (stats.malformed, stats.too_large, stats.answered),
                (11, 1, 1),
                "{policy} {layout:?}"
            );
        });
    }
}

#[test]
fn a_sleeping_server_wakes_for_each_request() {
    for policy in ["c-fcfs", "darc", "d-fcfs", "work-stealing"] {
        for idle in [Idle::Park, Idle::SpinThenPark { spin_ns: 1_000 }] {
            both_layouts(|layout| {
                let server = laid_out(builder(), policy, layout)
                    .idle(idle)
                    .serving(handle);
                let mut client = Client::of(&server);
                for index in 0..50 {
                    std::thread::sleep(Duration::from_micros(u64::from(index % 5) * 100));
                    assert_eq!(
                        client.call(0, index, b"echo").0,
                        Status::Ok,
                        "{policy} {idle:?} {layout:?}"
                    );
                }
                server.shutdown(FOREVER).unwrap();
            });
        }
    }
}

#[test]
fn a_drain_answers_all_that_was_accepted_and_refuses_what_comes_later() {
    both_layouts(|layout| {
        let gate = Arc::new(AtomicBool::new(false));
        // With one worker inline, nobody would be there to refuse while it runs.
        let server = builder()
            .layout(layout)
            .policy("darc-static,reserved=1")
            .serving(gated(&gate));
        let mut client = Client::of(&server);
        (0..40).for_each(|index| client.send(1, index, b"x"));
        wait_until("all are in", || server.stats().received == 40);
        let stopper = server.stopper();
        stopper.request_stop();
        // The door closes at the first poll that finds nothing; afterwards requests are refused, not ignored.
        let mut index = 1000;
        let refused = loop {
            client.send(0, index, b"late");
            let (header, _) = client.receive();
            if header.flag.status() == Status::Draining {
                break header;
            }
            assert_eq!(header.flag.status(), Status::Ok);
            index += 1;
        };
        assert_eq!(refused.index, index);
        gate.store(true, Ordering::Release);
        for _ in 0..40 {
            assert_eq!(client.receive().0.flag.status(), Status::Ok);
        }
        server.wait();
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.abandoned, 0);
        assert!(stats.refused_draining >= 1);
        assert!((0..40).all(|index| client.answers[&index].len() == 1));
    });
}

#[test]
fn a_deadline_gives_up_what_has_not_begun() {
    both_layouts(|layout| {
        wait_until("the deadline comes before the gate opens", || {
            let gate = Arc::new(AtomicBool::new(false));
            let server = builder()
                .layout(layout)
                .policy("jbsq,k=3")
                .workers(1)
                .serving(gated(&gate));
            let mut client = Client::of(&server);
            client.send(1, 0, b"x");
            (1..10).for_each(|index| client.send(1, index, b"x"));
            if layout == Layout::Dedicated {
                wait_until("all are in", || server.stats().received == 10);
            } else {
                wait_until("one is in", || server.stats().received > 0);
            }
            let Some(stats) = stopped_before_the_gate_opens(server, &gate) else {
                return false;
            };
            let context = format!("{layout:?} {stats:?}");
            let responses: Vec<Header> =
                (0..stats.responses()).map(|_| client.receive().0).collect();
            client.assert_silent();
            // The server refuses requests that had not arrived yet.
            let (answered, refused): (Vec<&Header>, Vec<&Header>) = responses
                .iter()
                .partition(|response| response.flag.status() == Status::Ok);
            assert!(
                refused
                    .iter()
                    .all(|response| response.flag.status() == Status::Draining)
            );
            assert_eq!(refused.len() as u64, stats.refused_draining, "{context}");
            assert!(client.answers.values().all(|answers| answers.len() == 1));
            assert_eq!(stats.received, 10, "{context}");
            assert_eq!(stats.responses() + stats.abandoned, 10, "{context}");
            // None was begun where the machine kept the worker from it, more where it delayed the stop.
            let is_first = |response: &&Header| response.index == 0;
            answered.len() == 1 && answered.iter().all(is_first)
        });
    });
}

#[test]
fn a_handler_that_does_not_return_is_named() {
    let gate = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(AtomicBool::new(false));
    let (begins, waits) = (Arc::clone(&begun), gated(&gate));
    let server = builder()
        .layout(Layout::Dedicated)
        .serving(move |call: &mut Call<'_>| {
            begins.store(true, Ordering::Release);
            waits(call);
        });
    let mut client = Client::of(&server);
    client.send(1, 0, b"x");
    wait_until("it runs", || begun.load(Ordering::Acquire));
    let error = server
        .shutdown(Duration::from_millis(1))
        .map(drop)
        .unwrap_err();
    assert_eq!(
        error,
        ShutdownError::Stuck {
            threads: vec!["hw-worker-0".to_owned()]
        }
    );
    gate.store(true, Ordering::Release);
    assert_eq!(client.receive().0.flag.status(), Status::Ok);
}

#[test]
fn an_idle_worker_leads_while_another_runs_a_long_request() {
    let gate = Arc::new(AtomicBool::new(false));
    for idle in [Idle::Spin, Idle::Park] {
        gate.store(false, Ordering::Release);
        let server = builder()
            .layout(Layout::Inline)
            .idle(idle)
            .serving(gated(&gate));
        let mut client = Client::of(&server);
        client.send(1, 0, b"long");
        for index in 1..100 {
            assert_eq!(client.call(0, index, b"short").0, Status::Ok);
        }
        gate.store(true, Ordering::Release);
        assert_eq!(client.receive().0.index, 0);
        server.shutdown(FOREVER).unwrap();
    }
}

#[test]
fn a_thief_serves_the_queue_of_a_blocked_worker() {
    let gate = Arc::new(AtomicBool::new(false));
    for idle in [Idle::Spin, Idle::Park] {
        gate.store(false, Ordering::Release);
        let server = builder()
            .policy("work-stealing")
            .idle(idle)
            .serving(gated(&gate));
        // One flow, so one queue; its owner is blocked by the first request.
        let mut client = Client::of(&server);
        client.send(1, 0, b"long");
        for index in 1..50 {
            assert_eq!(client.call(0, index, b"short").0, Status::Ok);
        }
        gate.store(true, Ordering::Release);
        assert_eq!(client.receive().0.index, 0);
        server.shutdown(FOREVER).unwrap();
    }
}

#[test]
fn what_cannot_start_says_why() {
    let first = builder().serving(handle);
    let addr = first.local_addr().unwrap();
    let in_use = builder()
        .service(handle)
        .listen_udp(addr)
        .start()
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(in_use, StartError::Bind(_))
            && in_use.to_string().contains("another process has the port")
    );

    let cases = [
        (builder().policy("dacr"), "no policy is called 'dacr'"),
        (builder().policy("darc,delat=3"), "delat"),
        (
            builder().policy("darc,profile=known"),
            "the server profiles by itself",
        ),
        (builder().workers(0), "1 to"),
        (
            builder()
                .workers(2)
                .layout(Layout::Dedicated)
                .pin(Pin::Cores(vec![0])),
            "3 threads cannot be pinned to 1 cores",
        ),
        (
            builder()
                .workers(1)
                .layout(Layout::Inline)
                .pin(Pin::Cores(vec![1023])),
            "cannot pin to core 1023",
        ),
        (builder().slots(1 << 20), "to 262144"),
    ];
    for (builder, message) in cases {
        let error = builder
            .service(handle)
            .listen_udp(loopback())
            .start()
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn threads_are_named_and_pinned_where_there_are_cores() {
    let server = builder()
        .workers(1)
        .layout(Layout::Inline)
        .pin(Pin::Auto)
        .serving(handle);
    assert_eq!(server.unpinned(), None);
    assert_eq!(server.layout(), Some(Layout::Inline));
    let crowded = builder()
        .workers(200)
        .layout(Layout::Inline)
        .pin(Pin::Auto)
        .idle(Idle::Park)
        .serving(handle);
    assert!(crowded.unpinned().unwrap().contains("200 threads share"));
    let names: Vec<String> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .collect();
    assert!(
        names.iter().any(|name| name == "hw-worker-199\n"),
        "{names:?}"
    );
}
