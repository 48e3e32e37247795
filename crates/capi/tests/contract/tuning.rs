//! What a program says of its machine, and where Prometheus asks.

use std::io::{Read, Write};
use std::net::TcpStream;

use headway_capi::options::{
    HEADWAY_LAYOUT_DEDICATED, HEADWAY_LAYOUT_INLINE, HEADWAY_PREEMPT_CLOCK, HeadwayClass,
    HeadwayOptions,
};
use headway_capi::server::{HeadwayServer, headway_metrics_port};
use headway_capi::status::HEADWAY_E_ARGUMENT;
use headway_capi::tuning::HeadwayLayoutCosts;

use super::{ask, options, service, start, stop};

/// What the server answers a browser under this path.
fn browsed(server: *mut HeadwayServer, path: &str) -> String {
    // SAFETY: it runs.
    let port = unsafe { headway_metrics_port(server) };
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_costs_that_a_program_gives_choose_its_layout() {
    let costs = HeadwayLayoutCosts {
        dispatch_ns: 1,
        worker_ns: 1,
        inline_ns: 1,
        turn_ns: 1,
        renew_ns: 1,
    };
    let slow_dispatcher = HeadwayLayoutCosts {
        dispatch_ns: 1_000_000,
        ..costs
    };
    let slow_turns = HeadwayLayoutCosts {
        turn_ns: 1_000_000,
        ..costs
    };
    let started = |costs: &HeadwayLayoutCosts| {
        let options = HeadwayOptions {
            layout_costs: costs,
            metrics: c"127.0.0.1:0".as_ptr(),
            ..options()
        };
        start(&options, &service()).unwrap()
    };
    let inline = started(&slow_dispatcher);
    ask(inline, &[0], b"");
    assert!(browsed(inline, "/metrics").contains("headway_server_answered_requests_total"));
    assert!(browsed(inline, "/status").contains("\"layout\":\"inline\""));
    stop(inline);
    let cores = std::thread::available_parallelism().unwrap().get();
    let expected = if cores > 1 { "dedicated" } else { "inline" };
    let other = started(&slow_turns);
    assert!(browsed(other, "/status").contains(&format!("\"layout\":\"{expected}\"")));
    stop(other);
}

#[test]
fn looks_and_the_clock_are_refused_where_nobody_goes_by_them() {
    let looking = HeadwayOptions {
        look_every_ns: 50_000,
        ..options()
    };
    let (_, words) = start(&looking, &service()).unwrap_err();
    assert!(words.contains("look"), "{words}");
    let concord = HeadwayOptions {
        policy: c"concord,q=50us".as_ptr(),
        layout: HEADWAY_LAYOUT_INLINE,
        ..looking
    };
    let server = start(&concord, &service()).unwrap();
    ask(server, &[0], b"");
    stop(server);
    let urgent = HeadwayOptions {
        policy: c"srpt".as_ptr(),
        layout: HEADWAY_LAYOUT_DEDICATED,
        preempt: HEADWAY_PREEMPT_CLOCK,
        ..options()
    };
    let (_, words) = start(&urgent, &service()).unwrap_err();
    assert!(words.contains("more urgent"), "{words}");
    let quantum = HeadwayOptions {
        policy: c"shinjuku-sq,q=50us".as_ptr(),
        ..urgent
    };
    let server = start(&quantum, &service()).unwrap();
    ask(server, &[0], b"");
    stop(server);
    let nowhere = HeadwayOptions {
        metrics: c"localhost:9".as_ptr(),
        ..options()
    };
    let (code, words) = start(&nowhere, &service()).unwrap_err();
    assert_eq!(code, HEADWAY_E_ARGUMENT);
    assert!(
        words.contains("headway_options.metrics is 'localhost:9'"),
        "{words}"
    );
}

/// Else they would be one series in the metrics.
#[test]
fn classes_have_names_of_their_own() {
    for names in [[c"get", c"get"], [c"get", c"unknown"], [c"class-1", c""]] {
        let classes = names.map(|name| HeadwayClass {
            name: if name.is_empty() {
                std::ptr::null()
            } else {
                name.as_ptr()
            },
            mean_ns: 1_000,
        });
        let options = HeadwayOptions {
            classes: classes.as_ptr(),
            class_count: classes.len(),
            ..options()
        };
        let (code, words) = start(&options, &service()).unwrap_err();
        assert_eq!(code, HEADWAY_E_ARGUMENT, "{words}");
        assert!(words.contains("is declared twice, or is one of"), "{words}");
    }
}
