//! A run allocates its tables, and then nothing for a request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use headway_load::{Extent, Load, Threads};
use headway_workload::{Class, Offered, ServiceDistribution, Workload};
use nix::sys::socket::{setsockopt, sockopt};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The server's thread is not what is tested.
    static IS_SERVER: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
// SAFETY: everything is the system allocator's doing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !IS_SERVER.get() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are the system allocator's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Answers until the flag is set: a stalled machine may lose a request before it is read.
fn echo(socket: &UdpSocket, stop: &AtomicBool) {
    let mut buffer = [0; 64];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, client)) = socket.recv_from(&mut buffer) {
            buffer[1] |= 4;
            socket.send_to(&buffer[..len], client).unwrap();
        }
    }
}

/// Room for every request while the server's thread waits for a core; without privileges the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// The allocations of a run of `count` requests to an echo server. Where the kernel grants little room, a busy machine may lose most requests: the
/// function then tries again.
fn allocations(count: u64, threads: Threads) -> u64 {
    (0..20)
        .find_map(|_| try_allocations(count, threads))
        .expect("one of twenty runs in which half of the requests are answered")
}

fn try_allocations(count: u64, threads: Threads) -> Option<u64> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES))
        .unwrap();
    let target = socket.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let server = std::thread::spawn(move || {
        IS_SERVER.set(true);
        echo(&socket, &stopped);
    });
    let class = Class::new("all", 1.0, ServiceDistribution::Constant { mean_ns: 1_000 });
    let workload = Workload::new("one", vec![class]);
    let offered = Offered::Rate(10_000.0);
    let mut load = Load::new(target, workload, offered, Extent::Requests { count });
    load.threads = threads;
    load.timeout_ns = 10_000_000_000;
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    let report = load.run(|_| ControlFlow::Continue(())).unwrap();
    let made = ALLOCATIONS.load(Ordering::SeqCst) - before;
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap();
    assert_eq!(report.delivery.sent, count);
    (report.delivery.answered >= count / 2).then_some(made)
}

#[test]
fn ten_times_the_requests_are_no_more_allocations() {
    allocations(100, Threads::One); // what is made once per process
    for threads in [Threads::One, Threads::Two] {
        let (few, many) = (allocations(300, threads), allocations(3_000, threads));
        // The plan's list doubles a few more times.
        assert!(
            many <= few + 16,
            "{many} allocations for 3 000, {few} for 300"
        );
    }
}
