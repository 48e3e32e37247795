//! `ctl stacks` of a server in Rust: where its suspended requests stand, while it serves.

use super::headway;
use headway_net::header::{Flag, Header};
use headway_runtime::{Call, Server, checkpoint};
use std::hint::black_box;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Asks the server at this socket until a suspended request stands in that function; what it said then. Each time that none does, the caller may send more: requests that
/// went on at home, since a worker was seen asleep, are not suspended again.
pub(super) fn shown_standing(path: &str, function: &str, mut more: impl FnMut()) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let output = headway(&["ctl", "stacks", "--server", path]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said.contains(function) {
            return said;
        }
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(Instant::now() < deadline, "{said}{why}");
        more();
    }
}

/// The lap in which requests end at once.
const LAST: u32 = u32::MAX;

/// Stands here until the lap is over.
#[inline(never)]
fn innermost_of_a_request(lap: &AtomicU32) {
    let mine = lap.load(Ordering::Relaxed);
    while mine != LAST && lap.load(Ordering::Relaxed) == mine {
        checkpoint();
    }
}

/// Holds a lock meanwhile, that no other request wants.
#[inline(never)]
fn middle_of_a_request(lap: &AtomicU32, depth: u32) -> u32 {
    let lock = black_box(Mutex::new(depth));
    let held = lock.lock().unwrap();
    if depth > 0 {
        return middle_of_a_request(lap, depth - 1) + *held;
    }
    innermost_of_a_request(lap);
    *held
}

/// Eight requests a lap, and two workers, which go on with what the other began. The server is asked again and again while it switches all the time.
#[test]
fn suspended_requests_with_a_threads_state_show_where_they_stand() {
    const REQUESTS: u32 = 8;
    let lap = Arc::new(AtomicU32::new(0));
    let done = Arc::new(AtomicU32::new(0));
    let (sees, counts) = (Arc::clone(&lap), Arc::clone(&done));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ctl.sock");
    let server = Server::builder()
        .control(path.clone())
        .policy("tardis,q=5us")
        .workers(2)
        .pin(headway_runtime::Pin::Off)
        .service(move |_: &mut Call<'_>| {
            middle_of_a_request(&sees, 2);
            counts.fetch_add(1, Ordering::Relaxed);
        })
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    let send = || {
        let header = Header {
            class: 0,
            flag: Flag::REQUEST,
            index: 0,
            time_ns: 0,
        };
        for _ in 0..REQUESTS {
            client.send(&header.encode()).unwrap();
        }
    };
    let next_lap = || {
        lap.fetch_add(1, Ordering::Relaxed);
        send();
    };
    send();
    let path = path.display().to_string();
    for _ in 0..20 {
        let told = shown_standing(&path, "innermost_of_a_request", next_lap);
        for request in told
            .split("\n\n")
            .filter(|request| request.contains("innermost_of"))
        {
            // Never half a stack, nor two of them.
            let times = |name: &str| request.matches(name).count();
            assert_eq!(times("innermost_of_a_request"), 1, "{told}");
            assert_eq!(times("middle_of_a_request"), 3, "{told}");
            // Lines are known where the build has debug information.
            let knows_lines = request.contains(".rs:");
            assert!(!knows_lines || request.contains("standing.rs:"), "{told}");
            assert!(request.contains("begun by worker"), "{told}");
        }
    }
    lap.store(LAST, Ordering::Relaxed);
    let stats = server.shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(
        (stats.answered, done.load(Ordering::Relaxed)),
        (stats.received, stats.received as u32)
    );
}
