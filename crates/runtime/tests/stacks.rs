//! Where a server's suspended requests stand, as its control socket tells it: names and order of their functions, while it switches all the time.
#![expect(unsafe_code, reason = "the promise of plain fibers")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use addr2line::Loader;
use headway_ops::protocol::CtlRequest;
use headway_runtime::{Call, Pin, Server, checkpoint};
use serde_json::Value;

const REQUESTS: usize = 8;
/// Under the thread sanitizer a look takes a third of a second.
const LOOKS: usize = if cfg!(headway_tsan) { 40 } else { 200 };
/// The lap in which requests end at once.
const LAST: u64 = u64::MAX;
/// No test waits longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Stands here until the lap is over.
#[inline(never)]
fn innermost_of_a_request(lap: &AtomicU64) {
    let mine = lap.load(Ordering::Relaxed);
    while mine != LAST && lap.load(Ordering::Relaxed) == mine {
        checkpoint();
    }
}

#[inline(never)]
fn middle_of_a_request(lap: &AtomicU64, depth: u32) -> u32 {
    if black_box(depth) > 0 {
        return middle_of_a_request(lap, depth - 1) + depth;
    }
    innermost_of_a_request(lap);
    depth
}

/// A request's functions of this file, the innermost first.
fn functions(request: &Value, modules: &Value, names: &Loader) -> Vec<&'static str> {
    let program = std::env::current_exe().unwrap().display().to_string();
    let frames = request["frames"].as_array().unwrap().iter();
    let symbols = frames.filter_map(|frame| {
        let module = frame["module"].as_u64()? as usize;
        let path = modules[module]["path"].as_str()?;
        (path == program).then_some(names.find_symbol(frame["address"].as_u64()?)?)
    });
    let ours = ["innermost_of_a_request", "middle_of_a_request"];
    symbols
        .filter_map(|symbol| ours.into_iter().find(|name| symbol.contains(name)))
        .collect()
}

/// What the server tells who asks.
fn ask(place: &Path) -> Value {
    let mut stream = UnixStream::connect(place).unwrap();
    let line = CtlRequest::Stacks.line();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let mut answer: Value = serde_json::from_str(&answer).unwrap();
    answer["ok"].take()
}

/// As many requests are under way again as were.
fn replace_what_was_answered(client: &UdpSocket) {
    while client.recv(&mut [0; 64]).is_ok() {
        client.send(&[0; 16]).unwrap();
    }
}

/// Serves requests that stand there until told, and looks at those that are suspended, hundreds of times.
fn all_stand_where_they_should(policy: &str, is_plain: bool) {
    let lap = Arc::new(AtomicU64::new(0));
    let sees = Arc::clone(&lap);
    let builder = Server::builder().policy(policy).workers(2).pin(Pin::Off);
    let builder = if is_plain {
        // SAFETY: the handler keeps nothing of its thread.
        unsafe { builder.plain_fibers() }
    } else {
        builder
    };
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("server.sock");
    let server = builder
        .control(place.clone())
        .service(move |_: &mut Call<'_>| {
            black_box(middle_of_a_request(&sees, 2));
        })
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    client.set_nonblocking(true).unwrap();
    for _ in 0..REQUESTS {
        client.send(&[0; 16]).unwrap();
    }
    let names = Loader::new(std::env::current_exe().unwrap()).unwrap();
    let (mut looks, mut stood, begun) = (0, 0, Instant::now());
    while looks < LOOKS || stood < 100 {
        assert!(
            begun.elapsed() < LIMIT,
            "{policy}: {stood} in {looks} looks"
        );
        looks += 1;
        let told = ask(&place);
        if told["at_home"] != 0 {
            // A worker slept in the middle of a turn, as in a lock of a sanitizer's, so requests were rescued: at home nobody suspends them, and others come in their place.
            lap.fetch_add(1, Ordering::Relaxed);
        }
        replace_what_was_answered(&client);
        let requests = told["requests"].as_array().unwrap();
        assert!(requests.len() <= REQUESTS, "{told}");
        for request in requests {
            let functions = functions(request, &told["modules"], &names);
            if functions.is_empty() {
                continue; // It stands in another function: before the first probe, or at its end.
            }
            stood += 1;
            // Never a part of a stack, nor parts of two.
            let (middle, inner) = ("middle_of_a_request", "innermost_of_a_request");
            assert_eq!(
                functions,
                [inner, middle, middle, middle],
                "{policy}: {request}"
            );
            assert!(request["worker"].as_u64().unwrap() < 2, "{request}");
        }
    }
    lap.store(LAST, Ordering::Relaxed);
    let stats = server.shutdown(LIMIT).unwrap();
    assert_eq!(stats.answered, stats.received);
}

#[test]
fn requests_with_a_threads_state_stand_where_they_should() {
    for policy in ["tardis,q=5us", "concord,q=5us"] {
        all_stand_where_they_should(policy, false);
    }
}

#[test]
fn requests_on_plain_fibers_stand_where_they_should() {
    for policy in ["tardis,q=5us", "concord,q=5us"] {
        all_stand_where_they_should(policy, true);
    }
}
