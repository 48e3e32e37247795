//! A handler that forks: the child is a plain process of one thread, which answers nothing, holds no port, and ends with the handler.

use std::cell::Cell;
use std::io::Read as _;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headway_runtime::{Call, Layout, checkpoint};

use super::common::{Client, FOREVER, ServeOnLoopback, laid_out, live_policies, wait_until};
use super::{both_layouts, builder};

/// Whose handler forks at each of these requests.
const FORKS: u32 = 8;
const REQUESTS: u32 = 48;

/// Forks. The child's number in the parent; `None` in the child.
fn fork() -> Option<i32> {
    #[expect(unsafe_code, reason = "the child calls what a forked process may call")]
    // SAFETY: the C library's allocator works in the child, and nothing else of other threads is used there.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a process");
    (child > 0).then_some(child)
}

/// The status with which a child has ended.
fn wait_for(child: i32) -> i32 {
    let status = Cell::new(0);
    wait_until("the child has ended", || {
        #[expect(unsafe_code, reason = "a system call")]
        // SAFETY: the status is ours.
        let ended = unsafe { libc::waitpid(child, status.as_ptr(), libc::WNOHANG) };
        ended == child
    });
    status.get()
}

/// Long enough for interruptions, by probes.
fn work() {
    for _ in 0..2_000 {
        for _ in 0..20 {
            std::hint::spin_loop();
        }
        checkpoint();
    }
}

#[test]
fn a_forked_child_answers_nothing_and_ends_with_its_handler() {
    let interrupting = ["tiny-quanta", "concord,q=20us,dispatcher=dedicated"];
    for policy in live_policies().chain(interrupting) {
        both_layouts(|layout| children_end(policy, layout));
    }
}

fn children_end(policy: &str, layout: Layout) {
    let children = Arc::new(Mutex::new(Vec::new()));
    let forked = Arc::clone(&children);
    let serves = std::process::id();
    let server = laid_out(builder(), policy, layout).serving(move |call: &mut Call<'_>| {
        work();
        if call.payload() == b"fork"
            && let Some(child) = fork()
        {
            forked.lock().unwrap().push(child);
        }
        // The child meets probes too, and writes an answer.
        work();
        let me = std::process::id();
        call.reply(&me.to_le_bytes());
    });
    let mut client = Client::of(&server);
    for index in 0..REQUESTS {
        let asks: &[u8] = if index % (REQUESTS / FORKS) == 0 {
            b"fork"
        } else {
            b"work"
        };
        client.send((index % 2) as u8, index, asks);
    }
    (0..REQUESTS).for_each(|_| drop(client.receive()));
    let stats = server.shutdown(FOREVER).unwrap();
    let children = std::mem::take(&mut *children.lock().unwrap());
    assert_eq!(children.len() as u32, FORKS, "{policy} {layout:?}");
    for child in children {
        assert_eq!(wait_for(child), 0, "{policy} {layout:?}");
    }
    client.assert_silent();
    assert_eq!(stats.answered, u64::from(REQUESTS), "{policy} {layout:?}");
    assert_eq!(client.answers.len() as u32, REQUESTS, "{policy} {layout:?}");
    for answers in client.answers.values() {
        assert_eq!(answers.len(), 1, "{policy} {layout:?}");
        assert_eq!(answers[0].1, serves.to_le_bytes(), "{policy} {layout:?}");
    }
}

#[test]
fn a_child_that_lives_on_holds_no_port() {
    both_layouts(|layout| {
        let (lives, ends) = std::io::pipe().unwrap();
        let ends = Arc::new(Mutex::new(Some(ends)));
        let (to_end, child) = (Arc::clone(&ends), Arc::new(Mutex::new(None)));
        let forked = Arc::clone(&child);
        let server =
            builder()
                .policy("tiny-quanta")
                .layout(layout)
                .serving(move |_: &mut Call<'_>| match fork() {
                    Some(child) => *forked.lock().unwrap() = Some(child),
                    None => {
                        // Its own copy, so that the parent's is the last.
                        drop(to_end.lock().unwrap().take());
                        let _ = (&lives).read(&mut [0]);
                    }
                });
        let addr = server.local_addr().unwrap();
        Client::of(&server).call(0, 0, b"");
        server.shutdown(FOREVER).unwrap();
        // A child closes what is not its own as soon as it runs, which may be after its parent's answer.
        let by = Instant::now() + FOREVER;
        while let Err(error) = UdpSocket::bind(addr) {
            assert!(Instant::now() < by, "the child holds the port: {error}");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(ends.lock().unwrap().take());
        let child = child.lock().unwrap().take().expect("it forked");
        assert_eq!(wait_for(child), 0, "{layout:?}");
    });
}
