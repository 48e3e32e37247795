//! Once it runs, the server allocates nothing for a request.

mod common;

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Client, FOREVER, is_steered, laid_out, live_policies, play, replay, with_room};
use headway_net::header::Status;
use headway_policy::Resume;
use headway_runtime::{Call, Layout, Server, Spin};

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Test threads allocate as they please.
    static IS_TEST: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
// SAFETY: everything is the system allocator's doing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        if COUNTING.load(Ordering::Relaxed) && !IS_TEST.get() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are the system allocator's conditions.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, place: *mut u8, block: Block) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, block) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of the server's threads while `traffic` runs. They have some time to begin in: then they allocate what they need.
fn allocations(traffic: impl FnOnce()) -> u64 {
    std::thread::sleep(Duration::from_millis(5));
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    traffic();
    COUNTING.store(false, Ordering::SeqCst);
    ALLOCATIONS.load(Ordering::SeqCst) - before
}

const REVISING: [&str; 2] = ["darc,window=100", "darc-stable,window=100"];

fn server() -> headway_runtime::Builder {
    let builder = Server::builder()
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(5_000))
        .workers(2)
        .journal(4);
    builder.resume(Resume::Anywhere)
}

// One test, since the counter is everybody's.
#[test]
fn a_running_server_allocates_nothing() {
    IS_TEST.set(true);
    let count = allocations(|| drop(std::thread::spawn(|| vec![1u8; 100]).join()));
    assert!(count > 0, "the counter counts");
    // Short windows: the plan is revised, and published, while allocations are counted.
    for policy in live_policies().chain(REVISING).chain(["synergy", "tardis"]) {
        for layout in [Layout::Dedicated, Layout::Inline] {
            allocates_nothing(policy, layout, over_replay);
            allocates_nothing(policy, layout, over_udp);
        }
    }
}

/// Checks that a run allocates nothing. A server's thread allocates when it begins, which on a busy machine may be late: one of ten runs suffices. A
/// request that allocated would show in every run.
fn allocates_nothing(policy: &str, layout: Layout, run: impl Fn(&str, Layout) -> u64) {
    let counts: Vec<u64> = (0..10)
        .map(|_| run(policy, layout))
        .take_while(|&count| count > 0)
        .collect();
    assert!(
        counts.len() < 10,
        "{policy} {layout:?}: {counts:?} allocations"
    );
}

/// More arrives than is answered: sheds are part of it.
fn over_replay(policy: &str, layout: Layout) -> u64 {
    let queues = if is_steered(policy) { 2 } else { 1 };
    let (datapath, control) = replay(queues, 6_000, 500, [500, 3_000]);
    let server = with_room(laid_out(server(), policy, layout), policy, 64)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    let count = allocations(|| play(&control));
    let stats = server.shutdown(FOREVER).unwrap();
    assert!(stats.plan_revisions > 0 || !REVISING.contains(&policy));
    assert_eq!(stats.answered + stats.shed, 6_000);
    count
}

fn over_udp(policy: &str, layout: Layout) -> u64 {
    let server = with_room(laid_out(server(), policy, layout), policy, 64)
        .service(|call: &mut Call<'_>| call.reply_in_place())
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap();
    let mut client = Client::connect(server.local_addr().unwrap());
    assert_eq!(client.call(0, 0, b"warm").0, Status::Ok);
    let count = allocations(|| {
        for index in 1..500 {
            assert_eq!(client.call((index % 3) as u8, index, b"echo").0, Status::Ok);
        }
    });
    let stats = server.shutdown(FOREVER).unwrap();
    assert!(stats.plan_revisions > 0 || !REVISING.contains(&policy));
    count
}
