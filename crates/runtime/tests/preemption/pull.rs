//! Loops that take requests themselves: every request is answered once, whatever interrupts the loops and however they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headway_net::header::Status;
use headway_policy::Resume;
use headway_runtime::{
    Builder, Layout, Pin, Pull, Request, Requests, Server, StartError, Stats, checkpoint,
    suspensions,
};

use super::alone;
use super::common::{
    Client, FOREVER, ServeOnLoopback, assert_all_answered, laid_out, loopback, play, replay,
};

const REQUESTS: u32 = 100;
const LONG_NS: u64 = 200_000;
const GAP_NS: u64 = 40_000;
/// The quantum of the policies below.
const QUANTUM: Duration = Duration::from_micros(5);
const LAYOUTS: [Layout; 2] = [Layout::Dedicated, Layout::Inline];

fn builder(policy: &str, workers: usize, layout: Layout) -> Builder {
    laid_out(Server::builder(), policy, layout)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(LONG_NS))
        .workers(workers)
        .pin(Pin::Off)
}

fn roaming(builder: Builder) -> Builder {
    // SAFETY: the loops of these tests keep nothing of their thread's over a checkpoint.
    #[expect(unsafe_code, reason = "the tests' loops may change threads")]
    unsafe {
        builder.plain_fibers().resume(Resume::Anywhere)
    }
}

/// Works for the request's time with probes, interruptions not counted.
fn work(request: &Request<'_>) {
    let (mut left_ns, mut last, mut turns) = (
        request.service_hint_ns() as i64,
        Instant::now(),
        suspensions(),
    );
    while left_ns > 0 {
        checkpoint();
        let (now, seen) = (Instant::now(), suspensions());
        if seen == turns {
            left_ns -= (now - last).as_nanos() as i64;
        }
        (last, turns) = (now, seen);
    }
}

/// Counts loops that began and that ended because the server did.
#[derive(Default)]
struct Loops {
    began: AtomicU64,
    ended: AtomicU64,
    most_held: AtomicU64,
}

