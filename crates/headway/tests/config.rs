//! A server built from a settings file.
#![expect(
    unsafe_code,
    reason = "a handler that bears to be interrupted anywhere"
)]

use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

use headway::config::HandlerPromises;
use headway::prelude::*;

/// A file of its own for each test.
fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("headway.toml");
    std::fs::write(&path, text).unwrap();
    (place, path)
}

const WORKLOAD: &str = "
[[class]]
name = \"get\"
share = 0.9
service = { dist = \"constant\", mean = \"2us\" }

[[class]]
name = \"scan\"
share = 0.1
long = true
slo = \"latency.p99<=20ms\"
service = { dist = \"constant\", mean = \"100us\" }
";

#[test]
fn the_file_says_what_the_server_is() {
    let (place, _) = written("");
    let workload = place.path().join("mix.toml");
    std::fs::write(&workload, WORKLOAD).unwrap();
    let (_place, path) = written(&format!(
        "listen = \"udp://127.0.0.1:0\"\napp = \"spin\"\npolicy = \"edf,slo=7\"\nworkers = 1\nworkload = \"{}\"\n\
         classifier = \"offset:at=0,bytes=1\"\nqueue-limit = 9\nlayout = \"inline\"\nidle = \"park\"\npin = \"off\"\ndrain = \"3s\"\n\
         seed = 5\n[kv]\nkeys = 3\n",
        workload.display()
    ));
    let builder = Builder::from_config(&path).unwrap();
    let shown = format!("{builder:?}");
    for part in [
        "slo_ns: Some(20000000)",
        "long: Some(true)",
        "queue_limit: Some(9)",
        "seed: 5",
        "pin: Off",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let server = builder
        .handler(|call| {
            let class = call.class().0 as u8;
            call.reply(&[class]);
        })
        .start()
        .unwrap();
    assert_eq!(
        (server.policy(), server.layout()),
        ("edf", Some(Layout::Inline))
    );
    assert_eq!(
        (server.idle(), server.drain()),
        (Idle::Park, Duration::from_secs(3))
    );
    assert_eq!(server.unpinned(), Some("as asked"));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // The classifier of the file looks at the header's first byte, its type.
    let request = Header {
        class: 1,
        flag: Flag::REQUEST,
        index: 7,
        time_ns: 0,
    }
    .encode();
    client
        .send_to(&request, server.local_addr().unwrap())
        .unwrap();
    let mut reply = [0; 64];
    let len = client.recv(&mut reply).unwrap();
    assert_eq!(reply[HEADER_BYTES..len].len(), 1);
    let drain = server.drain();
    let stats = server.shutdown(drain).unwrap();
    let names: Vec<&str> = stats
        .classes
        .iter()
        .map(|class| class.name.as_str())
        .collect();
    assert_eq!((names, stats.answered), (vec!["get", "scan", "unknown"], 1));
}

#[test]
fn an_error_names_the_line_the_key_and_the_remedy() {
    for (text, place, remedy) in [
        (
            "workers = 1\npolcy = \"darc\"",
            ":2",
            "did you mean `policy`?",
        ),
        ("policy = \"dacr\"", ":1: policy", "did you mean 'darc'?"),
        (
            "policy = \"darc,detla=3\"",
            ":1: policy",
            "did you mean 'delta'?",
        ),
        (
            "\nlisten = \"tcp://127.0.0.1:1\"",
            ":2: listen",
            "write udp://HOST:PORT",
        ),
        (
            "pin = \"0,one\"",
            ":1: pin",
            "a list of cores such as 0,1,2",
        ),
        ("drain = \"5\"", ":1: drain", "no unit"),
        (
            "steer = \"byte=10\"",
            ":1: steer",
            "choose a byte from 0 to 9",
        ),
        ("steer = \"hash\"", ":1: steer", "write flow, random"),
        (
            "layout = \"shared\"",
            ":1",
            "expected one of `auto`, `dedicated`, `inline`",
        ),
        ("idle = \"sleep\"", ":1", "`spin-then-park`"),
        ("workload = \"tpcd\"", ":1: workload", "tpcc"),
        ("workers = \"two\"", ":1", "expected usize"),
        (
            "preempt = \"signal\"",
            ":1: preempt",
            "Builder::from_config_promising",
        ),
        ("resume = \"elsewhere\"", ":1", "`own-worker` or `anywhere`"),
        ("preempt = \"clock\"", ":1", "`flag`, `tsc`, `signal`"),
        ("look-every = \"999ns\"", ":1: look-every", "at least 1us"),
        ("lok-every = \"1us\"", ":1", "did you mean `look-every`?"),
    ] {
        let (_place, path) = written(text);
        let error = Builder::from_config(&path)
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("{}{place}", path.display())),
            "{error}"
        );
        assert!(error.contains(remedy), "{error}");
    }
    let missing = Builder::from_config("no/such.toml")
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(missing.contains("no/such.toml"), "{missing}");
}

#[test]
fn the_file_says_how_requests_are_interrupted() {
    let (_place, path) = written(
        "resume = \"own-worker\"\npreempt = \"flag\"\nfeedback = true\nlook-every = \"7us\"\n",
    );
    let shown = format!("{:?}", Builder::from_config(&path).unwrap());
    for part in [
        "resume: Some(OwnWorker)",
        "mechanism: Some(Flag)",
        "feedback: true",
        "look_ns: Some(7000)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn the_file_says_by_what_the_kernel_steers() {
    let (_place, path) = written(
        "listen = \"udp://127.0.0.1:0\"\npolicy = \"d-fcfs\"\nworkers = 2\nsteer = \"byte=9\"\n",
    );
    let builder = Builder::from_config(&path).unwrap();
    let server = builder.handler(|call| call.reply(b"")).start().unwrap();
    server.shutdown(Duration::from_secs(60)).unwrap();
    let (_place, path) = written("listen = \"udp://127.0.0.1:0\"\nsteer = \"random\"\n");
    let builder = Builder::from_config(&path).unwrap();
    let refused = builder.handler(|call| call.reply(b"")).start().map(drop);
    assert!(matches!(
        refused,
        Err(StartError::OneQueue { policy: "darc" })
    ));
}

#[test]
fn the_file_may_ask_for_what_the_author_of_the_handler_promised() {
    let (_place, path) = written(
        "listen = \"udp://127.0.0.1:0\"\npolicy = \"synergy\"\nworkers = 2\nresume = \"anywhere\"\n",
    );
    // SAFETY: the handler that follows holds nothing of its thread's.
    let promises = unsafe { HandlerPromises::none().keeping_nothing_in_threads() };
    let server = Builder::from_config_promising(&path, promises)
        .unwrap()
        .handler(|call| call.reply(b"pong"))
        .start()
        .unwrap();
    assert_eq!((server.policy(), server.layout()), ("synergy", None));
    // One promise is not the other.
    let (_place, path) = written("preempt = \"signal\"\n");
    let refused = Builder::from_config_promising(&path, promises).map(drop);
    assert!(refused.unwrap_err().to_string().contains("signal"));
    // SAFETY: as above, and it neither allocates nor locks.
    let promises = unsafe { promises.interrupt_by_signal() };
    let builder = Builder::from_config_promising(&path, promises).unwrap();
    assert!(format!("{builder:?}").contains("mechanism: Some(Signal)"));
}

#[test]
fn a_core_is_left_to_a_dispatcher_that_has_a_thread() {
    use headway::runtime::{WorkersFacts, default_workers};
    for (policy, layout, by_signal, cores, workers) in [
        ("darc", Layout::Auto, false, 1, 1),
        ("darc", Layout::Auto, false, 4, 4),
        ("darc", Layout::Auto, false, 5, 4),
        ("darc", Layout::Dedicated, false, 1, 1),
        ("darc", Layout::Dedicated, false, 4, 3),
        ("darc", Layout::Inline, false, 16, 16),
        ("concord", Layout::Auto, true, 2, 1),
        ("concord", Layout::Auto, false, 2, 2),
        ("synergy", Layout::Auto, false, 16, 16),
        ("d-fcfs", Layout::Auto, false, 2, 2),
        ("d-fcfs", Layout::Auto, false, 1000, 256),
    ] {
        let facts = WorkersFacts {
            by_signal,
            ..WorkersFacts::of_cores(cores)
        };
        let chosen = default_workers(&policy.parse().unwrap(), layout, &facts);
        assert_eq!(chosen, workers, "{policy}, {layout:?}, {cores} cores");
    }
}