impl Loops {
    /// A loop that takes as many requests as it is given, at most `batch` of them, before it answers any.
    fn serve(&self, requests: &Requests, batch: usize) {
        self.began.fetch_add(1, Ordering::Relaxed);
        while let Some(first) = requests.recv() {
            let mut taken = vec![first];
            while taken.len() < batch {
                // Past its quantum: until then the policy may let the request go on, whatever waits.
                let begun = Instant::now();
                while begun.elapsed() < 4 * QUANTUM {
                    std::hint::spin_loop();
                }
                match requests.recv() {
                    Some(next) => taken.push(next),
                    None => break,
                }
            }
            self.most_held
                .fetch_max(taken.len() as u64, Ordering::Relaxed);
            assert_eq!(requests.held(), taken.len());
            // The last first: in any order.
            while let Some(request) = taken.pop() {
                work(&request);
                request.reply_in_place();
            }
        }
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Plays a replay to a server whose loops hold several requests at once.
fn played(builder: Builder, queues: usize, batch: usize, context: &str) -> (Stats, Arc<Loops>) {
    let loops = Arc::new(Loops::default());
    let inside = Arc::clone(&loops);
    let (datapath, control) = replay(queues, REQUESTS, GAP_NS, [500, LONG_NS]);
    let server = builder
        .service(Pull::with(
            move |requests: &Requests| inside.serve(requests, batch),
            4,
            64 << 10,
        ))
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    // Another call pays the time for a batch that a loop took.
    let long_ns = if batch == 1 { LONG_NS } else { 0 };
    assert_all_answered(&stats, &control, long_ns, context);
    let (began, ended) = (
        loops.began.load(Ordering::Relaxed),
        loops.ended.load(Ordering::Relaxed),
    );
    assert_eq!(
        began, ended,
        "{context}: each loop heard of the server's end"
    );
    (stats, loops)
}

/// Policies with a dispatcher, which interrupt or do not.
const CENTRAL: [&str; 6] = [
    "c-fcfs",
    "darc",
    "concord,q=5us",
    "shinjuku-sq,q=5us",
    "tiny-quanta,q=5us,cost=0us",
    "srpt",
];

#[test]
fn loops_answer_everything_once_under_every_policy() {
    let _alone = alone();
    for policy in CENTRAL {
        for layout in LAYOUTS {
            for roams in [false, true] {
                let context = format!("{policy}, {layout:?}, roams {roams}");
                let builder = builder(policy, 2, layout);
                let builder = if roams { roaming(builder) } else { builder };
                let (stats, loops) = played(builder, 1, 1, &context);
                let began = loops.began.load(Ordering::Relaxed);
                if stats.preemptions == 0 {
                    // Concord's dispatcher has a loop too, which works where it does.
                    assert!((2..=3).contains(&began), "{context}: {began} loops");
                }
            }
        }
    }
}

#[test]
fn loops_answer_everything_once_where_nobody_dispatches() {
    let _alone = alone();
    for (policy, queues) in [
        ("d-fcfs", 2),
        ("work-stealing", 2),
        ("synergy", 2),
        ("tardis,q=5us", 1),
    ] {
        let builder = roaming(builder(policy, 2, Layout::Inline));
        played(builder, queues, 1, policy);
    }
}

/// Loops are interrupted inside a request, and others go on meanwhile: shorts do not wait for longs.
#[test]
fn an_interrupted_loop_leaves_its_worker_to_another() {
    let _alone = alone();
    let begun = Instant::now();
    for layout in LAYOUTS {
        loop {
            let (stats, loops) = played(builder("concord,q=5us", 1, layout), 1, 1, "interrupted");
            if stats.preemptions > 0 && loops.began.load(Ordering::Relaxed) > 2 {
                break;
            }
            assert!(begun.elapsed() < FOREVER, "never interrupted");
        }
    }
}

/// Where the policy can suspend requests at their worker, a loop may have several; elsewhere it has one.
#[test]
fn a_loop_holds_several_requests_within_its_bound() {
    let _alone = alone();
    let begun = Instant::now();
    for policy in ["concord,q=5us", "tiny-quanta,q=5us,cost=0us", "srpt"] {
        for layout in LAYOUTS {
            loop {
                let context = format!("{policy}, {layout:?}");
                let (_, loops) = played(builder(policy, 1, layout), 1, 8, &context);
                let most = loops.most_held.load(Ordering::Relaxed);
                assert!(most <= 4, "{context}: {most} beyond the bound");
                if most > 1 {
                    break;
                }
                assert!(begun.elapsed() < FOREVER, "{context}: never two at once");
            }
        }
    }
    let one_at_a_time = [
        builder("darc", 2, Layout::Inline),
        roaming(builder("concord,q=5us", 2, Layout::Inline)),
        builder("concord,q=5us", 2, Layout::Inline).by_feedback(true),
    ];
    for builder in one_at_a_time {
        let (_, loops) = played(builder, 1, 8, "one at a time");
        assert_eq!(loops.most_held.load(Ordering::Relaxed), 1);
    }
}

/// By feedback a loop is interrupted where a request says that it is long, as a handler is.
#[test]
fn by_feedback_a_loop_is_interrupted_in_long_parts_only() {
    let _alone = alone();
    let begun = Instant::now();
    for layout in LAYOUTS {
        loop {
            let outside = Arc::new(AtomicU64::new(0));
            let seen = Arc::clone(&outside);
            let (datapath, control) = replay(1, REQUESTS, GAP_NS, [500, LONG_NS]);
            let server = builder("concord,q=5us", 1, layout)
                .by_feedback(true)
                .service(Pull::new(move |requests: &Requests| {
                    while let Some(mut request) = requests.recv() {
                        let before = suspensions();
                        work(&request);
                        seen.fetch_add(suspensions() - before, Ordering::Relaxed);
                        if request.class().0 == 1 {
                            request.feedback_start();
                            work(&request);
                            request.feedback_finished();
                        }
                        request.reply_in_place();
                    }
                }))
                .datapath(datapath)
                .start()
                .unwrap();
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            assert_eq!(outside.load(Ordering::Relaxed), 0, "{layout:?}");
            assert_eq!(stats.answered, u64::from(REQUESTS));
            assert_eq!(
                stats.classes[1].feedback.said_long,
                stats.classes[1].answered
            );
            if stats.preemptions > 0 {
                break;
            }
            assert!(begun.elapsed() < FOREVER, "{layout:?}: never interrupted");
        }
    }
}

/// Mistakes cost their requests, and no others.
#[test]
fn a_request_without_an_answer_is_answered_as_an_error() {
    let _alone = alone();
    for policy in ["c-fcfs", "concord,q=20us,dispatcher=dedicated"] {
        let server =
            builder(policy, 1, Layout::Dedicated).serving(Pull::new(|requests: &Requests| {
                while let Some(request) = requests.recv() {
                    match request.payload() {
                        b"drop" => drop(request),
                        b"forget" => std::mem::forget(request),
                        b"leave" => return,
                        b"panic" => std::panic::resume_unwind(Box::new("planned")),
                        b"after" => {
                            request.reply(b"too late");
                            std::panic::resume_unwind(Box::new("planned"));
                        }
                        b"bad" => request.bad_request(),
                        b"large" => request.reply_first(1 << 20),
                        _ => request.reply(b"pong"),
                    }
                }
            }));
        let mut client = Client::of(&server);
        let mut index = 0;
        let mut ask = |payload: &[u8]| {
            index += 1;
            client.call(0, index, payload)
        };
        for (payload, status) in [
            (&b"drop"[..], Status::Error),
            (b"forget", Status::Error),
            (b"leave", Status::Error),
            (b"panic", Status::Error),
            (b"after", Status::Error),
            (b"bad", Status::BadRequest),
            (b"large", Status::TooLarge),
        ] {
            assert_eq!(ask(payload), (status, vec![]), "{policy}: {payload:?}");
            // The loop goes on, or another one does.
            assert_eq!(ask(b"ping"), (Status::Ok, b"pong".to_vec()), "{policy}");
        }
        client.assert_silent();
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!((stats.answered, stats.panics), (14, 2), "{policy}");
    }
}

/// A loop that ends, or panics, before its first request would answer nothing.
#[test]
fn a_loop_that_ends_at_once_keeps_the_server_from_starting() {
    let _alone = alone();
    let refused = |serve: fn(&Requests)| {
        let builder = builder("c-fcfs", 2, Layout::Inline).service(Pull::new(serve));
        let started = builder.listen_udp(loopback()).start();
        match started {
            Err(StartError::Setup { source, .. }) => source.to_string(),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it started"),
        }
    };
    assert!(refused(|_| {}).contains("returned before"));
    assert!(refused(|_| std::panic::resume_unwind(Box::new("planned"))).contains("panicked"));
}
